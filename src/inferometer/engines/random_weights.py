"""Weights that depend on a seed and a name alone: the same on every device, with nothing drawn from a generator.

A number is a hash of the seed, the weight's name and its index, so a model is filled where it lies, in its own dtype,
in any order. The hash has two rounds of shift, xor and multiply, with constants of low bias found by C. Wellons
(github.com/skeeto/hash-prospector, README), in int32, which wraps.
"""

import zlib
from typing import Any

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
    for name, weight in model.named_parameters():
        kind = name.rpartition(".")[2]
        if "norm" in name:
            is_gemma = type(model).__name__.startswith("Gemma")  # scales by 1 + weight
            fill(weight, f"{seed} {name}", 0.0 if is_gemma else 1.0, _NORM_SPREAD)
        elif kind == "bias":
            fill(weight, f"{seed} {name}", 0.0, _NORM_SPREAD)
        elif weight is head:
            fill(weight, f"{seed} {name}", 0.0, _LOGIT_SPREAD * weight.shape[-1] ** -0.5)
        elif "embed_tokens" in name:
            fill(weight, f"{seed} {name}", 0.0, 1.0)
        else:
            fill(weight, f"{seed} {name}", 0.0, weight.shape[-1] ** -0.5)


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


def _fold(bits: Any, high: Any, shift: int) -> Any:
    """`bits ^= bits >> shift`, without the sign that PyTorch shifts in."""
    import torch

    torch.bitwise_right_shift(bits, shift, out=high)
    return bits.bitwise_xor_(high.bitwise_and_(2 ** (32 - shift) - 1))


def _signed(value: int) -> int:
    """The int32 with these low bits."""
    return (value + 2**31) % 2**32 - 2**31
