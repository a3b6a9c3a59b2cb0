"""Which rows of FlashAttention 3's scheduling metadata serve the unsplit forward: an inference from counts of steps.

`prepare_varlen_num_blocks_kernel<NumWarps>` uses one warp for 31 sequences, so the warps bound the batch (public
source). The output head runs once per step, and its GEMM's tile is at least as wide as the batch. Both order the steps
by batch; so each step of a head GEMM falls on a metadata row. Engines capture batch sizes no denser the larger they
are: the one tile that is denser, by exactly the number of unsplit steps, holds these. Anything that doesn't fit
exactly is no answer.
"""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise

import msgspec

from inferometer.analyses.groups.counts.printed_rows import PrintedRow, launches
from inferometer.analyses.groups.kernel_roles import warps_of_metadata

SEQUENCES_PER_WARP = 31


class UnsplitSteps(msgspec.Struct, frozen=True):
    """`warps`: of the metadata row that serves them; `tile`: tokens that their output head's tile has room for."""

    warps: int
    tile: int
    steps: int
    layers: int


def find_unsplit(metadata: Sequence[PrintedRow], unsplit: int, gemms: Sequence[PrintedRow]) -> UnsplitSteps | None:
    """The metadata row of the `unsplit` launches of the forward; None where the counts don't say.

    Args:
        metadata: Rows of the metadata kernel, one a number of warps.
        unsplit: Launches of the unsplit forward.
        gemms: Rows of matrix products, among them the output head.
    """
    by_warps = sorted((warps_of_metadata(row.kernel) or 0, row.count) for row in metadata)
    total, unit = launches(metadata), math.gcd(*(count for _, count in by_warps))
    tiles = sorted(_head_steps(gemms, unit).items())
    steps = sum(count for _, count in tiles)
    if not steps or total % steps or unsplit % (total // steps):
        return None
    layers = total // steps
    denser = _denser_tile(tiles, unsplit // layers)
    if denser is None or any(count % layers for _, count in by_warps):
        return None
    ends = list(accumulate(count // layers for _, count in by_warps))
    rows = _rows_of_tiles(tiles, ends, [warps for warps, _ in by_warps])
    if rows is None or len(rows[denser]) != 1:
        return None
    return UnsplitSteps(rows[denser][0], tiles[denser][0], unsplit // layers, layers)


def _head_steps(gemms: Sequence[PrintedRow], unit: int) -> Counter[int]:
    """Launches outside the layers, by the tokens that their tile has room for; `unit` repeat with the layers."""
    steps: Counter[int] = Counter()
    main = Counter(gemm.name.dtype for gemm in gemms).most_common(1)
    for gemm in gemms:
        name, rest = gemm.name, gemm.count % unit
        if rest and name.tile_n and (name.layout or "").startswith("TN") and name.dtype == main[0][0]:
            along = (name.cluster or "1x1").split("x")[-1]
            steps[name.tile_n * int(along)] += rest
    return steps


def _denser_tile(tiles: Sequence[tuple[int, int]], steps: int) -> int | None:
    """The one tile without whose `steps` the batch sizes get no denser as they grow."""
    widths = [wide - narrow for narrow, wide in pairwise([0, *(tile for tile, _ in tiles)])]
    counts = [count for _, count in tiles]
    found = [
        at
        for at, count in enumerate(counts)
        if count > steps
        and _never_rises(
            [(n - steps * (i == at)) / width for i, (n, width) in enumerate(zip(counts, widths, strict=True))]
        )
    ]
    return found[0] if len(found) == 1 else None


def _never_rises(values: Sequence[float]) -> bool:
    return all(after <= before for before, after in pairwise(values))


def _rows_of_tiles(
    tiles: Sequence[tuple[int, int]], ends: Sequence[int], warps: Sequence[int]
) -> list[list[int]] | None:
    """The metadata rows, by warps, that the steps of each tile fall on; None where a tile is too narrow for one."""
    found, done = [], 0
    for tile, count in tiles:
        on = [i for i, end in enumerate(ends) if end > done and (ends[i - 1] if i else 0) < done + count]
        least = SEQUENCES_PER_WARP * (warps[on[-1] - 1] if on[-1] else 0) + 1
        if tile < least:
            return None
        found.append([warps[i] for i in on])
        done += count
    return found
