"""What a trace is, its devices' times and the first kernels."""

from collections.abc import Sequence

import polars as pl
from msgspec.structs import replace

from inferometer.analyses.hardware.traced_names import describe_devices, say_unnamed
from inferometer.analyses.tables.summary import Summary
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.kernels import fields_of
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View, sections_of
from inferometer.trace.facts import Facts
from inferometer.units import format_duration, format_rows

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

TEST_FIELDS = (
    Field("test", "Test", "name"),
    Field("repetitions", "Repetitions", "count"),
    Field("mean_ns", "Mean", "ns"),
    Field("stddev_ns", "StdDev", "ns"),
    Field("tokens_per_s", "Tokens/s", "ratio"),
    Field("tokens_per_s_stddev", "StdDev", "ratio", spare=1),
)


def _facts(summary: Summary) -> Sequence[tuple[str, str]]:
    about, lines = summary.about, [("File", summary.source)]
    tool = " ".join(filter(None, (about.tool, about.tool_version))) or about.format
    lines.append(("Tool", tool))
    if gpus := _gpus(about, summary.devices):
        lines.append(("Device", gpus))
    if about.ranks:
        of = f" of {about.world_size}" if about.world_size else ""
        lines.append(("Rank", ", ".join(map(str, about.ranks)) + of))
    if about.hosts:
        lines.append(("Host", ", ".join(about.hosts)))
    if summary.duration_ns is not None:
        lines.append(("Duration", format_duration(summary.duration_ns)))
    rows = ", ".join(format_rows(n, name) for name, n in summary.counts.items() if n)
    lines.append(("Rows", rows or "none"))
    return lines


def _sections(summary: Summary) -> Sequence[Section]:
    if not summary.tests.is_empty():
        return [Section("Tests", TEST_FIELDS, summary.tests)]
    if summary.kernels.basis == "totals":
        first, *others = sections_of(summary.kernels)
        return [replace(first, title=first.title.replace("Kernels", "Top kernels")), *others]
    fields = [field for field in _DEVICE_FIELDS if field.column in summary.devices.columns]
    if "rank" in summary.devices.columns:
        fields.insert(0, Field("rank", "Rank", "number"))
    return [
        Section("Devices", fields, summary.devices),
        Section("Top kernels", fields_of(summary.kernels), summary.kernels.frame),
    ]


def _remarks(summary: Summary) -> Sequence[str]:
    return summary.notable


def _gpus(about: Facts, used: pl.DataFrame) -> str:
    """`NVIDIA H100 80GB HBM3 (gpu:0; 1 of 8)`."""
    by_name: dict[str, list[str]] = {}
    described = describe_devices(about, used["device"].to_list())
    for device, name in used.select("device", "name").unique(maintain_order=True).iter_rows():
        shown = name or say_unnamed(described.get(device or ""))
        by_name.setdefault(shown, []).append(device or "no number")
    known = {device.device for device in about.devices}
    of = f"; {used['device'].n_unique()} of {len(known)}" if len(known) > 1 else ""
    return ", ".join(f"{name} ({', '.join(devices)}{of})" for name, devices in by_name.items())


VIEW = View(schema=Schema("trace_summary", 1), facts=_facts, sections=_sections, remarks=_remarks)
