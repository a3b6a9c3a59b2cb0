"""What a trace is, and where its devices' time went: the first look.

Busy time is a union of intervals, idle is the rest of the device's own window (first launch to last end), overlap is
the time during which a kernel and a copy run at once. Summed times count overlap twice and are named `summed`.

A source without launches that printed sums of kernel time has no devices; its tables stand in their place.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import polars as pl

from inferometer.analyses.hardware.traced_names import name_devices
from inferometer.analyses.intervals import busy_by
from inferometer.analyses.result import Result
from inferometer.analyses.tables.kernels import KernelTable, kernel_table
from inferometer.analyses.tables.summary_remarks import MakeRows, find_remarks
from inferometer.analyses.tables.tests import tests_of
from inferometer.trace.facts import Facts
from inferometer.trace.lean import aggregate, collect_lean
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES
from inferometer.trace.trace import Trace

BUSY_TIMES = ("launches", "window_ns", "kernel_summed_ns", "busy_ns", "kernel_busy_ns", "copy_busy_ns")
_LOG_LINES = 10_000  # that `as_json` holds; a log may have millions
DEVICE_COLUMNS = (
    *("device", "name", "launches", "window_ns", "busy_share", "busy_ns", "idle_ns", "kernel_busy_ns", "copy_busy_ns"),
    "overlap_ns",
)


@dataclass(frozen=True)
class Summary(Result):
    """`devices`: one row per device (and rank, where known); `kernels`: the first rows of the kernel table.

    `tests`: of a benchmark. `counts`: rows of every table. `log`: the first lines of text, where the trace is made of
    printed sums.
    """

    view: ClassVar[str] = "summary"
    source: str
    about: Facts
    start_ns: int | None
    duration_ns: int | None
    counts: dict[str, int]
    devices: pl.DataFrame
    kernels: KernelTable
    tests: pl.DataFrame
    log: pl.DataFrame
    notable: tuple[str, ...]
    losses: Losses

    def to_polars(self) -> pl.DataFrame:
        """One row per device; of printed sums, which have none, one per kernel; of a benchmark one per test."""
        if not self.tests.is_empty():
            return self.tests
        return self.kernels.frame if self.kernels.basis == "totals" else self.devices

    def as_json(self) -> dict[str, Any]:
        kernels = self.kernels.as_json()
        return {
            "source": self.source,
            "facts": msgspec.to_builtins(self.about),
            "start_ns": self.start_ns,
            "duration_ns": self.duration_ns,
            "rows": self.counts,
            "devices": self.devices.to_dicts(),
            "total_ns": kernels["total_ns"],
            "basis": kernels["basis"],
            "section": kernels["section"],
            "top_kernels": kernels["rows"],
            "other_sections": kernels["other_sections"],
            "tests": self.tests.to_dicts(),
            "log": self.log.to_dicts(),
            "remarks": list(self.notable),
            "losses": self.losses.as_dict(),
        }


def summarize(
    trace: Trace, *, top: int = 10, raw: bool = False, busy: MakeRows | None = None, gaps: MakeRows | None = None
) -> Summary:
    """The first look at a trace that was opened with all tables.

    Args:
        trace: Needs all tables; the window spans everything that has a time.
        top: Kernels to list, of each section where the source has several.
        raw: Their names as in the file.
        busy: Where `busy_times` are made elsewhere.
        gaps: Where they are found elsewhere; asked for at last, and only where a sentence needs them.
    """
    trace.require(ALL_TABLES)
    window = trace.window()
    devices = device_times(trace, busy)
    kernels = kernel_table(trace, top=top, raw=raw)
    return Summary(
        source=trace.facts.source,
        about=trace.facts,
        start_ns=window[0] if window else None,
        duration_ns=window[1] - window[0] if window else None,
        counts=trace.count_rows(),
        devices=devices,
        kernels=kernels,
        tests=tests_of(trace),
        log=_log(trace) if kernels.basis == "totals" else trace.log.head(0).collect(),
        notable=tuple(find_remarks(trace, devices, kernels, gaps)),
        losses=trace.losses,
    )


def _log(trace: Trace) -> pl.DataFrame:
    """The first lines without columns that hold nothing."""
    lines = trace.log.head(_LOG_LINES).collect()
    return lines.select(column.name for column in lines if column.null_count() < lines.height)


def device_times(trace: Trace, busy: MakeRows | None = None) -> pl.DataFrame:
    """Busy, idle, kernel, copy and overlap time of each device, ns, with the device's name where the file shows it.

    One row per device, or a rank and device where ranks are known. `busy_ns + idle_ns = window_ns`, and
    `kernel_busy_ns + copy_busy_ns - overlap_ns = busy_ns`. `busy`: where `busy_times` are made elsewhere.
    """
    times = (
        (busy() if busy else busy_times(trace))
        .with_columns(
            (pl.col("window_ns") - pl.col("busy_ns")).alias("idle_ns"),
            (pl.col("kernel_busy_ns") + pl.col("copy_busy_ns") - pl.col("busy_ns")).alias("overlap_ns"),
            (pl.col("busy_ns") / pl.col("window_ns")).fill_nan(None).alias("busy_share"),
        )
        .with_columns(pl.col("device").cast(pl.String))
        .sort("rank", "device")
    )
    times = times.with_columns(pl.Series("name", _names(trace.facts, times), dtype=pl.String))
    ranks = [] if times["rank"].null_count() == times.height else ["rank"]
    return times.select(*ranks, *DEVICE_COLUMNS, "kernel_summed_ns")


def busy_times(trace: Trace) -> pl.DataFrame:
    """`BUSY_TIMES` of each `rank` and `device`, which is categorical; in any order."""
    launches = collect_lean(trace.compact("launches"), ["rank", "device", "kind", "start_ns", "dur_ns"])
    by, is_copy = ["rank", "device"], pl.col("kind").is_in(["memcpy", "memset"])  # a whole graph is mostly kernels
    end = pl.col("start_ns") + pl.col("dur_ns")
    whole = aggregate(
        launches,
        by,
        pl.len().cast(pl.Int64).alias("launches"),
        (end.max() - pl.col("start_ns").min()).alias("window_ns"),
        pl.col("dur_ns").filter(~is_copy).sum().alias("kernel_summed_ns"),
    )
    kernels = busy_by(launches.filter(~is_copy), by, name="kernel_busy_ns")
    copies = busy_by(launches.filter(is_copy), by, name="copy_busy_ns")
    return (
        whole.join(busy_by(launches, by), on=by, how="left", nulls_equal=True)
        .join(kernels, on=by, how="left", nulls_equal=True)
        .join(copies, on=by, how="left", nulls_equal=True)
        .with_columns(pl.col("kernel_busy_ns", "copy_busy_ns").fill_null(0))
        .select(*by, *BUSY_TIMES)
    )


def _names(about: Facts, places: pl.DataFrame) -> list[str | None]:
    """The product name of each rank's device."""
    used: dict[int | None, list[str | None]] = {}
    for rank, device in places.select("rank", "device").iter_rows():
        used.setdefault(rank, []).append(device)
    names = {rank: name_devices(about, devices, rank) for rank, devices in used.items()}
    return [names[rank].get(device) for rank, device in places.select("rank", "device").iter_rows()]
