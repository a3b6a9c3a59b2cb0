"""What to look at first: what rules found, then, folded, what the summary remarks; of two runs what both share once."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from inferometer.analyses.timeline.timeline import Timeline
from inferometer.findings.finding import Finding
from inferometer.findings.first_look import FirstLook
from inferometer.reports.page.beside import HEADS, beside
from inferometer.reports.page.blocks import Beside, Block, Fold, Folds, Part, Point, Points, Words
from inferometer.reports.page.look import PageData
from inferometer.reports.page.section import PageSection
from inferometer.reports.page.time_line.marks import find_address
from inferometer.reports.views.findings import TITLE, what_was_examined
from inferometer.reports.views.view import remarks_of
from inferometer.units import format_duration, format_share

_TONES = {"high": "bad", "medium": "warning", "low": "low", "info": "plain"}


def _build(look: PageData) -> Block:
    examined = [_examined(run.first) for run in look.runs]
    if look.candidate is None:
        found = _list(_points(look.base.first, look.base.timeline), opened=1)
        return Block("findings", TITLE, [*found, *_folded(_remarks(look.base.first)), *examined])
    found = [*beside(*(_list(_points(run.first)) for run in look.runs))]
    remarks = [*beside(*(_remarks(run.first) for run in look.runs))]
    if examined[0] == examined[1]:
        said: Part = replace(examined[0], text=f"Each run: {examined[0].text}")
    else:
        said = Beside(HEADS, [examined])
    return Block("findings", TITLE, [*found, *_folded(remarks), said])


def _list(points: Sequence[Point], opened: int = 0) -> list[Part]:
    return [Points(points, opened=opened)] if points else []


def _remarks(run: FirstLook) -> list[Part]:
    return _list([*map(Point, remarks_of(run))])


def _folded(remarks: Sequence[Part]) -> list[Part]:
    """Facts that are no findings don't stand between these and the time line."""
    return [Folds([Fold("Remarks", remarks)])] if remarks else []


def _examined(run: FirstLook) -> Words:
    """What was looked at, and the idle time that no finding is about."""
    return Words(" ".join(what_was_examined(run.findings)), "note")


def _points(run: FirstLook, timeline: Timeline | None = None) -> list[Point]:
    """With a time line, each finding leads to its place on it; of two runs it would not say on whose."""
    titles = {finding.rule: finding.title for finding in reversed(run.findings.findings)}
    return [
        replace(_point(finding, titles), place=find_address(finding, timeline)) for finding in run.findings.findings
    ]


def _point(finding: Finding, titles: Mapping[str, str]) -> Point:
    size = "" if finding.size_ns is None else format_duration(finding.size_ns)
    share = "" if finding.share is None else format_share(finding.share)
    cause = titles.get(finding.explained_by or "")
    explained = () if cause is None else (f"Explained by: {cause}",)
    return Point(
        finding.title,
        mark=finding.severity,
        tone=_TONES[finding.severity],
        aside=", ".join(filter(None, (size, share))),
        detail=(*finding.evidence, *explained, f"Next: {finding.next}"),
    )


SECTION = PageSection("findings", _build, after="overview")
