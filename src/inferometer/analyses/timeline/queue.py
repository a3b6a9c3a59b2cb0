"""How many launches wait for a device, over time: those whose host call has begun and which the device has not.

Worked out exactly from the beginnings and ends of waiting, not by sampling. Each device's own window (first launch to
last end) falls into three parts: busy, idle with work queued (launch latency, or a wait for another stream), and
starved: idle with nothing queued, so that the host was late. Launches without a call in the file are in no queue, but
keep the device busy.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from inferometer.analyses.cover import Cover
from inferometer.analyses.intervals import Times

BINS = 60
_MARKS = "▁▂▃▄▅▆▇█"
DEVICE_SCHEMA = {
    "rank": pl.Int64,
    "device": pl.String,
    "launches": pl.Int64,
    "queued_launches": pl.Int64,
    "start_ns": pl.Int64,
    "window_ns": pl.Int64,
    "mean_depth": pl.Float64,
    "max_depth": pl.Int64,
    "busy_ns": pl.Int64,
    "queued_idle_ns": pl.Int64,
    "starved_ns": pl.Int64,
}
SERIES_SCHEMA = {
    "rank": pl.Int64,
    "device": pl.String,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "mean_depth": pl.Float64,
    "max_depth": pl.Int64,
}


def queue_depths(
    launches: pl.DataFrame, window_ns: tuple[int, int] | None = None, *, bins: int = BINS
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The queue of each device: its numbers, and its depth over time.

    Args:
        launches: `rank`, `device`, `start_ns`, `dur_ns` and `called_ns`, when the call began (null: not in the file).
        window_ns: Look only at this part of the device's window, end exclusive.
        bins: Equal parts of the window in the series; fewer where it has fewer nanoseconds.

    Returns:
        One row per rank and device that has launches with calls: of its `launches` that begin in the window
        `queued_launches` have one, the depth is weighted by time, and `busy_ns + queued_idle_ns + starved_ns =
        window_ns`. And one row a bin.
    """
    devices: list[dict[str, Any]] = []
    series: list[dict[str, Any]] = []
    for (rank, device), group in launches.group_by("rank", "device", maintain_order=True):
        tied = group.filter(pl.col("called_ns").is_not_null())
        start, end = _arrays(group.select("start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")))
        first, last = int(start.min()), int(end.max())
        if window_ns:
            first, last = max(first, window_ns[0]), min(last, window_ns[1])
        if not tied.height or last <= first:
            continue
        called, begun = _arrays(tied.select("called_ns", "start_ns"))
        depth = _Depth(called, begun, Cover.of(start, end), first, last)
        place = {"rank": rank, "device": device}
        within = pl.col("start_ns").is_between(first, last, closed="left" if window_ns else "both")
        counts = {"launches": group.filter(within).height, "queued_launches": tied.filter(within).height}
        devices.append({**place, **counts, "start_ns": first, "window_ns": last - first, **depth.summary()})
        series += [{**place, **each} for each in depth.series(bins)]
    return (
        pl.DataFrame(devices, schema=DEVICE_SCHEMA).sort("rank", "device"),
        pl.DataFrame(series, schema=SERIES_SCHEMA).sort("rank", "device", "start_ns"),
    )


def draw_strip(values: list[float]) -> str:
    """One mark a value, its height in eighths of the largest."""
    largest = max(values, default=0.0) or 1.0
    return "".join(_MARKS[min(int(value / largest * len(_MARKS)), len(_MARKS) - 1)] for value in values)


def _arrays(frame: pl.DataFrame) -> Iterator[Times]:
    return (column.to_numpy() for column in frame)


class _Depth:
    """A step function: from `time[i]` on, up to the next, `depth[i]` launches wait; the steps span the window."""

    def __init__(self, called: Times, begun: Times, busy: Cover, first: int, last: int) -> None:
        waited = begun > called  # clocks that disagree may let work begin before its call: it never waited
        times = np.concatenate((called[waited], begun[waited], busy.start_ns, busy.end_ns))
        n, m = int(waited.sum()), len(busy.start_ns)
        order = np.argsort(times, kind="stable")
        steps = np.repeat([1, -1, 0, 0], [n, n, m, m])[order]
        busy_steps = np.repeat([0, 0, 1, -1], [n, n, m, m])[order]
        self.time = np.clip(np.concatenate(([first], times[order], [last])), first, last)
        keep = np.concatenate((self.time[1:] > self.time[:-1], [False]))  # only steps that last
        self.depth = np.concatenate(([0], np.cumsum(steps), [0]))[keep]
        self.busy = np.concatenate(([0], np.cumsum(busy_steps), [0]))[keep] > 0
        self.length = np.diff(self.time)[keep[:-1]]
        self.time = self.time[keep]
        # Exact up to 2^53, which is a thousand launches waiting for two hours.
        self.area = np.concatenate(([0.0], np.cumsum(self.depth * self.length.astype(np.float64))))
        self.first, self.last = first, last

    def summary(self) -> dict[str, Any]:
        idle = ~self.busy
        return {
            "mean_depth": self.area[-1] / (self.last - self.first),
            "max_depth": int(self.depth.max()),
            "busy_ns": int(self.length[self.busy].sum()),
            "queued_idle_ns": int(self.length[idle & (self.depth > 0)].sum()),
            "starved_ns": int(self.length[idle & (self.depth == 0)].sum()),
        }

    def series(self, bins: int) -> Iterator[dict[str, Any]]:
        bins = min(bins, self.last - self.first)
        edges = np.array([self.first + (self.last - self.first) * i // bins for i in range(bins + 1)], dtype=np.int64)
        at = np.clip(np.searchsorted(self.time, edges, side="right") - 1, 0, None)  # the step that holds each edge
        area = self.area[at] + self.depth[at] * (edges - self.time[at]).astype(np.float64)
        for i in range(bins):
            start, end = int(edges[i]), int(edges[i + 1])
            through = np.searchsorted(self.time, end, side="left")
            yield {
                "start_ns": start,
                "end_ns": end,
                "mean_depth": float(area[i + 1] - area[i]) / (end - start),
                "max_depth": int(self.depth[at[i] : through].max()),
            }
