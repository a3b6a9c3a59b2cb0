"""Tests of two runs side by side: which is slower, by how much, and whether that is more than repetitions vary."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from inferometer.analyses.compare.tests import ComparedTest, TestComparison
from inferometer.analyses.comparison_limits import MIN_CHANGE
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section, frame_of
from inferometer.reports.views.view import View
from inferometer.units import MISSING, format_counted, format_list, format_sample, format_share

_LISTED: Final = 5
_FIELDS: Final = (
    Field("name", "Test", "name"),
    Field("kind", "Verdict", "text"),
    Field("ratio", "Time", "ratio"),
    Field("within", "95 %", "text"),
    Field("base_ns", "Base", "ns"),
    Field("candidate_ns", "Candidate", "ns"),
    Field("base_spread", "Base ±", "share", spare=1),
    Field("candidate_spread", "Candidate ±", "share", spare=1),
    Field("repetitions", "Repetitions", "text", spare=2),
    Field("rates", "Tokens/s", "text", spare=3),
)
_NOTE: Final = "Time is candidate over base: above 1, the candidate is slower. ± is the deviation of a repetition."


def headline(found: TestComparison) -> str:
    """The answer in a sentence."""
    what = "test" if found.are_tests else "kind of step"
    if found.verdict == "not comparable":
        return f"Not comparable: {found.stops}"
    both = [row for row in found.rows if row.kind not in ("new", "gone")]
    of = f"of {format_counted(len(both), what).replace('kind of steps', 'kinds of steps')}"
    slower, faster = found.of_kind("slower"), found.of_kind("faster")
    if not slower and not faster:
        doubtful = len(both) - len(found.of_kind("same"))
        if not doubtful:
            return f"No difference: none {of} differs by more than runs drift, {format_share(MIN_CHANGE)}."
        return f"Can't tell: {doubtful:,} {of} can't be judged, and none is clearly slower or faster."
    words = [f"{len(rows):,} {kind}" for kind, rows in (("slower", slower), ("faster", faster)) if rows]
    return f"{format_list(words).capitalize()} {of}: {'; '.join(map(_describe, (slower + faster)[:_LISTED]))}."


def _describe(row: ComparedTest) -> str:
    low, high = row.interval or (0.0, 0.0)
    return f"{row.name} takes {row.ratio:.3f} times as long ({low:.3f} to {high:.3f})"


def _facts(found: TestComparison) -> Sequence[tuple[str, str]]:
    lines = [("Base", found.base), ("Candidate", found.candidate), ("Verdict", headline(found))]
    if found.setup:
        lines.append(("Set-up", "; ".join(change.describe() for change in found.setup)))
    return lines


def _sections(found: TestComparison) -> Sequence[Section]:
    rows = [_row(row) for row in found.rows]
    title = "Tests side by side" if found.are_tests else "Steps side by side"
    return [Section(title, _FIELDS, frame_of(rows, _FIELDS), (_NOTE,))]


def _row(row: ComparedTest) -> dict[str, Any]:
    sides = {"base": row.base, "candidate": row.candidate}
    counts = [None if one is None or one.count is None else f"{one.count:,}" for one in sides.values()]
    rates = [None if one is None or one.rate is None else format_sample(one.rate) for one in sides.values()]
    return {
        "name": row.name,
        "kind": row.kind,
        "ratio": row.ratio,
        "within": None if row.interval is None else " to ".join(f"{each:.3f}" for each in row.interval),
        "repetitions": _pair(counts),
        "rates": _pair(rates),
        **{f"{side}_ns": None if one is None else one.mean_ns for side, one in sides.items()},
        **{f"{side}_spread": None if one is None else one.spread for side, one in sides.items()},
    }


def _pair(texts: Sequence[str | None]) -> str | None:
    return " → ".join(text or MISSING for text in texts) if any(texts) else None


def _remarks(found: TestComparison) -> Iterator[str]:
    if found.verdict == "not comparable":
        return
    if unclear := found.of_kind("unclear"):
        yield (
            f"Can't tell of {format_list([*map(_range, unclear[:_LISTED])])}"
            f"{_more(unclear)}: the interval of the time's ratio holds 1 or a drift of runs, and more than "
            f"{format_share(MIN_CHANGE)}, too. More repetitions tell."
        )
    if unknown := found.of_kind("unknown"):
        yield (
            f"{_names(unknown)}: the files don't have two or more repetitions in both runs with their number, so "
            "nothing says whether this is noise. llama-bench writes each repetition with -o json."
            if found.are_tests
            else f"{_names(unknown)}: fewer than two in one of the runs, so nothing says whether this is noise."
        )
    for kind, side in (("gone", "base"), ("new", "candidate")):
        if rows := [row for row in found.rows if row.kind == kind]:
            yield f"Only the {side} has {_names(rows)}."
    if any(row.interval for row in found.rows):
        yield (
            "Repetitions follow each other in one process. What differs from process to process isn't in their spread: "
            f"only differences beyond {format_share(MIN_CHANGE)}, what runs of one set-up drift by, are called slower "
            "or faster."
        )


def _range(row: ComparedTest) -> str:
    low, high = row.interval or (0.0, 0.0)
    return f"{row.name} ({low:.3f} to {high:.3f})"


def _more(rows: Sequence[ComparedTest]) -> str:
    return f" and {len(rows) - _LISTED:,} more" if len(rows) > _LISTED else ""


def _names(rows: Sequence[ComparedTest]) -> str:
    names = [row.name for row in rows[:_LISTED]]
    return format_list([*names, f"{len(rows) - _LISTED:,} more"] if len(rows) > _LISTED else names)


VIEW = View(
    schema=Schema("compared_tests", 1),
    facts=_facts,
    sections=_sections,
    remarks=_remarks,
    remarks_in_json=True,
)
