"""An answer of the WebGPU engine: as of every engine, and its kernels, loading and memory."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from inferometer.engines.webgpu.chat.answer import DeviceChatAnswer
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.chat.answer import what_answered, what_it_took
from inferometer.reports.views.layout import Field, Section, frame_of
from inferometer.reports.views.view import View
from inferometer.units import format_bytes, format_duration

_KERNELS = (
    Field("phase", "Phase", "text"),
    Field("operator", "Operator", "text"),
    Field("backend", "Kernel", "text"),
    Field("calls", "Calls", "count"),
    Field("reason", "Why this one", "name"),
)
_PLAN = (
    Field("phase", "Phase", "text"),
    Field("op", "Operator", "text"),
    Field("role", "Role", "text"),
    Field("planned", "Planned", "text"),
    Field("planned_count", "Calls", "count"),
    Field("executed", "Ran", "text"),
    Field("executed_count", "Calls", "count"),
    Field("reason", "Why", "name"),
)
_LOAD = (
    Field("name", "Load", "text"),
    Field("dur_ns", "Time", "ns"),
    Field("bytes", "Bytes", "bytes"),
    Field("gb_per_s", "GB/s", "ratio"),
)
_MEMORY = (
    Field("purpose", "Memory", "text"),
    Field("buffers", "Buffers", "count"),
    Field("size_bytes", "Bytes", "bytes"),
    Field("needed_bytes", "Of it used", "bytes"),
    Field("overhead_bytes", "Rounding", "bytes"),
)
_PARTS = (("record", "recording"), ("submit", "submitting"), ("wait", "waiting"), ("read", "reading back"))


def _facts(found: DeviceChatAnswer) -> Sequence[tuple[str, str]]:
    """A line per metric."""
    return [*([] if found.brief else _what_answered(found)), *_what_it_took(found)]


def _sections(found: DeviceChatAnswer) -> Sequence[Section]:
    """Which kernel ran each operator, where that isn't the plan, what loading took, what memory holds."""
    if found.brief:
        return []
    differences = [asdict(each) for each in found.plan.rows]
    return [
        Section("Kernels", _KERNELS, found.to_polars()),
        *([Section("Not as the kernel path says", _PLAN, frame_of(differences, _PLAN))] if differences else []),
        Section("Load", _LOAD, frame_of([_load_row(each) for each in found.load_rows], _LOAD)),
        Section("Memory of the device", _MEMORY, frame_of(found.memory_rows, _MEMORY)),
    ]


def _remarks(found: DeviceChatAnswer) -> Sequence[str]:
    """What a reader of the times must know."""
    if found.brief:
        return ()
    cost = "Times include what profiling costs, a pass with two timestamps for each dispatch: see --overhead."
    return [*found.setup.notes, *([cost] if found.device_setup.timing == "timestamps" else [])]


def _what_answered(found: DeviceChatAnswer) -> list[tuple[str, str]]:
    setup = found.device_setup
    facts = [("Kernel path" if label == "Backend" else label, text) for label, text in what_answered(found)]
    matrices = sorted(setup.matrix_bytes.items(), key=lambda each: -each[1])
    formats = ", ".join(f"{format_bytes(size)} of {name}" for name, size in matrices)
    return [*facts, ("Matrices", formats), ("Submits", f"{setup.batch} tokens each, {setup.timing.replace('_', ' ')}")]


def _what_it_took(found: DeviceChatAnswer) -> list[tuple[str, str]]:
    setup, facts, parts = found.device_setup, what_it_took(found), found.submits
    split = ", ".join(f"{format_duration(parts[f'{name}_ns'])} {word}" for name, word in _PARTS)
    facts.insert(-1, ("Of submits", split))
    label, text = facts[-1]
    device = f"{format_bytes(setup.device_bytes)} of the device"
    facts[-1] = (label, f"{text}, {device} for {setup.context:,} positions with keys and values in {setup.cache_dtype}")
    return facts


def _load_row(row: dict[str, Any]) -> dict[str, Any]:
    """What reading took of a phase has no name of its own; no bytes are shown as none."""
    return {"name": "  of it reading", **row, "bytes": row["bytes"] or None}


VIEW = View(schema=Schema("webgpu_chat", 1), facts=_facts, sections=_sections, remarks=_remarks)
