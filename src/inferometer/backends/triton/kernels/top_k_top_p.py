# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""One token of each row by its probability, among the k most probable and the fewest that reach p. B rows, V columns.

A program takes a row. What is kept is everything above a threshold and the first of those equal to it: the k-th
largest by `_ordering.find_kth`, that of p by the same search over sums. Then the running sum in the order of the
vocabulary is followed to where it passes `uniform` of the whole. Of a large vocabulary it reads the row about 20 times.

Sums are float32 in parts and float64 over parts: where p, or `uniform`, falls within some 1e-7 of a boundary, another
order of adding may find the token next to it.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from inferometer.backends.triton.kernels._launching import as_rows, on_device_of
from inferometer.backends.triton.kernels._ordering import find_kth, read, search_settings


@triton.jit
def _kept(row, at, V, threshold, last):
    """Probabilities of what is above the threshold, or equal to it and not behind `last`, else 0; and all keys."""
    values, keys = read(row, at, V)
    keep = (keys > threshold) | ((keys == threshold) & (at <= last))
    return tl.where(keep & (at < V), values, 0.0), keys


@triton.jit
def _sum_kept(row, V, threshold, last, BLOCK: tl.constexpr):
    """As a block of one, float64."""
    total = tl.zeros([1], tl.float64)
    for start in range(0, V, BLOCK):
        kept, _keys = _kept(row, start + tl.arange(0, BLOCK), V, threshold, last)
        total += tl.sum(kept, 0).to(tl.float64)
    return total


@triton.jit
def _place_of_equal(row, V, threshold, rank, BLOCK: tl.constexpr):
    """Where the `rank`-th of those equal to the threshold is, counted from 1; V where there are fewer."""
    place = tl.zeros([1], tl.int32) + V
    seen = tl.zeros([1], tl.int32)
    for start in range(0, V, BLOCK):
        at = start + tl.arange(0, BLOCK)
        _values, keys = read(row, at, V)
        equal = (keys == threshold) & (at < V)
        found = equal & (seen + tl.cumsum(equal.to(tl.int32), 0) == rank)
        place = tl.minimum(place, tl.min(tl.where(found, at, V), 0))
        seen += tl.sum(equal.to(tl.int32), 0)
    return place


@triton.jit
def _count_above(row, V, threshold, BLOCK: tl.constexpr):
    count = tl.zeros([1], tl.int32)
    for start in range(0, V, BLOCK):
        _values, keys = read(row, start + tl.arange(0, BLOCK), V)
        count += tl.sum((keys > threshold).to(tl.int32), 0)
    return count


@triton.jit
def _find_reaching(row, V, target, threshold, last, BLOCK: tl.constexpr, BITS: tl.constexpr):
    """The greatest key such that what is kept and has it or a greater one adds up to `target`."""
    ways = tl.arange(0, 2**BITS)
    found = tl.zeros([1], tl.uint32)
    for digit in range(32 // BITS):
        candidates = found + (ways.to(tl.uint32) << (32 - BITS * (digit + 1)))
        sums = tl.zeros([BLOCK, 2**BITS], tl.float32)
        for start in range(0, V, BLOCK):
            kept, keys = _kept(row, start + tl.arange(0, BLOCK), V, threshold, last)
            sums += tl.where(keys[:, None] >= candidates[None, :], kept[:, None], 0.0)
        reached = tl.sum(sums, 0) >= target
        best = tl.max(tl.where(reached, ways, 0), 0)
        found = tl.max(tl.where(ways == best, candidates, 0), 0).to(tl.uint32) + tl.zeros([1], tl.uint32)
    return found


@triton.jit
def _limit_to_p(row, V, p, threshold, last, BLOCK: tl.constexpr, BITS: tl.constexpr):
    """The threshold and the last place of the fewest that reach `p` of what was kept so far."""
    column = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)  # added up as the search does, so that the whole always reaches its share
    for start in range(0, V, BLOCK):
        kept, _keys = _kept(row, start + column, V, threshold, last)
        sums += kept
    target = tl.sum(sums, 0) * p
    key = _find_reaching(row, V, target, threshold, last, BLOCK, BITS)
    above = tl.zeros([BLOCK], tl.float32)
    value = tl.zeros([BLOCK], tl.float32)
    for start in range(0, V, BLOCK):
        kept, keys = _kept(row, start + column, V, threshold, last)
        above += tl.where(keys > key, kept, 0.0)
        value = tl.maximum(value, tl.where(keys == key, kept, 0.0))
    each = tl.max(value, 0)
    rank = tl.where(each > 0.0, tl.ceil((target - tl.sum(above, 0)) / each), 1.0)
    place = _place_of_equal(row, V, key, tl.maximum(rank, 1.0).to(tl.int32), BLOCK)
    return key, tl.where(key == threshold, tl.minimum(place, last), place)


@triton.jit
def sampled_rows(
    probabilities, uniform, out, V, stride, k, p,
    FILTER_K: tl.constexpr, FILTER_P: tl.constexpr, BLOCK: tl.constexpr, BITS: tl.constexpr,
):  # fmt: skip
    """`out` gets a place of each row; where rounding keeps the running sum from passing, the last that is kept."""
    program = tl.program_id(0).to(tl.int64)
    row = probabilities + program * stride
    threshold = tl.zeros([1], tl.uint32)
    last = tl.zeros([1], tl.int32) + V
    if FILTER_K:
        threshold = find_kth(row, V, k, BLOCK, BITS)
        last = _place_of_equal(row, V, threshold, k - _count_above(row, V, threshold, BLOCK), BLOCK)
    if FILTER_P:
        threshold, last = _limit_to_p(row, V, p, threshold, last, BLOCK, BITS)
    share = tl.load(uniform + program + tl.arange(0, 1)).to(tl.float64)
    limit = share * _sum_kept(row, V, threshold, last, BLOCK)
    running = tl.zeros([1], tl.float64)
    place = tl.zeros([1], tl.int32) + V
    backup = tl.zeros([1], tl.int32)
    for start in range(0, V, BLOCK):
        at = start + tl.arange(0, BLOCK)
        kept, _keys = _kept(row, at, V, threshold, last)
        passes = (running + tl.cumsum(kept, 0).to(tl.float64) > limit) & (kept > 0.0)
        place = tl.minimum(place, tl.min(tl.where(passes, at, V), 0))
        backup = tl.maximum(backup, tl.max(tl.where(kept > 0.0, at, 0), 0))
        running += tl.sum(kept, 0).to(tl.float64)
    tl.store(out + program + tl.arange(0, 1), tl.where(place < V, place, backup).to(tl.int64))


def top_k_top_p(probabilities: Tensor, uniform: Tensor, *, k: int = 0, p: float = 1.0) -> Tensor:
    """A new int64 [B]: a token of each row of float32 [B, V], drawn by `uniform` float32 [B], in [0, 1).

    `k` 0 or V and more, and `p` 1 and more, filter nothing; at least one token is kept.
    """
    prob_BV = as_rows(probabilities)
    B, V = prob_BV.shape
    out_B = torch.empty(B, dtype=torch.int64, device=probabilities.device)
    with on_device_of(probabilities):
        sampled_rows[(B,)](
            prob_BV, uniform.contiguous(), out_B, V, prob_BV.stride(0), k, max(float(p), 1e-9),
            FILTER_K=0 < k < V, FILTER_P=p < 1, **search_settings(V, sampled_rows),
        )  # fmt: skip
    return out_B
