"""What to look at first: what rules found, then the remarks of the summary; of two runs what both share once."""

from collections.abc import Mapping
from dataclasses import replace

from inferometer.analyses.timeline.timeline import Timeline
from inferometer.findings.finding import Finding
from inferometer.findings.first_look import FirstLook
from inferometer.reports.page.blocks import Block, Part, Point, Points, Words
from inferometer.reports.page.look import PageData
from inferometer.reports.page.section import PageSection
from inferometer.reports.page.time_line.marks import find_address
from inferometer.reports.views.findings import TITLE, what_was_examined
from inferometer.reports.views.view import remarks_of
from inferometer.units import format_duration, format_share

_TONES = {"high": "bad", "medium": "warning", "low": "low", "info": "plain"}


def _build(look: PageData) -> Block:
    if look.candidate is None:
        base = _points(look.base.first, look.base.timeline)
        return Block("findings", TITLE, [*([Points(base)] if base else []), _examined(look.base.first)])
    base, candidate = _points(look.base.first), _points(look.candidate.first)
    both = [point for point in base if point in candidate]
    parts: list[Part] = []
    for title, run, points in (("Base", look.base.first, base), ("Candidate", look.candidate.first, candidate)):
        own = [point for point in points if point not in both]
        parts += [*([Points(own, title)] if own else []), _examined(run, f"{title}: ")]
    return Block("findings", TITLE, [*parts, *([Points(both, "Both runs")] if both else [])])


def _examined(run: FirstLook, whose: str = "") -> Words:
    """What was looked at, and the idle time that no finding is about."""
    return Words(f"{whose}{' '.join(what_was_examined(run.findings))}", "note")


def _points(run: FirstLook, timeline: Timeline | None = None) -> list[Point]:
    """With a time line, each finding leads to its place on it; of two runs it would not say on whose."""
    titles = {finding.rule: finding.title for finding in reversed(run.findings.findings)}
    points = [
        replace(_point(finding, titles), place=find_address(finding, timeline)) for finding in run.findings.findings
    ]
    return [*points, *map(Point, remarks_of(run))]


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


SECTION = PageSection("findings", _build, after="verdict")
