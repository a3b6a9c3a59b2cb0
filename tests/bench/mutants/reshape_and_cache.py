"""Wrong and right kernels of `reshape_and_cache`."""

import torch
from tests.bench.mutants.shared import Kernel, bf16, cut, fp8, halves, shifted
from torch import Tensor

from inferometer.operators.catalogue.reshape_and_cache import reference

Two = tuple[Tensor, Tensor]


def row_by_row(key: Tensor, value: Tensor, key_cache: Tensor, value_cache: Tensor, slots: Tensor) -> Two:
    """In place, from the last token."""
    size = key_cache.shape[1]
    for token, slot in reversed(list(enumerate(slots.tolist()))):
        if slot >= 0:
            key_cache[slot // size, slot % size] = key[token]
            value_cache[slot // size, slot % size] = value[token]
    return key_cache, value_cache


def gathered(key: Tensor, value: Tensor, key_cache: Tensor, value_cache: Tensor, slots: Tensor) -> Two:
    """Every slot of the caches asks which token it gets."""
    source = torch.full((key_cache.shape[0] * key_cache.shape[1],), -1)
    for token, slot in enumerate(slots.tolist()):
        if slot >= 0:
            source[slot] = token
    here = (source >= 0)[:, None, None]
    found = [
        torch.where(here, new[source.clamp(min=0)], cache.flatten(0, 1)).view(cache.shape)
        for new, cache in ((key, key_cache), (value, value_cache))
    ]
    return found[0], found[1]


def padding_written(key: Tensor, value: Tensor, key_cache: Tensor, value_cache: Tensor, slots: Tensor) -> Two:
    """Slot -1 is the last slot of the cache, as in Python."""
    return reference(key, value, key_cache, value_cache, torch.where(slots < 0, free(key_cache, slots), slots))


def free(cache: Tensor, slots: Tensor) -> Tensor:
    """The last slot that no token has; the last one where there is none."""
    taken = set(slots.tolist())
    rest = [slot for slot in range(cache.shape[0] * cache.shape[1]) if slot not in taken]
    return torch.tensor(rest[-1] if rest else cache.shape[0] * cache.shape[1] - 1)


def slot_by_column(key: Tensor, value: Tensor, key_cache: Tensor, value_cache: Tensor, slots: Tensor) -> Two:
    """Slot s is token s // NB of block s % NB."""
    blocks, size = key_cache.shape[:2]
    turned = torch.where(slots >= 0, slots % blocks * size + slots // blocks, slots)
    return reference(key, value, key_cache, value_cache, turned)


WRONG: dict[str, Kernel] = {
    "overflow: keys in fp16": lambda k, *x: reference(k.half().to(k.dtype), *x),
    "overflow: infinity as the largest number": lambda k, v, *x: reference(k, v.clamp(-3e38, 3e38), *x),
    "zeros: denormals flushed": lambda k, v, *x: reference(k.where(k.abs() > 1e-37, 0.0), v, *x),
    "zeros: zeros not written": lambda k, v, kc, vc, s: tuple(
        old.where(new == 0, new) for old, new in zip((kc, vc), reference(k, v, kc, vc, s), strict=True)
    ),
    "NaN: 0 for it": lambda k, v, *x: reference(k.nan_to_num(0.0), v, *x),
    "identity: nothing written": lambda k, v, a, b, s: (a, b),
    "identity: keys alone": lambda k, v, a, b, s: (reference(k, v, a, b, s)[0], b),
    "position: slots off by one": lambda k, v, a, b, s: reference(
        k, v, a, b, torch.where(s >= 0, (s + 1) % (a.shape[0] * a.shape[1]), s)
    ),
    "position: number of the token as slot": lambda k, v, a, b, s: reference(
        k, v, a, b, torch.where(s >= 0, torch.arange(len(s)), s)
    ),
    "position: blocks and places in them": slot_by_column,
    "position: blocks in order": lambda k, v, a, b, s: reference(
        k, v, a, b, torch.where(s >= 0, s % a.shape[1] + torch.arange(len(s)) // a.shape[1] * a.shape[1], s)
    ),
    "swapped: keys and values": lambda k, v, a, b, s: reference(v, k, a, b, s),
    "swapped: caches": lambda k, v, a, b, s: reference(k, v, b, a, s),
    "swapped: heads and columns": lambda k, v, a, b, s: reference(k.mT.reshape(k.shape), v, a, b, s),
    "swapped: halves of a head": lambda k, v, a, b, s: reference(halves(k), v, a, b, s),
    "swapped: tokens": lambda k, v, a, b, s: reference(shifted(k), shifted(v), a, b, s),
    "missing part: last token": lambda k, v, a, b, s: reference(
        k, v, a, b, torch.cat([s[:-1], torch.full_like(s[:1], -1)])
    ),
    "missing part: last columns": lambda k, v, a, b, s: reference(cut(k, k.shape[2] // 8), v, a, b, s),
    "missing part: old rows of the cache": lambda k, v, a, b, s: reference(
        k, v, torch.zeros_like(a), torch.zeros_like(b), s
    ),
    "mask: padded tokens written": padding_written,
    "padding: last slot zeroed": lambda k, v, a, b, s: tuple(
        torch.cat([x.flatten(0, 1)[:-1], x.new_zeros(1, *x.shape[2:])]).view(x.shape) for x in reference(k, v, a, b, s)
    ),
    "scale: keys as if quantised": lambda k, v, a, b, s: reference(k * 0.5, v, a, b, s),
    "rounding: in fp8": lambda k, v, a, b, s: reference(
        fp8(k.float()).to(k.dtype), fp8(v.float()).to(v.dtype), a, b, s
    ),
    "rounding: values through fp16 sums": lambda k, v, a, b, s: reference(k, v + 256 - 256, a, b, s),
    "dropped term: added to what was there": lambda k, v, a, b, s: (
        torch.where(reference(k, v, a, b, s)[0] != a, reference(k, v, a, b, s)[0] + a, a),
        reference(k, v, a, b, s)[1],
    ),
}

RIGHT: dict[str, Kernel] = {
    "in place, from the last token": row_by_row,
    "gathered": gathered,
    "through float32": lambda k, v, a, b, s: tuple(bf16(x).to(k.dtype) for x in reference(k, v, a, b, s)),
}

ONLY_IN = {"through float32": ("bf16",)}
INAPPLICABLE = {"no tokens": "the outputs are caches, which are as large without tokens", "expert": "no experts"}
