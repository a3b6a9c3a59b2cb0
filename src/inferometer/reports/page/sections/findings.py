"""What to look at first: what rules found, then the remarks of the summary; of both runs where there are two."""

from collections.abc import Iterator

from inferometer.findings.engine import TITLE
from inferometer.findings.finding import Finding
from inferometer.findings.first_look import FirstLook
from inferometer.reports.page.blocks import Block, Point, Points
from inferometer.reports.page.look import Look
from inferometer.reports.page.section import PageSection
from inferometer.units import format_duration, format_share

_TONES = {"high": "bad", "medium": "warning", "low": "low", "info": "plain"}
_NOTHING = "Nothing stands out that a rule knows of."


def _build(look: Look) -> Block:
    if look.second is None:
        return Block("findings", TITLE, [_points(look.first, "")])
    return Block("findings", TITLE, [_points(look.first, "Base"), _points(look.second, "Candidate")])


def _points(run: FirstLook, title: str) -> Points:
    return Points([*_all_points(run)] or [Point(_NOTHING)], title)


def _all_points(run: FirstLook) -> Iterator[Point]:
    yield from map(_point, run.findings.findings)
    for remark in run.remarks():
        yield Point(remark)


def _point(finding: Finding) -> Point:
    size = "" if finding.size_ns is None else format_duration(finding.size_ns)
    share = "" if finding.share is None else format_share(finding.share)
    return Point(
        finding.title,
        mark=finding.severity,
        tone=_TONES[finding.severity],
        aside=", ".join(filter(None, (size, share))),
        detail=(*finding.evidence, f"Next: {finding.next}"),
    )


SECTION = PageSection("findings", 10, _build)
