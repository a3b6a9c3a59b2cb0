# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Floats as whole numbers of the same order, and the search for a row's k-th largest, in a kernel.

The search goes over the row once for every `BITS` bits of the answer, from the highest: each time it counts how many
are at least each of 2^BITS candidates. It is exact, needs no sort, no other memory, and takes rows of any length.
"""

from typing import Any

import triton
import triton.language as tl

from inferometer.backends.triton.kernels._launching import interpreted

PART = 1_024
"""The most numbers of a row that a program holds at once, with a count for each candidate."""

_BITS = 4
_INTERPRETED_BITS = 8  # a step takes the same time there however many candidates it has


def search_settings(V: int, kernel: Any) -> dict[str, int]:
    """Sizes of a search in rows of V, and the warps for it."""
    bits = _INTERPRETED_BITS if interpreted(kernel) and V <= PART else _BITS
    return {"BLOCK": min(int(triton.next_power_of_2(V)), PART), "BITS": bits, "num_warps": 8 if V >= PART else 4}


@triton.jit
def ordered(x):
    """uint32 in the order of float32, above 0; NaN is the greatest, and -0 is 0."""
    bits = tl.where(x == 0.0, 0.0, x).to(tl.uint32, bitcast=True)
    keys = tl.where((bits >> 31) != 0, bits ^ 0xFFFFFFFF, bits | 0x80000000)
    return tl.where(x == x, keys, 0xFFFFFFFF).to(tl.uint32)


@triton.jit
def read(row, at, V):
    """Values as they are, and their keys; of places beyond the end 0, whose key is below every value's."""
    values = tl.load(row + at, mask=at < V, other=0.0)
    return values, tl.where(at < V, ordered(values.to(tl.float32)), 0).to(tl.uint32)


@triton.jit
def find_kth(row, V, k, BLOCK: tl.constexpr, BITS: tl.constexpr):
    """The key of the k-th largest of a row of V, counted from 1; as a block of one."""
    ways = tl.arange(0, 2**BITS)
    found = tl.zeros([1], tl.uint32)
    for digit in range(32 // BITS):
        candidates = found + (ways.to(tl.uint32) << (32 - BITS * (digit + 1)))
        counts = tl.zeros([BLOCK, 2**BITS], tl.int32)
        for start in range(0, V, BLOCK):
            _values, keys = read(row, start + tl.arange(0, BLOCK), V)
            counts += (keys[:, None] >= candidates[None, :]).to(tl.int32)
        reached = tl.sum(counts, 0) >= k
        best = tl.max(tl.where(reached, ways, 0), 0)
        found = tl.max(tl.where(ways == best, candidates, 0), 0).to(tl.uint32) + tl.zeros([1], tl.uint32)
    return found
