"""A comparison as tables: the cause with its evidence, what changed, what did not, what wasn't measured."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from inferometer.analyses.compare.causes.causes import Cause
from inferometer.analyses.compare.comparison import Comparison
from inferometer.analyses.compare.contributions import Contribution
from inferometer.analyses.compare.phases import PhaseChanges
from inferometer.analyses.compare.slowdown import has_few_steps
from inferometer.analyses.comparison_limits import FEW_CHANGE, MIN_CHANGE
from inferometer.names import decode
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.compared_kernels import kernel_section
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View
from inferometer.units import format_duration, format_sample, format_signed_duration

_SHOWN = 12
_LISTED = 50  # kernels in Markdown: a comment holds 65,536 characters
_BRIEF = 3
_CAUSES = 5
_CAUSE_FIELDS = (
    Field("score", "Score", "number"),
    Field("metric", "Metric", "text"),
    Field("device", "Device", "text"),
    Field("base", "Base", "text"),
    Field("candidate", "Candidate", "text"),
    Field("unit", "Unit", "text", spare=2),
    Field("ratio", "Ratio, 95 %", "text", spare=3),
    Field("q", "q", "text", spare=1),
    Field("class", "Class", "text", spare=4),
)
_LINE_FIELDS = (
    Field("delta_ns", "Change", "ns"),
    Field("interval", "95 %", "text", spare=3),
    Field("base_ns", "Base", "ns", spare=1),
    Field("candidate_ns", "Candidate", "ns", spare=1),
    Field("share", "Share", "share", spare=2),
    Field("kind", "Kind", "text"),
    Field("name", "Function", "name"),
)
_PHASE_FIELDS = (
    Field("phase", "Phase", "text"),
    Field("base_steps", "Base steps", "count", spare=3),
    Field("candidate_steps", "Candidate steps", "count", spare=3),
    Field("base_ns", "Base", "ns"),
    Field("candidate_ns", "Candidate", "ns"),
    Field("ratio", "Ratio, 95 %", "text", spare=1),
    Field("speed", "Step", "text"),
    Field("largest", "Largest change", "text", spare=2),
)
_FAMILY_FIELDS = (
    Field("base_ns", "Base", "ns"),
    Field("base_share", "Share", "share"),
    Field("candidate_ns", "Candidate", "ns"),
    Field("candidate_share", "Share", "share"),
    Field("name", "Family", "text"),
)


def _facts(found: Comparison) -> Sequence[tuple[str, str]]:
    lines = [("Verdict", f"{found.verdict}. {found.judged.why}"), ("Base", found.base), ("Candidate", found.candidate)]
    if found.setup:
        lines.append(("Set-up", f"{', '.join(change.describe() for change in found.setup)}."))
    steps = found.sides.describe_found()
    return [*lines, ("Steps", steps)] if steps else lines


def _remarks(found: Comparison) -> Sequence[str]:
    return [*found.rank_notes(), *found.sides.notes(), *found.changes.notes, *series_notes(found)]


def series_notes(found: Comparison) -> Iterator[str]:
    """What of the counters can't be judged, or was matched though it has another name; and functions of one run."""
    for base, candidate in found.series.renumbered if found.causes else ():
        yield f"The program used {candidate} in place of {base}: their counters are compared with each other."
    for metric, side in found.series.rescaled:
        yield f"{metric} of the {side} is taken for kHz, since it is some 1,000 times that of the other run."
    if pooled := found.series.not_judged():
        yield (
            f"Sampled of all GPUs without saying of which, and none of them must be the program's, so not judged: "
            f"{', '.join(pooled)}."
        )
    sides = ("base", found.leading.pair.base), ("candidate", found.leading.pair.candidate)
    known = [side for side, run in sides if not run.is_empty]
    if len(known) == 1 and not found.comparable.stops:
        yield f"Only the {known[0]} has times of functions: no function can be compared."


def compare_sections(found: Comparison) -> list[Section]:
    """The tables of a comparison in the order of reading."""
    if found.comparable.stops:
        rows = [line.as_json() for line in found.families]
        note = "Times as recorded, side by side: nothing says that the runs did the same work."
        return [Section("Kernel families", _FAMILY_FIELDS, _frame(rows, _FAMILY_FIELDS), [note])]
    if not found.compares_times:
        return [_causes(found)]
    sections = [_causes(found), changes_section(found)]
    if found.phases:
        sections.append(_phases(found))
    host = [line for line in found.changes.changed if not line.added]
    if host:
        title = "Host functions that changed (they run in parallel with the device, and are not added to the step)"
        sections.append(Section(title, _LINE_FIELDS, _frame([_row(line) for line in host[:_SHOWN]], _LINE_FIELDS)))
    return sections


def every_line(found: Comparison) -> Section:
    """All contributions with exact numbers, or all families; for spreadsheets."""
    if found.comparable.stops:
        return compare_sections(found)[0]
    fields = (
        *(Field(name, title, "text") for name, title in (("name", "Function"), ("class", "Class"), ("kind", "Kind"))),
        *(Field(f"{side}_ns", title, "ns") for side, title in (("base", "Base"), ("candidate", "Candidate"))),
        *(Field(name, title, "ns") for name, title in (("delta_ns", "Change"), ("low_ns", "Low"), ("high_ns", "High"))),
        *(
            Field(f"{side}_calls", f"{title} Calls", "number")
            for side, title in (("base", "Base"), ("candidate", "Candidate"))
        ),
        Field("added", "Of Step", "text"),
    )
    rows = []
    for line in found.changes.contributions:
        low, high = line.interval_ns or (None, None)
        rows.append(line.as_json() | {"low_ns": low, "high_ns": high, "added": "yes" if line.added else "no"})
    return Section("Contributions", fields, _frame(rows, fields))


def _causes(found: Comparison) -> Section:
    rows = [
        {
            "score": round(cause.score, 3),
            "metric": cause.metric,
            "device": cause.device,
            "base": format_sample(cause.base),
            "candidate": format_sample(cause.candidate),
            "unit": cause.unit,
            "ratio": f"{cause.interval[0]:.3f} to {cause.interval[1]:.3f}" if cause.interval else None,
            "q": f"{cause.q:.2g}",
            "class": cause.cause_class,
        }
        for cause in _one_a_family(found.causes)[:_CAUSES]
    ]
    title = "Cause" if found.verdict == "cause named" else "Metrics that changed for the worse, none of them claimed"
    return Section(title, _CAUSE_FIELDS, _frame(rows, _CAUSE_FIELDS), [*_cause_notes(found)])


def _one_a_family(causes: Sequence[Cause]) -> list[Cause]:
    """The first of each family that changed for the worse: directions and devices of one thing are one line."""
    first: dict[str, Cause] = {}
    for cause in causes:
        if cause.severity > 0:
            first.setdefault(cause.family, cause)
    return list(first.values())


def find_runner_up(found: Comparison) -> Cause | None:
    """The cause that would be named if the one that is were not; None where none is, or nothing else got worse."""
    claimed = found.judged.claimed
    if found.verdict != "cause named" or claimed is None:
        return None
    return next((cause for cause in _one_a_family(found.causes)[:_CAUSES] if cause.family != claimed.family), None)


def _cause_notes(found: Comparison) -> Iterator[str]:
    claimed = found.judged.claimed
    if found.verdict == "cause named" and claimed is not None:
        if runner_up := find_runner_up(found):
            yield f"Runner-up: {runner_up.metric} on {runner_up.device}, score {runner_up.score:.3f}."
        if claimed.assumed:
            yield f"Its severity assumes {claimed.assumed}; --hardware says which one it is."
    if found.calibration.halves:
        n = len(found.calibration.halves)
        level = f"{found.calibration.level:.3f}"
        yield f"False alarms: the best score of {n} comparisons of normal runs with themselves is {level}."
    calm = [cause for cause in found.causes if cause.severity == 0]
    if calm:
        more = " …" if len(calm) > _SHOWN else ""
        names = ", ".join(f"{cause.metric} on {cause.device}" for cause in calm[:_SHOWN])
        yield f"Unchanged or harmless: {names}{more}."
    if found.not_measured:
        yield f"Not measured in both runs: {', '.join(found.not_measured)}."


def changes_section(found: Comparison, *, rest: str = "--json has them all") -> Section:
    """What makes the step another length, the largest first: lines of the device, or what it does besides them.

    `rest` says where those are that aren't shown.
    """
    changes = found.changes
    lines = [line for line in changes.changed if line.added]
    same = [line for line in changes.contributions if line.added and line.kind == "same"]
    times = f"{format_duration(changes.base_step_ns)} -> {format_duration(changes.candidate_step_ns)}"
    steps = f"{changes.base_steps:,} and {changes.candidate_steps:,} steps compared"
    if changes.account == "sums" and changes.base_steps == changes.candidate_steps == 1:
        steps = "sums of whole recordings compared"
    elif not all(len(each) for each in changes.step_times):
        steps = "no single steps are known: whole recordings compared"
    notes = [f"Step: {times}, {steps}. Unexplained: {format_duration(changes.unexplained_ns)}."]
    if len(lines) > _SHOWN:
        notes.insert(0, f"{len(lines) - _SHOWN:,} more lines changed; {rest}.")
    if same:
        delta = format_duration(sum(line.delta_ns for line in same))
        are = "functions are" if len(same) > 1 else "function is"
        notes.append(f"{len(same):,} {are} the same within noise (together {delta}).")
    if not found.comparable.ok:
        repair = (found.comparable.repair or "").removesuffix(".")
        notes.append(f"Not comparable as recorded: {found.comparable.why} Repaired: {repair}.")
    rows = [_row(line) for line in lines[:_SHOWN]]
    interval = changes.step_ratio_interval
    if interval is None or interval[0] - MIN_CHANGE <= 1 <= interval[1] + MIN_CHANGE:
        rows = [row | {"share": None} for row in rows]  # of a change that may be none
    phase = f"{found.leading.pair.name} " if found.phases else ""
    return Section(f"What changed, a {phase}step", _LINE_FIELDS, _frame(rows, _LINE_FIELDS), notes)


def _phases(found: Comparison) -> Section:
    """Each phase compared by itself; the one that the lines above are of, and the others."""
    rows = []
    for one in found.phases:
        changes, interval = one.changes, one.changes.step_ratio_interval
        within = f": {interval[0]:.3f} to {interval[1]:.3f}" if interval else ""
        rows.append(
            {
                "phase": one.pair.name,
                "base_steps": changes.base_steps,
                "candidate_steps": changes.candidate_steps,
                "base_ns": changes.base_step_ns,
                "candidate_ns": changes.candidate_step_ns,
                "ratio": None if changes.step_ratio is None else f"{changes.step_ratio:.3f}{within}",
                "speed": _speed(one),
                "largest": _largest(changes.changed),
            }
        )
    notes = [f"The verdict and the lines above are of {found.leading.pair.name} steps."]
    unlike = [one.pair.name for one in found.phases if not one.pair.does_same_work]
    if unlike:
        notes.append(f"Tokens of {' and '.join(unlike)} steps differ or aren't known: longer prompts take longer.")
    return Section("Phases, a step", _PHASE_FIELDS, _frame(rows, _PHASE_FIELDS), notes)


def _speed(one: PhaseChanges) -> str:
    speed = one.slowdown.speed
    if speed == "same":
        return f"within {FEW_CHANGE if has_few_steps(one.changes) else MIN_CHANGE:.0%} or noise"
    return "too few steps" if speed == "unknown" else speed


def _largest(changed: Sequence[Contribution]) -> str | None:
    """The line of the device that changed most, by name."""
    added = [line for line in changed if line.added]
    if not added:
        return None
    line = max(added, key=lambda line: abs(line.delta_ns))
    return f"{decode(line.label).short_name} ({line.kind}), {format_duration(line.delta_ns)}"


def _row(line: Contribution) -> dict[str, object]:
    interval = line.interval_ns
    within = f"{format_duration(interval[0])} to {format_duration(interval[1])}" if interval else None
    return {
        "delta_ns": line.delta_ns,
        "interval": within,
        "base_ns": line.base_ns,
        "candidate_ns": line.candidate_ns,
        "share": line.share,
        "kind": line.kind,
        "name": line.label,
    }


def _frame(rows: Sequence[Mapping[str, object]], fields: Sequence[Field]) -> pl.DataFrame:
    if not rows:
        return pl.DataFrame(schema={field.column: pl.String for field in fields})
    return pl.DataFrame(rows, infer_schema_length=None, strict=False)


def _brief(found: Comparison) -> Iterator[str]:
    """The verdict, and the lines that changed most."""
    yield f"{found.verdict.capitalize()}. {found.judged.why}"
    yield f"{found.candidate} compared with {found.base}"
    if found.compares_times:
        lines = sorted((line for line in found.changes.changed if line.added), key=lambda line: -abs(line.delta_ns))
        for line in lines[:_BRIEF]:
            times = f"{format_duration(line.base_ns)} -> {format_duration(line.candidate_ns)}"
            change = f"{format_signed_duration(line.delta_ns)} per step"
            yield f"{decode(line.label).short_name} ({line.kind}): {change}, {times}"
        if len(lines) > _BRIEF:
            yield f"{len(lines) - _BRIEF:,} more changed"


def _more(found: Comparison) -> Iterator[Section]:
    if found.kernels.rows:
        yield kernel_section(found, most=_LISTED)


VIEW = View(
    schema=Schema("compare", 1),
    facts=_facts,
    sections=compare_sections,
    more=_more,
    remarks=_remarks,
    brief=_brief,
    table=every_line,
)
