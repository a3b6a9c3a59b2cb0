"""How long groups of copies or collectives ran while nothing on the device could hide them, and what copies moved."""

from typing import Any

import numpy as np
import polars as pl

from inferometer.analyses.cover import Cover
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.evidence.places import BusiestDevice

_KEY = ("rank", "device", "stream", "kernel", "start_ns", "dur_ns")


def sum_exposed(
    launches: LaunchEvidence, place: BusiestDevice, rows: pl.DataFrame, by: tuple[str, ...], *hiding: str
) -> pl.DataFrame:
    """One row per group of launches, the most exposed first: `by`, `count`, `dur_ns` (summed), `exposed_ns`.

    That is the time in which at least one of the group runs and no work of the sorts `hiding` does. Groups that run at
    the same time both count it.

    Args:
        launches: Of the trace.
        place: The device of `rows`.
        rows: Launches: `by`, `start_ns` and `dur_ns`.
        by: Columns that make a group.
        hiding: Some of `work.SORTS`.
    """
    work = place.of(launches.device_work.launches)
    hidden = work.filter(pl.col("sort").is_in(list(hiding)))
    cover = Cover.of(hidden["start_ns"].to_numpy(), hidden["end_ns"].to_numpy())
    times = (pl.col("start_ns"), (pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns"))
    groups = rows.group_by(by).agg(pl.len().cast(pl.Int64).alias("count"), pl.col("dur_ns").sum(), *times)
    exposed = [
        _time_outside(cover, starts.to_numpy(), ends.to_numpy())
        for starts, ends in zip(groups["start_ns"], groups["end_ns"], strict=True)
    ]
    summed = groups.drop("start_ns", "end_ns").with_columns(pl.Series("exposed_ns", exposed, dtype=pl.Int64))
    return summed.sort("exposed_ns", *by, descending=[True, *(False for _ in by)])


def _time_outside(cover: Cover, start_ns: np.ndarray[Any, Any], end_ns: np.ndarray[Any, Any]) -> int:
    own = Cover.of(start_ns, end_ns)
    return int((own.end_ns - own.start_ns - cover.within(own.start_ns, own.end_ns)).sum())


def copied_bytes(launches: LaunchEvidence, rows: pl.DataFrame) -> pl.Series:
    """The bytes that the source records of each of these copies, null where it records none.

    Args:
        launches: Of the trace.
        rows: Launches: `rank`, `device`, `stream`, `kernel`, `start_ns` and `dur_ns`, in any order; text or categories.
    """
    texts = pl.col("kernel", "device").cast(pl.String)
    number = pl.int_range(pl.len()).over(_KEY).alias("number")  # of launches that are equal in all of that
    copies = (
        launches.trace.compact("launches").filter(pl.col("kind").is_in(["memcpy", "memset"])).select(*_KEY, "bytes")
    )
    recorded = copies.with_columns(texts).with_columns(number).collect()
    asked = rows.select(_KEY).with_columns(texts).with_columns(number)
    on = [*_KEY, "number"]
    return asked.join(recorded, on=on, how="left", nulls_equal=True, maintain_order="left")["bytes"]
