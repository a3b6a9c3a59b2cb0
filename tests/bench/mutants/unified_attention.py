"""Wrong and right kernels of `unified_attention`."""

from dataclasses import replace

import torch
from tests.bench.mutants import attention
from tests.bench.mutants.attention import Attention, causal, causal_from_the_first, everything
from tests.bench.mutants.shared import Kernel, cut, fp8, halves, shifted
from torch import Tensor

from inferometer.operators.catalogue.unified_attention import reference

CAUSAL = Attention(mask=causal)


def kernel(attend: Attention, *, interleaved: bool = False) -> Kernel:
    """`interleaved`: query head h reads key head h % Hk, not h // group."""

    def run(q: Tensor, k_cache: Tensor, v_cache: Tensor, cu: Tensor, used: Tensor, table: Tensor) -> Tensor:
        out = torch.zeros_like(q)
        group = q.shape[1] // k_cache.shape[2]
        for n, keys in enumerate(used.tolist()):
            k, v = (cache[table[n].long()].flatten(0, 1)[:keys].transpose(0, 1) for cache in (k_cache, v_cache))
            if interleaved:
                k, v = k.repeat(group, 1, 1), v.repeat(group, 1, 1)
            else:
                k, v = k.repeat_interleave(group, 0), v.repeat_interleave(group, 0)
            rows = slice(int(cu[n]), int(cu[n + 1]))
            out[rows] = attend(q[rows].transpose(0, 1), k, v).transpose(0, 1).to(q.dtype)
        return out

    return run


def whole_blocks(q: Tensor, k: Tensor, v: Tensor, cu: Tensor, used: Tensor, table: Tensor) -> Tensor:
    """Keys up to the end of the last block, whatever lies there: the causal mask is aligned to them."""
    size = k.shape[1]
    return reference(q, k, v, cu, (used + size - 1) // size * size, table)


WRONG: dict[str, Kernel] = {
    **{name: kernel(replace(attend, mask=causal)) for name, attend in attention.WRONG.items()},
    "mask: none": kernel(Attention(mask=everything)),
    "mask: a key of the future": kernel(Attention(mask=lambda t, L: causal(t, L, more=1))),
    "mask: not the key itself": kernel(Attention(mask=lambda t, L: causal(t, L, more=-1))),
    "mask: aligned to the first key": kernel(Attention(mask=causal_from_the_first)),
    "padding: last block to its end": whole_blocks,
    "position: pages off by one": lambda q, k, v, cu, used, table: reference(q, k, v, cu, used, (table + 1) % len(k)),
    "position: pages in a row": lambda q, k, v, cu, used, table: reference(
        q, k, v, cu, used, torch.arange(table.numel()).view(table.shape).to(table.dtype) % len(k)
    ),
    "position: pages of the next sequence": lambda q, k, v, cu, used, table: reference(
        q, k, v, cu, used, table.roll(1, 0)
    ),
    "position: a key too few": lambda q, k, v, cu, used, table: kernel(CAUSAL)(
        q, k, v, cu, (used - 1).clamp(min=1), table
    ),
    "swapped: key heads interleaved": kernel(CAUSAL, interleaved=True),
    "swapped: keys and values": lambda q, k, v, *rest: reference(q, v, k, *rest),
    "swapped: heads of the queries": lambda q, *rest: reference(shifted(q, dim=1), *rest),
    "swapped: halves of the queries": lambda q, *rest: reference(halves(q), *rest),
    "missing part: last eighth of a head": lambda q, *rest: reference(cut(q, q.shape[2] // 8), *rest),
    "missing part: last page": lambda q, k, v, cu, used, table: reference(
        q, k, v, cu, used, cut(table) if table.shape[1] > 1 else table
    ),
    "rounding: queries in fp8": lambda q, *rest: reference(fp8(q.float()).to(q.dtype), *rest),
    "rounding: cache in fp8": lambda q, k, v, *rest: reference(
        q, fp8(k.float()).to(k.dtype), fp8(v.float()).to(v.dtype), *rest
    ),
}

RIGHT: dict[str, Kernel] = {
    **{name: kernel(replace(attend, mask=causal)) for name, attend in attention.RIGHT.items()},
    "scale in the queries, rounded to bf16": lambda q, *rest: kernel(replace(CAUSAL, power=0.0))(
        q * q.shape[2] ** -0.5, *rest
    ),
}

INAPPLICABLE = {"expert": "no experts"}
