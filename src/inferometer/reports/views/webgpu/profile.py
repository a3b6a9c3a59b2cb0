"""Where the time of an answer went: kernels, wall time by phase, steps, memory and loading."""

from collections.abc import Sequence

import polars as pl

from inferometer.engines.webgpu.profile.profile import LAUNCH_BOUND, Profile
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View
from inferometer.units import format_bytes, format_count, format_duration, format_share

_KERNELS = (
    Field("phase", "Phase", "text"),
    Field("share", "Time", "share"),
    Field("total_ns", "Total", "ns"),
    Field("calls", "Calls", "count"),
    Field("median_ns", "Med", "ns"),
    Field("min_ns", "Min", "ns", spare=7),
    Field("max_ns", "Max", "ns", spare=6),
    Field("layers", "Layers", "count", spare=9),
    Field("modelled_bytes", "Bytes (modelled)", "bytes", spare=8),
    Field("modelled_flops", "FLOPs (modelled)", "count", spare=12),
    Field("gb_per_s", "GB/s", "ratio", spare=1),
    Field("gflop_per_s", "GFLOP/s", "ratio", spare=5),
    Field("sol_fraction", "S", "share", spare=1),
    Field("best_fraction", "Of best", "share", spare=2),
    Field("is_launch_bound", "Launch-bound", "text", spare=3),
    Field("kernel", "Kernel", "text", spare=4),
    Field("grid", "Grid", "text", spare=10),
    Field("workgroup", "Workgroup", "text", spare=11),
    Field("label", "Label", "name"),
)
_PHASES = (
    Field("phase", "Phase", "text"),
    Field("steps", "Steps", "count"),
    Field("tokens", "Tokens", "count"),
    Field("wall_ns", "Wall", "ns"),
    Field("busy_ns", "GPU busy", "ns"),
    Field("busy_share", "Busy", "share"),
    Field("record_ns", "Record", "ns"),
    Field("submit_ns", "Submit", "ns", spare=2),
    Field("wait_ns", "Wait", "ns"),
    Field("read_ns", "Read back", "ns", spare=3),
    Field("record_per_dispatch_ns", "Record a dispatch", "ns", spare=4),
    Field("token_p50_ns", "A token p50", "ns", spare=1),
    Field("token_p95_ns", "A token p95", "ns", spare=1),
)
_STEPS = (
    Field("step", "Step", "count"),
    Field("phase", "Phase", "text"),
    Field("tokens", "Tokens", "count"),
    Field("context", "Context", "count"),
    Field("wall_ns", "Wall", "ns"),
    Field("busy_ns", "GPU busy", "ns"),
    Field("token_ns", "A token", "ns", spare=1),
    Field("dispatches", "Dispatches", "count", spare=2),
    Field("untimed", "Untimed", "count", spare=3),
)
_MEMORY = (
    Field("purpose", "Purpose", "text"),
    Field("buffers", "Buffers", "count"),
    Field("size_bytes", "Memory", "bytes"),
    Field("needed_bytes", "Needed", "bytes"),
    Field("overhead_bytes", "Rounding", "bytes"),
)
_LOAD = (
    Field("name", "Part", "text"),
    Field("dur_ns", "Time", "ns"),
    Field("bytes", "Bytes", "bytes"),
    Field("gb_per_s", "GB/s", "ratio"),
)


def _facts(found: Profile) -> Sequence[tuple[str, str]]:
    """What ran, and the device's time against the host's."""
    where = "" if found.adapter is None else f"{found.adapter.name} ({found.adapter.backend})"
    lines = [("Model", found.name), ("Adapter", where)]
    if found.wall_ns:
        busy = f"busy {format_duration(found.busy_ns)} of {format_duration(found.wall_ns)} wall"
        share = f"({format_share(found.busy_ns / found.wall_ns)})"
        timed = f"; summed {format_duration(found.summed_ns)}, span {format_duration(found.span_ns)}"
        lines.append(("Device", f"{busy} {share}{timed}" if found.dispatches > found.untimed else "not timed"))
    lines.append(("Dispatches", f"{found.dispatches:,}, {found.untimed:,} of them untimed"))
    if found.bandwidth is not None:
        known = dict.fromkeys(each for each in (found.bandwidth, found.measured) if each is not None)
        rates = (f"{format_bytes(round(each.bytes_per_s))}/s, {each.source}" for each in known)
        lines.append(("Bandwidth", "; ".join(rates)))
    if found.launch_floor_ns is not None:
        lines.append(("Launch floor", _floor(found)))
    return [(label, text) for label, text in lines if text]


def _sections(found: Profile) -> Sequence[Section]:
    """Kernels, phases, steps; memory and loading, where they don't stand elsewhere."""
    sections = [
        Section("Kernels", _KERNELS, _as_shown(found.to_polars())),
        Section("Wall time", _PHASES, found.phases),
        Section("Steps", _STEPS, found.steps),
    ]
    if found.brief:
        return sections
    sections.append(Section("Memory", _MEMORY, pl.DataFrame(found.memory_rows)))
    if found.load:
        sections.append(Section("Load", _LOAD, found.load_frame))
    return sections


def _remarks(found: Profile) -> Sequence[str]:
    """What to know of the numbers."""
    return [*_about_fractions(found), *_about_times(found)]


def _about_fractions(found: Profile) -> list[str]:
    words = ["Bytes and FLOPs are modelled, each operand once; rates divide them by measured times."]
    if found.bandwidth is None:
        words.append("No bandwidth is known for this adapter: rates are relative to the best kernel (Of best).")
    above = found.rows.filter(pl.col("sol_fraction") > 1)["label"].unique(maintain_order=True)
    if len(above):
        words.append(f"S above 1 means that bandwidth or caches aren't as assumed: {', '.join(above)}.")
    return words


def _about_times(found: Profile) -> list[str]:
    words = []
    if found.untimed:
        words.append(
            f"{found.untimed:,} of {format_count(found.dispatches)} dispatches have no timestamps: their time is in "
            "no row."
        )
    bound = found.rows.filter("is_launch_bound")["label"].unique(maintain_order=True)
    if len(bound):
        words.append(f"Within {LAUNCH_BOUND:g} times an empty pass, so bound by launches: {', '.join(bound)}.")
    return words


def _floor(found: Profile) -> str:
    text = f"{format_duration(found.launch_floor_ns)}, the median of the shortest kernel"
    if found.empty_pass_ns is None:
        return text
    return f"{text}; an empty pass takes {format_duration(found.empty_pass_ns)}"


def _as_shown(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows as reports show them."""
    bound = pl.col("is_launch_bound")
    words = pl.when(bound).then(pl.lit("yes")).when(bound.is_not_null()).then(pl.lit("no"))
    return rows.with_columns(words.alias("is_launch_bound"))


VIEW = View(
    schema=Schema("webgpu_profile", 1), facts=_facts, sections=_sections, remarks=_remarks, remarks_in_json=True
)
