"""The device-time budget: one table whose rows add up to each device's window.

Each moment of the window belongs to one row. While kernels compute, it is the row of their family; where kernels of
several families run at once, a row of its own. While communication runs and nothing computes, it is exposed
communication; while a copy or memory set runs alone, an exposed copy. The rest is idle time, a row per cause of
`analyses.timeline.gaps`. Work that hides behind other work takes no time here; `analyses.timeline.exposure` has it.
"""

from typing import Final

import numpy as np
import polars as pl

from inferometer.analyses.cover import Cover
from inferometer.analyses.intervals import Times
from inferometer.analyses.timeline.work import PLACE, Work
from inferometer.names import decode

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
    cut = work.cut()
    families = _families(cut)
    parts = [
        _place_rows(cut.filter(pl.col("place") == place), families) | {"place": place}
        for place in work.places["place"].to_list()
    ]
    rows = [
        {"place": part["place"], "sort": sort, "name": name, "time_ns": time_ns, "count": count}
        for part in parts
        for sort, name, time_ns, count in part["rows"]
    ]
    schema = {"place": pl.UInt32, **{name: SCHEMA[name] for name in ("sort", "name", "time_ns", "count")}}
    window = work.places.select("place", *PLACE, (pl.col("to_ns") - pl.col("from_ns")).alias("window_ns"))
    busy = pl.DataFrame(rows, schema=schema, orient="row").join(window, on="place")
    idle = (
        gaps.group_by(*PLACE, pl.col("cause").cast(pl.String).alias("name"))
        .agg(pl.col("gap_ns").sum().alias("time_ns"), pl.len().cast(pl.Int64).alias("count"))
        .with_columns(pl.lit(IDLE).alias("sort"), pl.col("device").cast(pl.String))
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


def _families(cut: pl.DataFrame) -> pl.DataFrame:
    """The family of each name that computes: `kind`, `kernel`, `family`."""
    names = cut.filter(pl.col("sort") == "compute").select("kind", "kernel").unique()
    known = [_WHOLE_GRAPHS if kind == "graph" else decode(kernel).family for kind, kernel in names.iter_rows()]
    return names.with_columns(pl.Series("family", known, dtype=pl.String))


def _place_rows(cut: pl.DataFrame, families: pl.DataFrame) -> dict[str, list[tuple[str, str | None, int, int | None]]]:
    """Sort, name, time and count of all that ran on one place."""
    compute = cut.filter(pl.col("sort") == "compute").join(families, on=["kind", "kernel"], maintain_order="left")
    names = sorted(compute["family"].unique())
    number = compute["family"].replace_strict({name: n for n, name in enumerate(names)}, return_dtype=pl.Int64)
    of = number.to_numpy() if names else np.zeros(0, dtype=np.int64)
    alone, several_ns = _alone(*_times(compute), of, len(names))
    counts = np.bincount(of, minlength=len(names))
    rows: list[tuple[str, str | None, int, int | None]] = [
        (COMPUTE, name, int(alone[n]), int(counts[n])) for n, name in enumerate(names)
    ]
    if several_ns:
        rows.append((SEVERAL, None, several_ns, None))
    busy_ns = int(alone.sum()) + several_ns
    for sort, what, kinds in (
        (COMMUNICATION, "communication", ("compute", "communication")),
        (COPIES, "copy", ("compute", "communication", "copy")),
    ):
        count = cut.filter(pl.col("sort") == what).height
        if count:
            until_now = Cover.of(*_times(cut.filter(pl.col("sort").is_in(kinds))))
            covered_ns = int((until_now.end_ns - until_now.start_ns).sum())
            rows.append((sort, None, covered_ns - busy_ns, count))
            busy_ns = covered_ns
    return {"rows": rows}


def _times(rows: pl.DataFrame) -> tuple[Times, Times]:
    return rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()


def _alone(start_ns: Times, end_ns: Times, of: Times, groups: int) -> tuple[Times, int]:
    """Time in which intervals of one group alone are open, by group, and time in which those of several are.

    Args:
        start_ns: Starts in order. Shape (n,), as the next two.
        end_ns: Ends, exclusive.
        of: The group of each, from 0.
        groups: How many there are.
    """
    if len(start_ns) and (start_ns[1:] >= np.maximum.accumulate(end_ns)[:-1]).all():  # nothing overlaps
        return _sums(of, end_ns - start_ns, groups), 0
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
    return _sums(sum_of_open[one], length[one], groups), int(length[open_groups > 1].sum())


def _sums(of: Times, length: Times, groups: int) -> Times:
    """The sum of each group, exact: times of a run are far below 2^53 ns."""
    return np.bincount(of, weights=length, minlength=groups).astype(np.int64)
