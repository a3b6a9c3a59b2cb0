"""Wrong and right kernels of `paged_attention_decode`."""

import torch
from tests.bench.mutants import attention
from tests.bench.mutants.attention import Attention
from tests.bench.mutants.shared import Kernel, cut, fp8, halves, shifted
from torch import Tensor

from inferometer.operators.catalogue.paged_attention_decode import reference


def kernel(attend: Attention, *, interleaved: bool = False) -> Kernel:
    """`interleaved`: query head h reads key head h % Hk, not h // group."""

    def run(q: Tensor, k_cache: Tensor, v_cache: Tensor, table: Tensor, lens: Tensor) -> Tensor:
        out = torch.zeros_like(q)
        group = q.shape[1] // k_cache.shape[1]
        for n, keys in enumerate(lens.tolist()):
            pages = table[n].long()
            k = k_cache[pages].permute(1, 0, 3, 2, 4).flatten(3).flatten(1, 2)[:, :keys]
            v = v_cache[pages].permute(1, 0, 3, 2).flatten(1, 2)[:, :keys]
            k, v = (x.repeat(group, 1, 1) if interleaved else x.repeat_interleave(group, 0) for x in (k, v))
            out[n] = attend(q[n, :, None], k, v)[:, 0].to(q.dtype)
        return out

    return run


def runs_swapped(k: Tensor) -> Tensor:
    """[.., d / x, bs, x] read as [.., bs, d / x, x]."""
    return k.transpose(2, 3).reshape(k.shape)


def whole_blocks(lens: Tensor, size: int) -> Tensor:
    return ((lens + size - 1) // size * size).to(lens.dtype)


WRONG: dict[str, Kernel] = {
    **{name: kernel(attend) for name, attend in attention.WRONG.items()},
    "mask: all sequences as long as the longest": lambda q, k, v, t, n: reference(q, k, v, t, n.max().expand_as(n)),
    "padding: last block to its end": lambda q, k, v, t, n: reference(q, k, v, t, whole_blocks(n, v.shape[3])),
    "padding: a sequence without keys is not zero": lambda q, k, v, t, n: reference(q, k, v, t, n.clamp(min=1)),
    "position: a key too few": lambda q, k, v, t, n: reference(q, k, v, t, (n - 1).clamp(min=0)),
    "position: pages off by one": lambda q, k, v, t, n: reference(q, k, v, (t + 1) % len(k), n),
    "position: pages of the next sequence": lambda q, k, v, t, n: reference(q, k, v, t.roll(1, 0), n),
    "position: pages in a row": lambda q, k, v, t, n: reference(
        q, k, v, torch.arange(t.numel()).view(t.shape) % len(k), n
    ),
    "position: lengths of the next sequence": lambda q, k, v, t, n: reference(q, k, v, t, n.roll(1)),
    "swapped: runs and tokens of the keys": lambda q, k, v, t, n: reference(q, runs_swapped(k), v, t, n),
    "swapped: tokens and columns of the values": lambda q, k, v, t, n: reference(q, k, v.mT.reshape(v.shape), t, n),
    "swapped: key heads interleaved": kernel(Attention(), interleaved=True),
    "swapped: heads of the queries": lambda q, *rest: reference(shifted(q, dim=1), *rest),
    "swapped: halves of the queries": lambda q, *rest: reference(halves(q), *rest),
    "missing part: last eighth of a head": lambda q, *rest: reference(cut(q, q.shape[2] // 8), *rest),
    "rounding: queries in fp8": lambda q, *rest: reference(fp8(q.float()).to(q.dtype), *rest),
    "rounding: cache in fp8": lambda q, k, v, *rest: reference(
        q, fp8(k.float()).to(k.dtype), fp8(v.float()).to(v.dtype), *rest
    ),
}

RIGHT: dict[str, Kernel] = {name: kernel(attend) for name, attend in attention.RIGHT.items()}

INAPPLICABLE = {"expert": "no experts"}
