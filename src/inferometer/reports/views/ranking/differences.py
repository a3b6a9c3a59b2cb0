"""The tables of two runs' differences: what isn't alike about them, then shape by shape."""

from typing import Any

from inferometer.bench.ranking.differences import Differences, Drift, LevelChange, ShapeDifference
from inferometer.bench.ranking.shape_figures import Figure
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section, frame_of
from inferometer.reports.views.ranking.remarks import count_shapes
from inferometer.reports.views.ranking.shortened import MOST_SHOWN, join_shapes, shortened
from inferometer.reports.views.view import View
from inferometer.units import format_share

_ORDER = {"slower": 2, "faster": 3, "unclear": 4, "same": 6}
_CHANGES = (
    Field("what", "What", "name"),
    Field("base", "Base", "text"),
    Field("candidate", "Candidate", "text"),
)
_SHAPES = (
    Field("verdict", "Verdict", "text"),
    Field("operator", "Operator", "text"),
    Field("shape", "Shape", "name"),
    Field("contender", "Candidate", "name"),
    Field("speedup", "Speedup", "ratio", spare=1),
    Field("low", "Low", "ratio", spare=2),
    Field("high", "High", "ratio", spare=2),
    Field("base_ns", "Base", "ns", spare=4),
    Field("candidate_ns", "Candidate", "ns", spare=4),
    Field("mode", "Cache", "text", spare=5),
    Field("why", "Note", "name", spare=3),
)
_LEVELS = (
    Field("verdict", "Verdict", "text"),
    Field("contender", "Candidate", "name"),
    Field("operator", "Operator", "text"),
    Field("shapes", "Shapes", "count", spare=1),
    Field("speedup", "Speedup", "ratio"),
    Field("low", "Low", "ratio", spare=2),
    Field("high", "High", "ratio", spare=2),
)
SPEEDUP = (
    "Speedup: base over candidate, above 1 the candidate is faster; without what is taken for drift. Low to high: "
    "95 %, with how far medians spread between these runs."
)
_UNCHANGED = 0.0005  # 0.0 %
ALL_SHAPES = "all"
"""In place of an operator, where a row is about all shapes of a candidate."""


def _sections(found: Differences) -> list[Section]:
    """Tables; of a long one in a terminal the beginning, the gravest first."""
    levels = [shortened(levels_section(found))] if found.wholes else []
    return [shortened(changes_section(found)), *levels, shortened(join_shapes(differences_section(found)))]


def changes_section(found: Differences) -> Section:
    """What isn't alike about the runs."""
    rows = [{"what": each.what, "base": each.base, "candidate": each.candidate} for each in found.changes]
    title = "What differs between the runs"
    return Section(title, _CHANGES, frame_of(rows, _CHANGES))


def levels_section(found: Differences) -> Section:
    """Each candidate as a whole, then its operators, the slowest first."""
    order = sorted(found.operators, key=lambda each: (_ORDER[each.verdict], each.speedup.value))
    rows = [
        {
            "verdict": each.verdict,
            "contender": each.candidate,
            "operator": each.operator or ALL_SHAPES,
            "shapes": each.shapes,
            **_figure(each.speedup),
        }
        for each in (*found.wholes, *order)
    ]
    return Section("Differences by operator", _LEVELS, frame_of(rows, _LEVELS), [SPEEDUP])


def differences_section(found: Differences) -> Section:
    """Every shape of both, the gravest first; where times aren't compared, those that became right or wrong alone."""
    shown = [each for each in found.shapes if found.incomparable is None or each.became is not None]
    rows = [_row(each) for each in sorted(shown, key=_gravest)]
    notes = [f"Base: {found.base[0]}. Candidate: {found.candidate[0]}."]
    if found.speedup is not None:
        notes.append(SPEEDUP)
    return Section("Differences", _SHAPES, frame_of(rows, _SHAPES), notes)


def difference_remarks(found: Differences) -> list[str]:
    """The verdict over all shapes first, then operators and candidates, drift, and what is in one run alone."""
    wholes = {each.candidate: each for each in found.wholes}
    drifts = [words for each in found.drifts for words in _of_drift(each, wholes[each.candidate], found.smallest)]
    return [_summary(found), *_of_operators(found), *drifts, *_only_one(found)]


def _of_operators(found: Differences) -> list[str]:
    """Operators that are slower as a whole, where there are several."""
    slower = [each for each in found.operators if each.verdict == "slower"]
    if len(found.operators) < 2 or not slower:
        return []
    shown = ", ".join(f"{each.operator} of {each.candidate} ({_longer(1 / each.speedup.value)})" for each in slower)
    return [f"Slower over all shapes of the operator: {shown}."]


def _of_drift(drift: Drift, whole: LevelChange, smallest: float) -> list[str]:
    """What is known of the candidate as a whole, and what of it may be the machine."""
    name, all_shapes = drift.candidate, f"all {count_shapes(whole.shapes)} together"
    figures = f"speedup {whole.speedup.value:.3f} ({whole.speedup.low:.3f} to {whole.speedup.high:.3f})"
    if drift.base is not None:
        how = "shape by shape" if drift.by == "shape" else "by the median of its changes, as that leaves less spread"
        lines = [f"{name}, {all_shapes}: {whole.verdict}, {figures}; over {drift.base}, timed in turns with it, {how}."]
        if drift.base_change is not None:
            took = f"{drift.base} itself: {_longer(drift.base_change)}, median of {count_shapes(drift.base_shapes)}"
            lines.append(f"{took}. That is taken for drift; whatever slowed both alike is in no verdict.")
        return lines
    why = f"{name}: {drift.why}, so nothing tells drift of the machine from a change of the kernel."
    if drift.common is not None:
        taken = f"Its {count_shapes(whole.shapes)} in the median: {_longer(drift.common)}"
        within = f"within the smallest effect of {format_share(smallest)}"
        return [f"{why} {taken}. That is {within} and taken for drift: what is common to all shapes is in no verdict."]
    return [f"{why} Nothing is taken for drift. {name}, {all_shapes}: {whole.verdict}, {figures}."]


def _longer(ratio: float) -> str:
    """Candidate's over base's time as text: `2.0 % longer`."""
    if abs(ratio - 1) < _UNCHANGED:
        return "as long as before"
    word = "longer" if ratio >= 1 else "shorter"
    return f"{format_share(abs(ratio - 1))} {word}"


def _summary(found: Differences) -> str:
    """One sentence: what became right or wrong, faster or slower."""
    if not found.shapes:
        return f"{found.base[0]} and {found.candidate[0]} have no kernel and shape in common: nothing is compared."
    both = f"Of {count_shapes(len(found.shapes))} in both runs"
    became = [f"{count:,} became {what}" for what in ("wrong", "right") if (count := _count(found, what))]
    if found.incomparable is not None:
        words = ", ".join(became) or "none became right or wrong"
        return f"{both} {words}. No times are compared: {found.incomparable}."
    verdicts = [f"{count:,} {verdict}" for verdict in _ORDER if (count := found.verdicts[verdict])]
    compared = sum(found.verdicts.values())
    rest = len(found.shapes) - compared - sum(each.became is not None for each in found.shapes)
    more = [f"{rest:,} not compared"] if rest else []
    said = ", ".join([*became, *verdicts, *more])
    mean = "" if found.speedup is None else f" Geometric mean of the speedup: {found.speedup:.3f}."
    limit = f" Changes below {format_share(found.smallest)} don't count." if compared else ""
    return f"{both} {said}.{mean}{limit}"


def _only_one(found: Differences) -> list[str]:
    lines = []
    if found.only_base:
        lines.append(f"{count_shapes(found.only_base)} of {found.base[0]} alone, not compared.")
    if found.only_candidate:
        lines.append(f"{count_shapes(found.only_candidate)} of {found.candidate[0]} alone, not compared.")
    if found.unpaired:
        shown = ", ".join(found.unpaired[:MOST_SHOWN])
        lines.append(f"In one run alone, and not compared: {shown}{' …' if len(found.unpaired) > MOST_SHOWN else ''}.")
    return lines


def _row(each: ShapeDifference) -> dict[str, Any]:
    speedup = each.speedup
    names = dict.fromkeys((each.base_name, each.candidate_name))
    return {
        "verdict": f"became {each.became}" if each.became else each.verdict or "-",
        "operator": each.base.operator,
        "shape": each.base.shape,
        **_figure(speedup),
        "base_ns": each.base_ns,
        "candidate_ns": each.candidate_ns,
        "mode": each.mode,
        "contender": ", then ".join(names),
        "why": each.candidate.failure or each.why,
    }


def _figure(speedup: Figure | None) -> dict[str, Any]:
    return {
        "speedup": speedup and speedup.value,
        "low": speedup and speedup.low,
        "high": speedup and speedup.high,
    }


def _gravest(each: ShapeDifference) -> tuple[int, float]:
    """What became wrong, what became right, then slower ones, the slowest first."""
    if each.became is not None:
        return (0 if each.became == "wrong" else 1), 0.0
    return _ORDER.get(each.verdict or "", 5), 0.0 if each.speedup is None else each.speedup.value


def _count(found: Differences, what: str) -> int:
    return sum(each.became == what for each in found.shapes)


VIEW = View(schema=Schema("ranking_differences", 1), sections=_sections, remarks=difference_remarks)
