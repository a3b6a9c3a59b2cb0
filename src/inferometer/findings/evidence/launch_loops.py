"""Loops of equal launches: one to three kernels that follow each other eight times or more without a pause.

Launches are equal by kernel, grid and block. A loop over sequences or heads (sampling row by row) looks so. What holds
a product, a convolution or attention is left out: small layers and recurrent cells look so, too, whose turns each need
the one before, and nothing tells them from a loop over requests. A loop that occurs once or twice is left out, as
tuners make them that time one kernel after the other; so are copies, which may have to wait for the host each time,
and what alternates with work on other streams: there, a layer's few kernels look like a loop. Launches over lists of
tensors (`multi_tensor_apply`) are batched already: a launch takes as many tensors as its arguments hold.
"""

import numpy as np
import polars as pl

from inferometer.findings.evidence.kernel_rows import ATTENTION, PRODUCTS, Bools, Ints, KernelRows

_OF_LISTS = "multi_tensor_apply"
_TURNS = 8
_TIMES = 3
_OTHERS = 0.5  # launches on other streams for one of the loop, at most
_LONGEST = 3  # launches per turn


def find_loops(rows: KernelRows) -> pl.DataFrame:
    """One row per loop: `first` (of `rows`), `length` (launches per turn), `turns`, `launches` and times.

    `kernel` is the number of its first one. `wall_ns` is from the first start to the last end, `gaps_ns` what of it is
    between launches, `turn_ns` the device time of a turn (mean).
    """
    sign = _signs(rows)
    taken = rows.of_family("memory", "collective", *PRODUCTS, *ATTENTION) | rows.each(lambda name, _: _OF_LISTS in name)
    stretch = np.cumsum(rows.begins, dtype=np.int32)
    found = [_frame(rows, np.zeros(0, np.int64), np.zeros(0, np.int64), 1)]
    for length in range(1, min(_LONGEST, len(sign) - 1) + 1):
        same = np.zeros(len(sign), dtype=np.bool_)
        same[length:] = (sign[length:] == sign[:-length]) & (stretch[length:] == stretch[:-length])
        same[length:] &= ~taken[length:] & ~taken[:-length]
        first, end = rows.runs(same)
        enough = end - first >= (_TURNS - 1) * length
        first, end = first[enough] - length, end[enough]
        found.append(_frame(rows, first, end, length))
        _mark(taken, first, end)
    loops = pl.concat(found)
    kinds = loops.with_columns(pl.Series("kernel", rows.kernel[loops["first"].to_numpy()]))
    alone = kinds.filter(_runs_alone(rows, kinds))
    return alone.filter(pl.len().over("kernel", "length") >= _TIMES)


def _frame(rows: KernelRows, first: Ints, end: Ints, length: int) -> pl.DataFrame:
    count = end - first
    turns, at = count // length, np.cumsum(count) - count  # where each loop begins among the launches of all loops
    row = np.arange(count.sum()) + np.repeat(first - at, count)
    start, dur = rows.start_ns[row], rows.dur_ns[row]
    gap = np.maximum(0, start - np.concatenate([start[:1], (start + dur)[:-1]]))  # no loop holds a pause
    gap[at] = 0
    return pl.DataFrame(
        {
            "first": first,
            "length": np.full(len(first), length, dtype=np.int64),
            "turns": turns,
            "launches": count,
            "wall_ns": (start + dur)[at + count - 1] - start[at],
            "gaps_ns": np.add.reduceat(gap, at) if len(at) else count,
            "turn_ns": (np.add.reduceat(dur, at) if len(at) else count) // np.maximum(turns, 1),
        }
    )


def _runs_alone(rows: KernelRows, loops: pl.DataFrame) -> pl.Series:
    """Whether hardly anything runs on other streams of the device meanwhile."""
    if loops.is_empty():
        return pl.Series(dtype=pl.Boolean)
    first = loops["first"].to_numpy()
    inside = np.zeros(len(first), dtype=np.int64)
    for number in np.unique(rows.device[first]):
        begun = np.sort(rows.start_ns[rows.device == number])
        own = rows.device[first] == number
        opened = rows.start_ns[first[own]]
        closed = opened + loops["wall_ns"].to_numpy()[own]
        inside[own] = np.searchsorted(begun, closed) - np.searchsorted(begun, opened)
    return pl.Series(inside) <= (1 + _OTHERS) * loops["launches"]


def _mark(taken: Bools, first: Ints, end: Ints) -> None:
    change = np.zeros(len(taken) + 1, dtype=np.int64)
    np.add.at(change, first, 1)
    np.add.at(change, end, -1)
    taken |= np.cumsum(change)[:-1] > 0


def _signs(rows: KernelRows) -> np.ndarray:
    """A number for kernel, grid and block; equal for equal launches, for others as unlikely as 64 random bits."""
    sign = rows.kernel.astype(np.uint64)
    sign *= np.uint64(0x9E3779B97F4A7C15)
    sign += rows.work["shape_hash"].to_numpy()
    return sign
