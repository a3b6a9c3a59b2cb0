"""Weights that depend on a seed and a name alone: the same on every device, with nothing drawn from a generator.

A number is a hash of the seed, the weight's name and its index, so a model is filled where it lies, in its own dtype,
in any order. The hash has two rounds of shift, xor and multiply, with constants of low bias found by C. Wellons
(github.com/skeeto/hash-prospector, README), in 32 bits, which wrap. `fill` computes it with torch, `numbers` the same
numbers with NumPy, for engines without torch.
"""

import zlib
from typing import Any

import numpy as np

_CHUNK = 2**16  # numbers at once, so that they stay in a core's cache
_DEVICE_CHUNK = 2**24  # so that launches don't count
_MIX, _LAST_SHIFT = ((16, 0x604BAA5D), (15, 0x43D6CE97)), 15
_NORM_SPREAD = 0.1
_LOGIT_SPREAD = 3.0  # of logits over the vocabulary, as trained models have: neither flat nor certain


def fill_model(model: Any, seed: int) -> None:
    """Give every weight of a causal language model its numbers, in place.

    Projections keep the size of what they get, whatever their width; norms scale by about 1 (never exactly, so that one
    that is left out shows); logits spread by about 3.
    """
    head = model.get_output_embeddings().weight
    is_gemma = type(model).__name__.startswith("Gemma")
    for name, weight in model.named_parameters():
        mean, deviation = spread(name, weight.shape[-1], is_head=weight is head, is_gemma=is_gemma)
        fill(weight, f"{seed} {name}", mean, deviation)


def spread(name: str, width: int, *, is_head: bool, is_gemma: bool) -> tuple[float, float]:
    """Mean and deviation of a weight's numbers.

    Args:
        name: As transformers' module has it.
        width: Its last dimension.
        is_head: It gives the logits; a tied table does.
        is_gemma: Its norms scale by 1 + weight.
    """
    if "norm" in name:
        return 0.0 if is_gemma else 1.0, _NORM_SPREAD
    if name.rpartition(".")[2] == "bias":
        return 0.0, _NORM_SPREAD
    if is_head:
        return 0.0, _LOGIT_SPREAD * width**-0.5
    return 0.0, 1.0 if "embed_tokens" in name else width**-0.5


def fill(weight: Any, key: str, mean: float, deviation: float) -> None:
    """Numbers evenly spread about `mean`, in place, rounded from float32 to the weight's dtype."""
    import torch

    flat = weight.detach().view(-1)
    start = zlib.crc32(key.encode())
    chunk = min(flat.numel(), _CHUNK if flat.device.type == "cpu" else _DEVICE_CHUNK)
    ramp = torch.arange(chunk, dtype=torch.int32, device=flat.device)
    bits, high = torch.empty_like(ramp), torch.empty_like(ramp)
    for first in range(0, flat.numel(), chunk):
        part = flat[first : first + chunk]
        torch.bitwise_xor(ramp, _signed(first ^ start), out=bits)  # a chunk's length is a power of two, or it is all
        for shift, factor in _MIX:
            _fold(bits, high, shift).mul_(factor)
        _fold(bits, high, _LAST_SHIFT).bitwise_right_shift_(8)  # 24 bits and sign: exact in float32
        part.copy_(bits[: part.numel()].to(torch.float32).mul_(deviation * 3**0.5 / 2**23).add_(mean))


def numbers(key: str, mean: float, deviation: float, first: int, last: int, dtype: Any = np.float32) -> Any:
    """Those that `fill` gives a flat weight from index `first` up to `last`, without the ones before.

    Returns:
        An array [last - first], float32 rounded to the dtype.
    """
    start = np.uint32(zlib.crc32(key.encode()))
    scale, middle = np.float32(deviation * 3**0.5 / 2**23), np.float32(mean)
    out = np.empty(last - first, dtype)
    ramp = np.arange(min(len(out), _CHUNK), dtype=np.uint32)
    high = np.empty_like(ramp)
    for at in range(first, last, _CHUNK):
        count = min(_CHUNK, last - at)
        bits = (ramp[:count] + np.uint32(at % 2**32)) ^ start
        for shift, factor in _MIX:
            bits ^= np.right_shift(bits, shift, out=high[:count])
            bits *= np.uint32(factor)
        bits ^= np.right_shift(bits, _LAST_SHIFT, out=high[:count])
        spread_numbers = (bits.view(np.int32) >> 8).astype(np.float32)
        spread_numbers *= scale
        spread_numbers += middle
        out[at - first : at - first + count] = spread_numbers
    return out


def _fold(bits: Any, high: Any, shift: int) -> Any:
    """`bits ^= bits >> shift`, without the sign that PyTorch shifts in."""
    import torch

    torch.bitwise_right_shift(bits, shift, out=high)
    return bits.bitwise_xor_(high.bitwise_and_(2 ** (32 - shift) - 1))


def _signed(value: int) -> int:
    """The int32 with these low bits."""
    return (value + 2**31) % 2**32 - 2**31
