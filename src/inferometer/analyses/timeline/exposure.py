"""Where a device's window went: compute, exposed communication, exposed copies, idle; and the same of its streams.

Times are unions of intervals within the window. Communication is *exposed* while it runs and no compute does; a copy
while neither does. So compute, exposed communication, exposed copies and idle time add up to the window.
"""

from typing import Self

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.intervals import Times, busy_sums, concurrent_sums, longest_pauses
from inferometer.analyses.numbering import number_groups
from inferometer.analyses.timeline.work import PLACE, SORTS, Work


def device_exposure(work: Work, cut: pl.DataFrame) -> pl.DataFrame:
    """One row per place, in their order; `cut` are its launches cut to the window, `Work.cut`.

    `concurrent_ns`: at least two launches were open. A share is null where what it is of has no length.
    """
    busy = _Cut.of(cut, work.places.height)
    counted = cut.group_by("place").agg(
        pl.len().cast(pl.Int64).alias("launches"), pl.col("dur_ns").sum().alias("summed_ns")
    )
    columns = {
        "busy_ns": busy.time(*SORTS),
        "compute_busy_ns": busy.time("compute"),
        "communication_busy_ns": busy.time("communication"),
        "copy_busy_ns": busy.time("copy"),
        "kernel_busy_ns": busy.time("compute", "communication"),
        "concurrent_ns": concurrent_sums(busy.place, busy.start_ns, busy.end_ns, busy.places),
    }
    times = work.places.with_columns(pl.Series(name, column, dtype=pl.Int64) for name, column in columns.items())
    times = times.join(counted, on="place", how="left")
    window, exposed = pl.col("to_ns") - pl.col("from_ns"), pl.col("kernel_busy_ns") - pl.col("compute_busy_ns")
    hidden = 1 - pl.col("exposed_communication_ns") / pl.col("communication_busy_ns")
    return (
        times.sort("place")
        .with_columns(pl.selectors.integer().exclude("place", "rank").fill_null(0))
        .with_columns(
            window.alias("window_ns"),
            (window - pl.col("busy_ns")).alias("idle_ns"),
            exposed.alias("exposed_communication_ns"),
            (pl.col("busy_ns") - pl.col("kernel_busy_ns")).alias("exposed_copy_ns"),
        )
        .with_columns(
            (pl.col("busy_ns") / pl.col("window_ns")).fill_nan(None).alias("busy_share"),
            hidden.fill_nan(None).alias("hidden_communication_share"),
        )
        .select(
            *(*PLACE, "launches", "from_ns", "window_ns", "busy_share", "busy_ns", "idle_ns", "compute_busy_ns"),
            *("communication_busy_ns", "exposed_communication_ns", "hidden_communication_share"),
            *("copy_busy_ns", "exposed_copy_ns", "concurrent_ns", "summed_ns"),
        )
    )


class _Cut(msgspec.Struct, frozen=True):
    """Launches by place and start, at so many places. `sort` numbers `SORTS`."""

    place: Times
    start_ns: Times
    end_ns: Times
    sort: NDArray[np.uint8]
    places: int

    @classmethod
    def of(cls, cut: pl.DataFrame, places: int) -> Self:
        start, end = (cut[name].to_numpy() for name in ("start_ns", "end_ns"))
        place = np.zeros(cut.height, dtype=np.int64) if places == 1 else cut["place"].cast(pl.Int64).to_numpy()
        return cls(place, start, end, cut["sort"].to_physical().to_numpy(), places)

    def time(self, *sorts: str) -> Times:
        """Busy time of each place in work of these sorts."""
        some = np.isin(self.sort, [SORTS.index(sort) for sort in sorts])
        if some.all():
            return busy_sums(self.place, self.start_ns, self.end_ns, self.places)
        start, end = self.start_ns[some], self.end_ns[some]
        place = self.place[: len(start)] if self.places == 1 else self.place[some]
        return busy_sums(place, start, end, self.places)


def stream_times(cut: pl.DataFrame, devices: pl.DataFrame) -> pl.DataFrame:
    """One row per stream of a place, the busiest first. `mostly` is the sort with the largest sum of durations."""
    by = ["place", "stream"]
    sums = cut.group_by(*by, "sort").agg(pl.col("dur_ns").sum()).sort("dur_ns", "sort", descending=[True, False])
    mostly = sums.group_by(by, maintain_order=True).agg(pl.col("sort").first().cast(pl.String).alias("mostly"))
    counted = cut.group_by(by).agg(pl.len().cast(pl.Int64).alias("launches"), pl.col("dur_ns").sum().alias("summed_ns"))
    number, streams = number_groups(cut.select(by))
    times = (number, cut["start_ns"].to_numpy(), cut["end_ns"].to_numpy(), streams.height)
    streams = streams.with_columns(
        pl.Series("busy_ns", busy_sums(*times)), pl.Series("longest_gap_ns", longest_pauses(*times))
    )
    places = devices.with_row_index("place").select("place", *PLACE, "window_ns")
    return (
        streams.join(counted, on=by, nulls_equal=True)
        .join(mostly, on=by, nulls_equal=True)
        .join(places, on="place")
        .with_columns(
            (pl.col("busy_ns") / pl.col("window_ns")).fill_nan(None).alias("busy_share"),
            pl.when(pl.col("launches") > 1).then("longest_gap_ns"),
        )
        .sort("place", "busy_ns", "stream", descending=[False, True, False], nulls_last=True)
        .select(*PLACE, "stream", "mostly", "launches", "busy_share", "busy_ns", "summed_ns", "longest_gap_ns")
    )
