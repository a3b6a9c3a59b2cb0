"""Breaks between the graphs of compiled code: Torch-Compiled Regions that follow each other within one forward pass.

Dynamo numbers each piece of code that it compiles, `n/m`: the function or what is left of it behind a break, and
which of its versions. A forward pass begins with the first such number on its thread and ends before that comes
again.
"""

import re

import msgspec
import polars as pl

from inferometer.analyses.launched_by.host_side import THREAD
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.evidence.places import BusiestDevice, worst_place

_REGION = re.compile(r"Torch-Compiled Region: (?P<frame>\d{1,9})/(?P<version>\d{1,9})")
_NOBODY = -(2**63)  # stands for null where polars joins by equality only


class Breaks(msgspec.Struct, frozen=True):
    """`graphs`: different pieces of code that a broken forward pass runs, the median; `names`, in order of time.

    `idle_ns`: of `place`, in `gaps` that began before a break and ended with work called for after it.
    """

    place: BusiestDevice
    graphs: float
    names: tuple[str, ...]
    forwards: int
    gaps: int
    idle_ns: int


def find_breaks(launches: LaunchEvidence, late: pl.DataFrame) -> Breaks | None:
    """Where the host was late at breaks; None without any.

    Args:
        launches: Of the trace.
        late: Rows of `LaunchEvidence.gaps` that the host caused.
    """
    regions = _regions(launches)
    if regions.is_empty():
        return None
    forwards = regions.group_by(*THREAD, "forward").agg(
        pl.col("frame").n_unique().alias("graphs"), pl.col("op").first().alias("first")
    )
    broken = forwards.filter(pl.col("graphs") > 1)
    if 2 * broken.height < forwards.height:
        return None
    parted = regions.join(broken, on=[*THREAD, "forward"], how="semi", nulls_equal=True)
    at_breaks = _at_breaks(launches, parted, late)
    worst = worst_place(launches, at_breaks, "gap_ns")
    if worst is None:
        return None
    place, idle_ns = worst
    names = parted.sort("start_ns")["op"].unique(maintain_order=True).to_list()
    graphs = broken["graphs"].median()
    return Breaks(
        place=place,
        graphs=graphs if isinstance(graphs, int | float) else 0,
        names=tuple(names),
        forwards=broken.height,
        gaps=place.of(at_breaks).height,
        idle_ns=idle_ns,
    )


def _regions(launches: LaunchEvidence) -> pl.DataFrame:
    """Regions that lie in no other, with the number of their `frame` and of the `forward` pass on their thread."""
    names = launches.trace.ops.select(pl.col("op").unique()).collect()["op"].to_list()
    frames = {name: int(match["frame"]) for name in names if (match := _REGION.fullmatch(name))}
    rows = launches.trace.ops.filter(pl.col("op").is_in(list(frames))).select("op", *THREAD, "start_ns", "dur_ns")
    ends = pl.col("start_ns") + pl.col("dur_ns")
    regions = rows.collect().sort(*THREAD, "start_ns").with_columns(ends.alias("end_ns"))
    open_until = pl.col("end_ns").cum_max().shift(1).over(THREAD)
    frame = pl.col("op").replace_strict(frames, default=None, return_dtype=pl.Int64).alias("frame")
    outer = regions.filter((pl.col("start_ns") >= open_until).fill_null(value=True)).with_columns(frame)
    begins = (pl.col("frame") == pl.col("frame").first()).over(THREAD)
    return outer.with_columns(begins.cast(pl.Int64).cum_sum().over(THREAD).alias("forward"))


def _at_breaks(launches: LaunchEvidence, regions: pl.DataFrame, late: pl.DataFrame) -> pl.DataFrame:
    """Gaps that ended with work whose call was the first of its thread since it left or entered a region.

    The beginning of a forward pass and its end are no breaks.
    """
    first, last = pl.col("start_ns").min().over(*THREAD, "forward"), pl.col("end_ns").max().over(*THREAD, "forward")
    ends = regions.filter(pl.col("end_ns") < last).select(*THREAD, pl.col("end_ns").alias("break_ns"))
    starts = regions.filter(pl.col("start_ns") > first).select(*THREAD, pl.col("start_ns").alias("break_ns"))
    breaks = pl.concat([ends, starts]).sort("break_ns")
    called = launches.attribution.launches.filter(pl.col("called_ns").is_not_null() & ~pl.col("is_captured"))
    calls = called.select(*THREAD, "called_ns").unique().sort("called_ns")
    before = calls.with_columns(pl.col("called_ns").shift(1).over(THREAD).alias("before_ns"))
    of_thread = [pl.col(name).fill_null(_NOBODY) for name in THREAD]
    found = before.with_columns(of_thread).join_asof(
        breaks.with_columns(of_thread), left_on="called_ns", right_on="break_ns", by=THREAD, check_sortedness=False
    )
    after = found.filter(pl.col("break_ns") >= pl.col("before_ns")).select(*THREAD, "called_ns")
    keyed = late.with_columns(of_thread).join(after, on=[*THREAD, "called_ns"], how="semi")
    return keyed.with_columns(pl.col(name).replace(_NOBODY, None) for name in THREAD)
