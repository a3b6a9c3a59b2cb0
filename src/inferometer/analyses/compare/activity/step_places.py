"""In which step a launch was asked for: the step of its process and device that was open then."""

import numpy as np
import polars as pl

from inferometer.analyses.compare.activity.activity import LANE
from inferometer.analyses.nesting import find_innermost

_NEVER = -(1 << 63)


def steps_of_launches(launches: pl.DataFrame, steps: pl.DataFrame) -> pl.Series:
    """The `cycle` of each launch, null where it is in none.

    Args:
        launches: `LANE`, and `asked_ns`: when the host asked for it, null where that isn't known.
        steps: Of `Marks`.
    """
    cycles = [pl.DataFrame(schema={"row": pl.UInt32, "cycle": pl.Int64})]
    for (process, rank, device), own in launches.with_row_index("row").group_by(LANE, maintain_order=True):
        of_lane = steps_of_lane(steps, process, rank, device)
        cycles.append(own.select("row", of_lane["cycle"].gather(step_at(of_lane, own["asked_ns"]))))
    return pl.concat(cycles).sort("row")["cycle"]


def steps_of_lane(steps: pl.DataFrame, process: int | None, rank: int | None, device: str | None) -> pl.DataFrame:
    """The steps of a lane, by start; one of unknown process takes those of its rank."""
    own = steps.filter(pl.col("rank").eq_missing(rank), pl.col("device").is_null() | (pl.col("device") == device))
    if process is not None and own["process"].null_count() < own.height:
        own = own.filter(pl.col("process") == process)
    ordered = own.sort("start_ns", "end_ns").unique("cycle", keep="first", maintain_order=True)
    return ordered.with_columns(pl.col("start_ns").alias("step_start_ns"))


def step_at(steps: pl.DataFrame, asked_ns: pl.Series) -> pl.Series:
    """The row of the step that is open at each time, null where none is; of steps that overlap the innermost."""
    times_ns = asked_ns.fill_null(_NEVER).to_numpy()
    start, end = steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()
    if (start[1:] < end[:-1]).any():
        at = find_innermost(np.zeros_like(start), start, end, np.zeros_like(times_ns), times_ns)
    elif len(start):
        last = np.searchsorted(start, times_ns, side="right") - 1
        at = np.where((last >= 0) & (times_ns < end[last]), last, -1)
    else:
        at = np.full(len(times_ns), -1)
    return pl.Series(at, dtype=pl.Int64).replace(-1, None)
