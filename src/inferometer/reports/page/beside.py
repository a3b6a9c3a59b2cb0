"""The sections of two runs as one: what is narrow stands side by side, what is wide is a switch between the runs.

Charts, lists and sentences of both runs are set next to each other, those of one title or kind in one row. Tables, and
charts that need the page's width (call trees, heat maps), are seen one run at a time. Nothing of either run is left
out: what both say in the same words stands there once, what one run lacks is reported above.
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby

from msgspec.structs import replace

from inferometer.reports.page.blocks import (
    Beside,
    Block,
    Chart,
    Facts,
    Numbers,
    Part,
    Point,
    Points,
    Stack,
    Tab,
    Tabs,
    Words,
)
from inferometer.reports.page.scales import share_scales

HEADS = ("Base", "Candidate")
SWITCH = "Run"

_NARROW = (Words, Facts, Points, Numbers, Stack, Chart)
_WIDE_CHARTS = frozenset({"heatmap", "icicle"})  # their boxes and cells have no room in half the width
Row = tuple[Part | None, Part | None]


def set_beside(base: Block | None, candidate: Block | None) -> Block | None:
    """One section of those of both runs, the charts that they share on the same scales; None where neither has any."""
    if base is None and candidate is None:
        return None
    if base and candidate and base.lacking and candidate.lacking:
        same = base.lacking == candidate.lacking
        return base if same else replace(base, lacking=f"Base: {base.lacking} Candidate: {candidate.lacking}")
    for own, other, side, lacks in ((base, candidate, HEADS[0], HEADS[1]), (candidate, base, HEADS[1], HEADS[0])):
        if own and (other is None or other.lacking):
            why = f" The {lacks.lower()} lacks it: {other.lacking}" if other else ""
            return replace(own, parts=[Words(f"Of the {side.lower()} alone.{why}", "note"), *own.parts])
    base, candidate = share_scales(base, candidate)
    assert base is not None  # all other cases are above
    assert candidate is not None
    return replace(base, parts=[*beside(base.parts, candidate.parts)])


def beside(base: Sequence[Part], candidate: Sequence[Part]) -> Iterator[Part]:
    """The parts of both: rows of narrow ones, a switch for each stretch of wide ones, in order."""
    for kind, group in groupby(_rows(base, candidate), key=_kind):
        rows = [*group]
        if kind == "same":
            yield from (left for left, _ in rows if left is not None)
        elif kind == "narrow":
            yield Beside(HEADS, rows)
        else:
            yield switch(*([part for part in side if part is not None] for side in zip(*rows, strict=True)))


def switch(base: Sequence[Part], candidate: Sequence[Part]) -> Tabs:
    """One run at a time; a run without parts says so."""
    none = [Words("Nothing to show of this run.", "note")]
    return Tabs(SWITCH, [Tab(head, parts or none) for head, parts in zip(HEADS, (base, candidate), strict=True)])


def _rows(base: Sequence[Part], candidate: Sequence[Part]) -> Iterator[Row]:
    """Parts of one kind and title in one row, in the order of both."""
    left, right = ([*map(_key, parts)] for parts in (base, candidate))
    for tag, i, i_end, j, j_end in SequenceMatcher(a=left, b=right, autojunk=False).get_opcodes():
        if tag == "equal":
            for row in zip(base[i:i_end], candidate[j:j_end], strict=True):
                yield from _apart(*row)
        else:
            yield from ((part, None) for part in base[i:i_end])
            yield from ((None, part) for part in candidate[j:j_end])


def _apart(base: Part, candidate: Part) -> Iterator[Row]:
    """A row; of lists what is in one alone, then what is in both."""
    if not (isinstance(base, Points) and isinstance(candidate, Points)):
        yield base, candidate
        return
    both = [point for point in base.points if point in candidate.points]
    own = [[point for point in side.points if point not in both] for side in (base, candidate)]
    if any(own):
        yield points_or_none(own[0], base.title), points_or_none(own[1], base.title)
    if both:
        shared = Points(both, "Both runs")
        yield shared, shared


def points_or_none(points: Sequence[Point], title: str = "") -> Points | None:
    """A list, where there is anything to list."""
    return Points(points, title) if points else None


def _key(part: Part) -> tuple[str, str]:
    """What parts of two runs are set next to each other by."""
    if isinstance(part, Chart):
        return "Chart", part.pair
    title = part.title if isinstance(part, Points | Stack) else part.kind if isinstance(part, Words) else ""
    return type(part).__name__, title


def _kind(row: Row) -> str:
    left, right = row
    if isinstance(left, Words | Points) and left == right:
        return "same"
    return "narrow" if all(part is None or _is_narrow(part) for part in row) else "wide"


def _is_narrow(part: Part) -> bool:
    if isinstance(part, Chart):
        return all(trace.get("type") not in _WIDE_CHARTS for trace in part.data)
    return isinstance(part, _NARROW)
