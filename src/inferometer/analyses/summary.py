"""What a trace is, and where its devices' time went: the first look.

Busy time is a union of intervals, idle is the rest of the device's own window (first launch to last end), overlap is
the time during which a kernel and a copy run at once. Summed times count overlap twice and are named `summed`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from inferometer.analyses.intervals import busy_by
from inferometer.analyses.kernels import KernelTable, kernel_table
from inferometer.analyses.remarks import find_remarks
from inferometer.analyses.result import Field, Result, Section
from inferometer.trace.facts import Facts
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace
from inferometer.units import format_count, format_duration

_COUNTED = ("launches", "calls", "ops", "frames", "spans", "counters")
_DEVICE_FIELDS = (
    Field("device", "Device", "text"),
    Field("name", "Name", "text", spare=5),
    Field("launches", "Launches", "count"),
    Field("window_ns", "Window", "ns", spare=4),
    Field("busy_share", "Busy", "share"),
    Field("busy_ns", "Busy time", "ns"),
    Field("idle_ns", "Idle", "ns"),
    Field("kernel_busy_ns", "Kernels", "ns", spare=1),
    Field("copy_busy_ns", "Copies", "ns", spare=2),
    Field("overlap_ns", "Overlap", "ns", spare=3),
)
DEVICE_COLUMNS = tuple(field.column for field in _DEVICE_FIELDS)


@dataclass(frozen=True)
class Summary(Result):
    """`devices`: one row a device (and rank, where known); `kernels`: the first rows of the kernel table."""

    source: str
    about: Facts
    start_ns: int | None
    duration_ns: int | None
    counts: dict[str, int]
    devices: pl.DataFrame
    kernels: KernelTable
    notable: tuple[str, ...]
    losses: Losses

    def facts(self) -> Sequence[tuple[str, str]]:
        about, lines = self.about, [("File", self.source)]
        tool = " ".join(filter(None, (about.tool, about.tool_version))) or about.format
        lines.append(("Tool", tool))
        if gpus := _gpus(about, self.devices["device"].to_list()):
            lines.append(("Device", gpus))
        if about.ranks:
            of = f" of {about.world_size}" if about.world_size else ""
            lines.append(("Rank", ", ".join(map(str, about.ranks)) + of))
        if about.hosts:
            lines.append(("Host", ", ".join(about.hosts)))
        if self.duration_ns is not None:
            lines.append(("Duration", format_duration(self.duration_ns)))
        rows = ", ".join(f"{format_count(n)} {name}" for name, n in self.counts.items() if n)
        lines.append(("Rows", rows or "none"))
        return lines

    def sections(self) -> Sequence[Section]:
        fields = [field for field in _DEVICE_FIELDS if field.column in self.devices.columns]
        if "rank" in self.devices.columns:
            fields.insert(0, Field("rank", "Rank", "number"))
        return [
            Section("Devices", fields, self.devices),
            Section("Top kernels", self.kernels.sections()[0].fields, self.kernels.frame),
        ]

    def remarks(self) -> Sequence[str]:
        return self.notable

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
            "top_kernels": kernels["rows"],
            "remarks": list(self.notable),
            "losses": self.losses.as_dict(),
        }


def summarize(trace: Trace, *, top: int = 10) -> Summary:
    """The first look at a trace that was opened with all tables.

    Args:
        trace: Needs all tables; the window spans everything that has a time.
        top: Kernels to list.
    """
    trace.require(_COUNTED)
    window = trace.window()
    devices = device_times(trace)
    kernels = kernel_table(trace, top=top)
    rows = trace.count_rows()
    return Summary(
        source=trace.facts.source,
        about=trace.facts,
        start_ns=window[0] if window else None,
        duration_ns=window[1] - window[0] if window else None,
        counts={name: rows[name] for name in _COUNTED},
        devices=devices,
        kernels=kernels,
        notable=tuple(find_remarks(trace, devices, kernels)),
        losses=trace.losses,
    )


def device_times(trace: Trace) -> pl.DataFrame:
    """Busy, idle, kernel, copy and overlap time of each device, ns, with the device's name where the file tells it.

    One row a device, or a rank and device where ranks are known. `busy_ns + idle_ns = window_ns`, and
    `kernel_busy_ns + copy_busy_ns - overlap_ns = busy_ns`.
    """
    launches = trace.launches.select("rank", "device", "kind", "start_ns", "dur_ns")
    by = ["rank", "device"]
    end = pl.col("start_ns") + pl.col("dur_ns")
    whole = launches.group_by(by).agg(
        pl.len().cast(pl.Int64).alias("launches"),
        (end.max() - pl.col("start_ns").min()).alias("window_ns"),
        pl.col("dur_ns").filter(pl.col("kind") == "kernel").sum().alias("kernel_summed_ns"),
    )
    kernels = busy_by(launches.filter(pl.col("kind") == "kernel"), by, name="kernel_busy_ns")
    copies = busy_by(launches.filter(pl.col("kind") != "kernel"), by, name="copy_busy_ns")
    used = launches.select(pl.col("device").unique()).collect().to_series().to_list()
    names = name_devices(trace.facts, used)
    times = (
        whole.join(busy_by(launches, by), on=by, how="left", nulls_equal=True)
        .join(kernels, on=by, how="left", nulls_equal=True)
        .join(copies, on=by, how="left", nulls_equal=True)
        .with_columns(pl.col("kernel_busy_ns", "copy_busy_ns").fill_null(0))
        .with_columns(
            (pl.col("window_ns") - pl.col("busy_ns")).alias("idle_ns"),
            (pl.col("kernel_busy_ns") + pl.col("copy_busy_ns") - pl.col("busy_ns")).alias("overlap_ns"),
            (pl.col("busy_ns") / pl.col("window_ns")).fill_nan(None).alias("busy_share"),
            pl.col("device").replace_strict(names, default=None, return_dtype=pl.String).alias("name"),
        )
        .sort(by)
        .collect()
    )
    ranks = [] if times["rank"].null_count() == times.height else ["rank"]
    return times.select(*ranks, *DEVICE_COLUMNS, "kernel_summed_ns")


def name_devices(about: Facts, used: Sequence[str | None]) -> dict[str, str | None]:
    """Product names of devices. A file with one device names it whatever number its launches carry (ROCm's differ)."""
    names = {device.device: device.name for device in about.devices}
    strangers = {device for device in used if device is not None} - set(names)
    if len(names) == len(strangers) == 1 and not set(names) & set(used):
        names = dict.fromkeys(strangers, about.devices[0].name)
    return names


def _gpus(about: Facts, used: Sequence[str | None]) -> str:
    """`NVIDIA H100 80GB HBM3 (gpu:0; 1 of 8)`."""
    names = name_devices(about, used)
    by_name: dict[str, list[str]] = {}
    for device in dict.fromkeys(used):
        by_name.setdefault(names.get(device or "") or "unnamed", []).append(device or "no number")
    of = f"; {len(set(used))} of {len(about.devices)}" if len(about.devices) > 1 else ""
    return ", ".join(f"{name} ({', '.join(devices)}{of})" for name, devices in by_name.items())
