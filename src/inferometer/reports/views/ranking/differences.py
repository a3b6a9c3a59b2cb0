"""The tables of two runs' differences: what isn't alike about them, then shape by shape."""

from typing import Any

from inferometer.bench.ranking.differences import Differences, ShapeDifference
from inferometer.reports.views.layout import Field, Section, frame_of
from inferometer.reports.views.ranking.remarks import count_shapes
from inferometer.reports.views.ranking.shortened import MOST_SHOWN, join_shapes, shortened
from inferometer.reports.views.view import View

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
UNPAIRED = (
    "Speedup: base over candidate, above 1 the candidate is faster. The runs aren't paired: the interval is made from "
    "those of both, and what changed between the runs isn't in it."
)


def _sections(found: Differences) -> list[Section]:
    """Two tables; of a long one in a terminal the beginning, the gravest first."""
    return [shortened(changes_section(found)), shortened(join_shapes(differences_section(found)))]


def changes_section(found: Differences) -> Section:
    """What isn't alike about the runs."""
    rows = [{"what": each.what, "base": each.base, "candidate": each.candidate} for each in found.changes]
    title = "What differs between the runs"
    return Section(title, _CHANGES, frame_of(rows, _CHANGES))


def differences_section(found: Differences) -> Section:
    """Every shape of both, the gravest first; where times aren't compared, those that became right or wrong alone."""
    shown = [each for each in found.shapes if found.incomparable is None or each.became is not None]
    rows = [_row(each) for each in sorted(shown, key=_gravest)]
    notes = [f"Base: {found.base[0]}. Candidate: {found.candidate[0]}."]
    if found.speedup is not None:
        notes.append(UNPAIRED)
    return Section("Differences", _SHAPES, frame_of(rows, _SHAPES), notes)


def difference_remarks(found: Differences) -> list[str]:
    """The verdict over all shapes first."""
    return [_summary(found), *_only_one(found)]


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
    mean = "" if found.speedup is None else f" Geometric mean of the speedup: {found.speedup:.3f}."
    return f"{both} {', '.join([*became, *verdicts, *more])}.{mean}"


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
    names = dict.fromkeys((each.base.contender, each.candidate.contender))
    return {
        "verdict": f"became {each.became}" if each.became else each.verdict or "-",
        "operator": each.base.operator,
        "shape": each.base.shape,
        "speedup": speedup and speedup.value,
        "low": speedup and speedup.low,
        "high": speedup and speedup.high,
        "base_ns": None if speedup is None else each.base_ns,
        "candidate_ns": None if speedup is None else each.candidate_ns,
        "mode": each.mode,
        "contender": ", then ".join(names),
        "why": each.candidate.failure or each.why,
    }


def _gravest(each: ShapeDifference) -> tuple[int, float]:
    """What became wrong, what became right, then slower ones, the slowest first."""
    if each.became is not None:
        return (0 if each.became == "wrong" else 1), 0.0
    return _ORDER.get(each.verdict or "", 5), 0.0 if each.speedup is None else each.speedup.value


def _count(found: Differences, what: str) -> int:
    return sum(each.became == what for each in found.shapes)


VIEW = View(sections=_sections, remarks=difference_remarks)
