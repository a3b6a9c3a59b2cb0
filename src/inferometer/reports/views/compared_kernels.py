"""The kernels of two runs side by side: as one table with everything, and as a page shows them.

A page has the times of a step apart from those of the whole runs, and says how kernels and what a step is besides add
up to its change, to the nanosecond.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from inferometer.analyses.compare.comparison import Comparison
from inferometer.analyses.compare.kernels import ComparedKernel, ComparedKernels
from inferometer.analyses.compare.sampling_units import REMAINDERS
from inferometer.reports.views.layout import Field, Section, frame_of
from inferometer.units import format_duration, format_signed_duration

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

_STEP_FIELDS: Final = (
    Field("label", "Kernel", "kernel"),
    Field("delta_ns", "Change", "ns"),
    Field("base_ns", "Base", "ns"),
    Field("candidate_ns", "Candidate", "ns"),
    Field("calls", "Calls", "text"),
    Field("kind", "Kind", "text"),
    Field("within", "95 % of the change", "text", spare=1),
    Field("family", "Family", "text"),
    Field("names", "Names, base → candidate", "name", spare=1),
)
STEP_SUMS: Final = ("delta_ns", "base_ns", "candidate_ns")
_RUN_FIELDS: Final = (
    Field("label", "Kernel", "kernel"),
    Field("delta_total_ns", "Change", "ns"),
    Field("base_total_ns", "Base", "ns"),
    Field("candidate_total_ns", "Candidate", "ns"),
    Field("base_launches", "Base launches", "count"),
    Field("candidate_launches", "Candidate launches", "count"),
    Field("base_each_ns", "Base, a launch", "ns"),
    Field("candidate_each_ns", "Candidate, a launch", "ns"),
    Field("family", "Family", "text"),
)
RUN_SUMS: Final = ("delta_total_ns", "base_total_ns", "candidate_total_ns", "base_launches", "candidate_launches")
_ACCOUNT_FIELDS: Final = (
    Field("part", "Part of a step", "text"),
    Field("delta_ns", "Change", "ns"),
    Field("base_ns", "Base", "ns"),
    Field("candidate_ns", "Candidate", "ns"),
)
_PARTS: Final[Mapping[str, str]] = {"idle": "idle", "overlap": "overlap of launches, counted twice above"}


def kernel_section(found: Comparison, most: int | None = None) -> Section:
    """The table, the largest change first; `most` rows of it."""
    kernels = found.kernels
    per = per_words(found)
    rows = kernels.rows[:most]
    totals = f"{format_duration(kernels.base_total_ns)} and {format_duration(kernels.candidate_total_ns)}"
    notes = [f"Times and calls are those of {per.removeprefix('of ')}; totals are of the whole runs: {totals}."]
    if len(rows) < len(kernels.rows):
        notes.insert(0, f"{len(kernels.rows) - len(rows):,} more rows; --json has them all.")
    if any(row.delta_ns is None for row in rows):
        notes.append("Kernels without a change are in no step that was compared.")
    return Section(f"Kernels side by side, {per}", _FIELDS, frame_of([*map(_row, rows)], _FIELDS), notes)


def per_words(found: Comparison) -> str:
    """What times of kernels are of: a step of the phase that was compared, or a recording."""
    if found.kernels.per == "recording":
        return "of a device's whole recording"
    return f"a {found.leading.pair.name} step" if found.phases else "a step"


def describe_kinds(kernels: ComparedKernels) -> str:
    """How many rows became what, and how many are in no compared step."""
    inside = Counter(row.kind for row in kernels.rows if row.delta_ns is not None)
    changed = [f"{count:,} {kind}" for kind, count in inside.most_common() if kind != "same"]
    same = inside["same"]
    words = f"{inside.total():,} kernels: " if inside.total() != 1 else "1 kernel: "
    words += ", ".join([*changed, *([f"{same:,} the same within noise"] if same else [])])
    outside = len(kernels.rows) - inside.total()
    joined = sum(max(len(row.base.names), len(row.candidate.names)) > 1 for row in kernels.rows)
    more = [f" {outside:,} more {'are' if outside > 1 else 'is'} in no step that was compared."] if outside else []
    more += [f" In {joined:,} of the rows several kernels are one line."] if joined else []
    return "".join([f"{words}.", *more])


def step_section(found: Comparison) -> Section:
    """Times in a step, of the kernels that a compared step calls: the largest change first."""
    rows = [_row(row) | _in_step(row) for row in found.kernels.rows if row.delta_ns is not None]
    frame = frame_of(rows, _STEP_FIELDS)
    before, after = (sum(frame[column].to_list()) for column in ("base_ns", "candidate_ns"))
    times = f"{format_duration(before)} in the base, {format_duration(after)} in the candidate"
    note = f"All rows: {times}, {format_signed_duration(after - before)}."
    within = "in " if found.kernels.per == "step" else ""
    return Section(f"Kernels {within}{per_words(found)}", _STEP_FIELDS, frame, (note,))


def _in_step(row: ComparedKernel) -> dict[str, Any]:
    sides = [" + ".join(side.names) for side in (row.base, row.candidate)]
    within = None if row.interval_ns is None else " to ".join(map(format_signed_duration, row.interval_ns))
    calls = [f"{side.calls or 0:,.4g}" for side in (row.base, row.candidate)]
    return {
        "within": within,
        "calls": " → ".join(dict.fromkeys(calls)),
        "names": " → ".join(sides) if all(sides) and sides[0] != sides[1] else None,
    }


def run_section(found: Comparison) -> Section:
    """Times of the whole runs, exact: the largest change first."""
    kernels = found.kernels
    rows = sorted((_in_run(row) for row in kernels.rows), key=lambda row: -abs(row["delta_total_ns"]))
    totals = (kernels.base_total_ns, kernels.candidate_total_ns)
    note = f"All rows: {' and '.join(map(format_duration, totals))}, {format_signed_duration(totals[1] - totals[0])}."
    if kernels.per == "step":
        steps = f"{found.changes.base_steps:,} and {found.changes.candidate_steps:,} compared steps"
        note += f" Runs are as long as they were recorded ({steps}): these changes are no change of speed."
    return Section("Kernels of the whole runs", _RUN_FIELDS, frame_of(rows, _RUN_FIELDS), (note,))


def _in_run(row: ComparedKernel) -> dict[str, Any]:
    sides = {"base": row.base, "candidate": row.candidate}
    each = {f"{name}_each_ns": side.total_ns / side.launches if side.launches else None for name, side in sides.items()}
    return _row(row) | each | {"delta_total_ns": row.candidate.total_ns - row.base.total_ns}


def account_section(found: Comparison) -> Section:
    """How the step's change adds up: kernels, what else a step is, and what rounding leaves, to the nanosecond."""
    changes = found.changes
    added = [line for line in changes.contributions if line.added]
    kernels = [line for line in added if line.cls not in REMAINDERS]
    besides = [line for line in added if line.cls in REMAINDERS]
    others = [(_PARTS.get(line.cls, line.cls), line.base_ns, line.candidate_ns) for line in besides]
    rows = [("kernels and copies", *_sums((line.base_ns, line.candidate_ns) for line in kernels)), *others]
    whole = changes.base_step_ns, changes.candidate_step_ns
    known = _sums((before, after) for _, before, after in rows)
    if known != whole:
        rows.append(("rounding of each line to a nanosecond", whole[0] - known[0], whole[1] - known[1]))
    rows.append((per_words(found).removeprefix("of "), *whole))
    frame = frame_of(
        [
            {"part": part, "base_ns": before, "candidate_ns": after, "delta_ns": after - before}
            for part, before, after in rows
        ],
        _ACCOUNT_FIELDS,
    )
    return Section("How the change adds up", _ACCOUNT_FIELDS, frame, ("The rows above the last add up to it exactly.",))


def _sums(pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    every = [*pairs]
    return sum(before for before, _ in every), sum(after for _, after in every)


def _row(row: ComparedKernel) -> dict[str, Any]:
    low_ns, high_ns = row.interval_ns or (None, None)
    return row.as_json() | {"low_ns": low_ns, "high_ns": high_ns, "label": row.label}
