"""The kernels of two runs side by side as a table."""

from typing import Any, Final

from inferometer.analyses.compare.comparison import Comparison
from inferometer.analyses.compare.kernels import ComparedKernel
from inferometer.reports.views.layout import Field, Section, frame_of
from inferometer.units import format_duration

_FIELDS: Final = (
    Field("delta_ns", "Change", "ns"),
    Field("kind", "Kind", "text"),
    Field("low_ns", "95 % from", "ns", spare=1),
    Field("high_ns", "95 % to", "ns", spare=1),
    Field("base_ns", "Base", "ns"),
    Field("candidate_ns", "Candidate", "ns"),
    Field("base_calls", "Base calls", "ratio"),
    Field("candidate_calls", "Candidate calls", "ratio"),
    Field("base_mean_ns", "Base mean", "ns"),
    Field("candidate_mean_ns", "Candidate mean", "ns"),
    Field("base_total_ns", "Base total", "ns"),
    Field("candidate_total_ns", "Candidate total", "ns"),
    Field("family", "Family", "text"),
    Field("label", "Kernel", "kernel"),
)
SUMS: Final = ("delta_ns", "base_ns", "candidate_ns", "base_total_ns", "candidate_total_ns")
"""Columns that may be added up."""


def kernel_section(found: Comparison, most: int | None = None) -> Section:
    """The table, the largest change first; `most` rows of it."""
    kernels = found.kernels
    phase = f"{found.leading.pair.name} " if found.phases else ""
    per = f"a {phase}step" if kernels.per == "step" else "of a device's whole recording"
    rows = kernels.rows[:most]
    totals = f"{format_duration(kernels.base_total_ns)} and {format_duration(kernels.candidate_total_ns)}"
    notes = [f"Times and calls are those of {per.removeprefix('of ')}; totals are of the whole runs: {totals}."]
    if len(rows) < len(kernels.rows):
        notes.insert(0, f"{len(kernels.rows) - len(rows):,} more rows; --json has them all.")
    if any(row.delta_ns is None for row in rows):
        notes.append("Kernels without a change are in no step that was compared.")
    return Section(f"Kernels side by side, {per}", _FIELDS, frame_of([*map(_row, rows)], _FIELDS), notes)


def _row(row: ComparedKernel) -> dict[str, Any]:
    low_ns, high_ns = row.interval_ns or (None, None)
    return row.as_json() | {"low_ns": low_ns, "high_ns": high_ns, "label": row.label}
