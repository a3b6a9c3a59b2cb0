"""Idle time by what it takes to end it: each idle gap belongs to one kind, so the kinds add up to the idle time.

- `launching`: the rhythm of launching kernels one by one. The host's next launch came after the device had gone idle,
  and no more time passed than is usual between launches. Usual is 50 μs. Where half or more of
  the kernels that were launched one by one found the device idle, it is four times the median time between launches
  if that is longer: then the host is slower than the device, and its rhythm is what the device waits for. Fewer than
  50 kernels are no rhythm: there all lateness is of the next kind.
- `host`: the host was late by more than that, or had waited for the device.
- `queued`: the work had been queued and did not begin.
- `graph`: between launches that one call queued together.
- `unknown`: the call that queued the work isn't in the file.
- `recorder`: the recording itself was cut there.
"""

from typing import Final, Literal

import numpy as np
import polars as pl

from inferometer.analyses.batches import first_rows, whole_groups
from inferometer.analyses.numbering import number_rows, order_in_time
from inferometer.analyses.timeline.gaps import CAUSES
from inferometer.analyses.timeline.work import PLACE
from inferometer.findings.finding import Scale
from inferometer.trace.lean import aggregate

IdleKind = Literal["launching", "host", "queued", "graph", "unknown", "recorder"]
KINDS: Final[tuple[IdleKind, ...]] = ("launching", "host", "queued", "graph", "unknown", "recorder")
LONG_GAP_NS: Final = 50_000
"""Eager launches follow each other within 5 to 30 μs in captures of PyTorch; a gap of more is no launch's cost."""

LAUNCHING_SCALE: Final = Scale("launch_bound", low=0.05, medium=0.12, high=0.30)
"""Severity of `launch_bound`, by the share of the window."""

FEW: Final = 50
"""Launches; fewer are no rhythm."""

_TIMES_USUAL: Final = 4
_MOSTLY: Final = 0.5
_OF_CAUSE: Final[dict[str, IdleKind]] = {
    "host_late": "host",
    "sync": "host",
    "dependency": "queued",
    "launch_gap": "queued",
    "graph": "graph",
    "unknown": "unknown",
    "recorder": "recorder",
}


def with_kinds(gaps: pl.DataFrame, kernels: pl.DataFrame) -> pl.DataFrame:
    """`gaps` with `kind`, and `gap`: rows of one number follow each other without work between.

    Args:
        gaps: Rows of `LaunchEvidence.gaps`, in order of place and time.
        kernels: Those launched one by one: `rank`, `device`, `process`, `thread`, `called_ns`.
    """
    place = (pl.col("rank"), pl.col("device"))
    begins = pl.col("gap_start_ns") != (pl.col("gap_start_ns") + pl.col("gap_ns")).shift(1)
    starts = (begins | pl.any_horizontal(column.ne_missing(column.shift(1)) for column in place)).fill_null(value=True)
    numbered = gaps.with_columns(starts.cum_sum().cast(pl.UInt32).alias("gap"))
    is_late = (pl.col("cause") == "host_late") & pl.col("waited_in").is_null() & ~_is_replay()
    late = numbered.select(*PLACE, "gap_ns", is_late.alias("is_late")).with_row_index("row").filter("is_late")
    limited = late.join(_limits(late, kernels), on=PLACE, nulls_equal=True)
    launching = limited.filter(pl.col("gap_ns") <= pl.col("limit_ns"))["row"]
    of_cause = pl.Series([KINDS.index(_OF_CAUSE[cause]) for cause in CAUSES], dtype=pl.UInt8)
    kind = of_cause.gather(numbered["cause"].to_physical()).scatter(launching, KINDS.index("launching"))
    return numbered.hstack([pl.Series("kind", KINDS, dtype=pl.Enum(KINDS)).gather(kind)])


def _is_replay() -> pl.Expr:
    """Also true where what ended the gap isn't known."""
    return pl.col("is_replay").fill_null(value=True)


def _limits(late: pl.DataFrame, kernels: pl.DataFrame) -> pl.DataFrame:
    """How late the rhythm of launching may come at each place: `limit_ns`."""
    lane, _ = number_rows(kernels.select(*PLACE, "process", "thread"))
    order = order_in_time(lane, kernels["called_ns"].to_numpy())
    rows = kernels.select(*PLACE, "called_ns", pl.Series("lane", lane))
    is_same = pl.col("lane") == pl.col("lane").shift(1)
    spaced = (rows if order is None else rows[order]).select(
        *PLACE, pl.when(is_same).then(pl.col("called_ns").diff()).alias("between_ns")
    )
    between = aggregate(spaced, PLACE, pl.col("between_ns").median(), pl.len().alias("kernels"))
    counted = aggregate(late, PLACE, pl.len().alias("late"))
    each = between.join(counted, on=PLACE, how="left", nulls_equal=True)
    is_slow = pl.col("late").fill_null(0) >= _MOSTLY * pl.col("kernels")
    usual = (_TIMES_USUAL * pl.col("between_ns")).clip(lower_bound=LONG_GAP_NS).cast(pl.Int64)
    of_rhythm = pl.when(is_slow).then(usual).otherwise(LONG_GAP_NS)
    return each.select(*PLACE, pl.when(pl.col("kernels") >= FEW).then(of_rhythm).otherwise(0).alias("limit_ns"))


def count_gaps(rows: pl.DataFrame) -> tuple[int, int]:
    """How many gaps these rows are of, in order, and the most time of one gap that they have."""
    if not rows.height:
        return 0, 0
    gap, length_ns = rows["gap"].to_numpy(), rows["gap_ns"].to_numpy()
    count = longest_ns = 0
    for part in whole_groups(gap):
        first = first_rows(gap[part])
        count += len(first)
        longest_ns = max(longest_ns, int(np.add.reduceat(length_ns[part], first).max()))
    return count, longest_ns
