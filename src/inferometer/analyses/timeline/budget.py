"""The device-time budget: one table whose rows add up to each device's window.

Each moment of the window belongs to one row. While kernels compute, it is the row of their family; where kernels of
several families run at once, a row of its own. While communication runs and nothing computes, it is exposed
communication; while a copy or memory set runs alone, an exposed copy. The rest is idle time, a row per cause of
`analyses.timeline.gaps`. Work that hides behind other work takes no time here; `analyses.timeline.exposure` has it.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.batches import batches
from inferometer.analyses.cover import Cover
from inferometer.analyses.intervals import Times, covered_ns
from inferometer.analyses.numbering import find_rows, sum_by
from inferometer.analyses.timeline.work import PLACE, SORTS, Work
from inferometer.names import decode
from inferometer.trace.lean import aggregate

COMPUTE, SEVERAL, COMMUNICATION, COPIES, IDLE = "compute", "several", "communication", "copies", "idle"
_ORDER: Final = (COMPUTE, SEVERAL, COMMUNICATION, COPIES, IDLE)
_WHOLE_GRAPHS: Final = "whole graphs"
_WORDS: Final = {  # of rows that stand for no family
    SEVERAL: "kernels of several families at once",
    COMMUNICATION: "exposed communication",
    COPIES: "exposed copies and sets",
}
_CAUSES: Final = {
    "host_late": "idle: the host was late",
    "sync": "idle: after a wait of the host",
    "dependency": "idle: queued work waited",
    "launch_gap": "idle: between queued launches",
    "graph": "idle: between the launches of one call",
    "unknown": "idle: no host call recorded",
    "recorder": "idle: the recording was cut",
}
SCHEMA: Final = {
    "rank": pl.Int64,
    "device": pl.String,
    "sort": pl.String,
    "name": pl.String,
    "time_ns": pl.Int64,
    "share": pl.Float64,
    "count": pl.Int64,
}


def time_budget(work: Work, gaps: pl.DataFrame) -> pl.DataFrame:
    """Rows of each place, that add up to its window.

    Args:
        work: The launches.
        gaps: Of the same work: `rank`, `device`, `cause`, `gap_ns`.

    Returns:
        `rank`, `device`; `sort`, one of compute, several, communication, copies, idle; `name`: the kernel family, or
        the cause of idle time, null for the others; `time_ns` and its `share` of the window (null where that has no
        length); `count`: launches of the family or sort, those that ran hidden included, or idle gaps; null where
        several families ran at once. By place, sort and time.
    """
    cut = work.cut().select("place", "sort", "kind", "kernel", "start_ns", "end_ns")
    families = _families(cut)
    rows = [
        {"place": place, "sort": sort, "name": name, "time_ns": time_ns, "count": count}
        for place, own in _by_place(cut)
        for sort, name, time_ns, count in _place_rows(own, families)
    ]
    schema = {"place": pl.UInt32, **{name: SCHEMA[name] for name in ("sort", "name", "time_ns", "count")}}
    window = work.places.select("place", *PLACE, (pl.col("to_ns") - pl.col("from_ns")).alias("window_ns"))
    busy = pl.DataFrame(rows, schema=schema, orient="row").join(window, on="place")
    idle = (
        aggregate(
            gaps, [*PLACE, "cause"], pl.col("gap_ns").sum().alias("time_ns"), pl.len().cast(pl.Int64).alias("count")
        )
        .with_columns(pl.lit(IDLE).alias("sort"), pl.col("cause").cast(pl.String).alias("name"))
        .with_columns(pl.col("device").cast(pl.String))
        .join(window.with_columns(pl.col("device").cast(pl.String)), on=PLACE, nulls_equal=True)
    )
    columns = ("place", *PLACE, "sort", "name", "time_ns", "count", "window_ns")
    both = pl.concat([frame.with_columns(pl.col("device").cast(pl.String)).select(columns) for frame in (busy, idle)])
    order = pl.col("sort").replace_strict({sort: n for n, sort in enumerate(_ORDER)}, return_dtype=pl.Int64)
    return (
        both.with_columns((pl.col("time_ns") / pl.col("window_ns")).fill_nan(None).alias("share"))
        .sort("place", order, pl.col("time_ns"), pl.col("name"), descending=[False, False, True, False])
        .select(pl.col(name).cast(dtype) for name, dtype in SCHEMA.items())
    )


def describe_part(sort: str, name: str | None) -> str:
    """A row of the budget in words: `gemm kernels`, `exposed copies and sets`, `idle: the host was late`."""
    if sort == IDLE:
        return _CAUSES[name or "unknown"]
    return f"{(name or 'other').replace('_', ' ')} kernels" if sort == COMPUTE else _WORDS[sort]


def part_key(sort: str, name: str | None = None) -> str:
    """What names a row: `compute.gemm`, `idle.host_late`, `communication`."""
    return sort if name is None else f"{sort}.{name}"


def _by_place(cut: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    """The launches of each place, which stand together."""
    for place, first, count in (
        cut.with_row_index("row").group_by("place").agg(pl.col("row").first(), pl.len()).sort("place").iter_rows()
    ):
        yield place, cut.slice(first, count)


def _families(cut: pl.DataFrame) -> pl.DataFrame:
    """The family of each name that computes: `kind`, `kernel`, `family`."""
    names = cut.lazy().filter(pl.col("sort") == "compute").select("kind", "kernel").unique().collect()
    known = [_WHOLE_GRAPHS if kind == "graph" else decode(kernel).family for kind, kernel in names.iter_rows()]
    return names.with_columns(pl.Series("family", known, dtype=pl.String))


def _place_rows(own: pl.DataFrame, families: pl.DataFrame) -> Iterator[tuple[str, str | None, int, int | None]]:
    """Sort, name, time and count of all that ran on one place."""
    start_ns, end_ns = (own[name].to_numpy() for name in ("start_ns", "end_ns"))
    sorts = own["sort"].to_physical().to_numpy()
    computes = sorts == SORTS.index("compute")
    names, of = _numbered(own.select("kind", "kernel").filter(pl.Series(computes)), families)
    alone, several_ns = _alone(start_ns[computes], end_ns[computes], of, len(names))
    counts = np.zeros(len(names), dtype=np.int64)
    for part in batches(len(of)):
        counts += np.bincount(of[part], minlength=len(names))
    for name, time_ns, count in zip(names, alone.tolist(), counts.tolist(), strict=True):
        if count:
            yield COMPUTE, name, time_ns, count
    if several_ns:
        yield SEVERAL, None, several_ns, None
    busy_ns = int(alone.sum()) + several_ns
    for sort, what in ((COMMUNICATION, "communication"), (COPIES, "copy")):
        number = SORTS.index(what)
        if count := int(np.count_nonzero(sorts == number)):
            so_far = sorts <= number
            starts, ends = (start_ns, end_ns) if so_far.all() else (start_ns[so_far], end_ns[so_far])
            covered = covered_ns(starts, ends)
            yield sort, None, covered - busy_ns, count
            busy_ns = covered


def _numbered(compute: pl.DataFrame, families: pl.DataFrame) -> tuple[list[str], NDArray[np.int16]]:
    """All families, sorted, and the number of each of these launches'."""
    of = find_rows(families.select("kind", "kernel"), compute).to_numpy()
    names, number = np.unique(families["family"].to_numpy(), return_inverse=True)
    return names.tolist(), number.astype(np.int16)[of]


def _alone(start_ns: Times, end_ns: Times, of: NDArray[np.int16], groups: int) -> tuple[Times, int]:
    """Time in which intervals of one group alone are open, by group, and time in which those of several are.

    Args:
        start_ns: Starts in order. Shape (n,), as the next two.
        end_ns: Ends, exclusive.
        of: The group of each, from 0.
        groups: How many there are.
    """
    sums = np.zeros(groups, dtype=np.int64)
    for part in batches(len(of)):
        sums += sum_by(of[part], end_ns[part] - start_ns[part], groups)
    if covered_ns(start_ns, end_ns) == sums.sum():  # nothing overlaps
        return sums, 0
    covers = [Cover.of(start_ns[of == group], end_ns[of == group]) for group in range(groups)]
    sizes = [len(cover.start_ns) for cover in covers]
    member = np.repeat(np.arange(groups), sizes)
    times = np.concatenate([*(cover.start_ns for cover in covers), *(cover.end_ns for cover in covers), [0]])[:-1]
    order = np.argsort(times, kind="stable")
    sign = np.repeat([1, -1], [len(member), len(member)])
    open_groups = np.cumsum(sign[order])[:-1]
    sum_of_open = np.cumsum((sign * np.concatenate([member, member]))[order])[:-1]
    length = np.diff(times[order])
    one = open_groups == 1
    return sum_by(sum_of_open[one], length[one], groups), int(length[open_groups > 1].sum())
