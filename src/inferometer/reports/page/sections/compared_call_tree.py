"""What changed, by callers: both call trees as one in colours of the change, and the paths that one run alone has.

Widths are the times of a run, which the reader chooses; what the other alone has is in its picture only. The change is
the number after each name. Colours say how large it is of the larger total: orange for slower, blue for faster, which
all common kinds of colour vision can distinguish.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from inferometer.reports.page.blocks import Block, Chart, Grid, Part, Tab, Tabs, Words
from inferometer.reports.page.drawing import cut
from inferometer.reports.page.look import SIDES, PageData
from inferometer.reports.page.section import PageSection
from inferometer.reports.page.sections._two_runs import NOT_COMPARABLE
from inferometer.reports.page.tree_boxes import (
    ALL,
    GROUND,
    Box,
    BoxWords,
    Row,
    icicle,
    short_label,
    tree_boxes,
    with_indent,
)
from inferometer.reports.views.call_tree_comparison import about_steps, describe_totals
from inferometer.reports.views.layout import Field, Section
from inferometer.units import format_duration, format_share, format_signed_duration

if TYPE_CHECKING:
    from inferometer.analyses.compare.call_trees import CallTreeComparison

_TITLE = "What changed, by callers"
_LACKING = "Single launches in both runs, and the host calls that queued them."
_BANDS = ((0.05, 3), (0.01, 2), (0.002, 1))  # of the larger total, from which on a change has a colour
_PATH = " > "
_READING = (
    "A box is as wide as its time in the run that is chosen. Behind its name stands the change; the colour says how "
    "large that is of the larger of both runs' times: orange is slower, blue is faster."
)
_ONLY = (("new", "candidate", "New: only in the candidate"), ("gone", "base", "Gone: only in the base"))
_FIELDS = (
    Field("delta_ns", "Change", "ns"),
    Field("status", "Status", "text", spare=1),
    Field("base_ns", "Base", "ns"),
    Field("candidate_ns", "Candidate", "ns"),
    Field("ratio", "Ratio", "ratio"),
    Field("base_count", "Base launches", "ratio"),
    Field("candidate_count", "Candidate launches", "ratio"),
    Field("kind", "Kind", "text"),
    Field("called", "Name", "name"),
    Field("full", "In Full", "text"),
)


def build(look: PageData) -> Block | None:
    """The chart, the paths that are gone, and all nodes as a table."""
    found = look.comparison
    if found is None:
        return None
    if found.comparable.stops:
        return Block("compared_call_tree", _TITLE, lacking=NOT_COMPARABLE)
    tree = look.compared_trees
    if tree is None or not (tree.base_ns and tree.candidate_ns):
        return Block("compared_call_tree", _TITLE, lacking=_LACKING)
    charts = Tabs("As wide as the time of", [Tab(side.capitalize(), [_chart(tree, side)]) for side in reversed(SIDES)])
    return Block("compared_call_tree", _TITLE, [*_words(tree), charts, *_only(tree.frame), _grid(tree.frame)])


def _words(tree: "CallTreeComparison") -> Iterator[Part]:
    yield Words(f"Device time: {describe_totals(tree)}")
    yield Words(_alone(tree.frame))
    yield from (Words(text, "note") for text in (_READING, *about_steps(tree), *tree.notable))


def _alone(frame: pl.DataFrame) -> str:
    """How many paths one run alone has, each once, with their time: what is below them is theirs."""
    known = dict(frame.select("node", "status").iter_rows())
    stated = []
    for status, side, _ in _ONLY:
        tops = [row for row in frame.iter_rows(named=True) if _is_top(row, status, known)]
        time_ns = sum(row[f"{side}_ns"] for row in tops)
        some = f"{len(tops):,} path{'s' if len(tops) != 1 else ''} ({format_duration(time_ns)})" if tops else "nothing"
        stated.append(f"{some} in the {side}")
    return f"Only in one run: {', '.join(stated)}."


def _is_top(row: Row, status: str, known: Mapping[int, str | None]) -> bool:
    return row["status"] == status and known.get(row["parent"]) != status


def _chart(tree: "CallTreeComparison", side: str) -> Chart:
    largest_ns, whole_ns = max(tree.base_ns, tree.candidate_ns), {"base": tree.base_ns, "candidate": tree.candidate_ns}
    whole = {"base_ns": tree.base_ns, "candidate_ns": tree.candidate_ns, "delta_ns": tree.candidate_ns - tree.base_ns}
    label = f"all device work{_aside({**whole, 'status': None})}"
    top = Box(ALL, "", label, "all device work", _times(whole), _shade(whole, largest_ns), whole_ns[side])
    words = BoxWords(
        notes=_notes,
        shade=lambda row: _shade(row, largest_ns),
        rest_notes=_times,
        summed=("total_ns", "base_ns", "candidate_ns", "delta_ns"),
        aside=_aside,
    )
    frame = tree.frame.with_columns(pl.col(f"{side}_ns").alias("total_ns"))
    boxes = tree_boxes(frame, top, words)
    depth = int(frame["depth"].to_numpy().max())
    return icicle(f"The {side}'s time by caller, and its change", _alt(tree), boxes, _keys(), depth)


def _shade(row: Row, largest_ns: int) -> str:
    share = abs(row["delta_ns"]) / largest_ns
    band = next((number for least, number in _BANDS if share >= least), None)
    return GROUND if band is None else f"var(--{'slower' if row['delta_ns'] > 0 else 'faster'}-{band})"


def _keys() -> dict[str, str]:
    """The legend: from the largest loss to the largest gain, of the larger total."""
    slower = {f"+{format_share(least)} or more": f"var(--slower-{number})" for least, number in _BANDS}
    faster = {f"-{format_share(least)} or more": f"var(--faster-{number})" for least, number in reversed(_BANDS)}
    return {**slower, "less": GROUND, **faster}


def _aside(row: Row) -> str:
    status = f" {row['status']}" if row["status"] else ""
    return f"{status} {format_signed_duration(row['delta_ns'])}"


def _times(row: Row) -> str:
    before, after = (format_duration(row[side]) for side in ("base_ns", "candidate_ns"))
    return f"{before} -> {after}, {format_signed_duration(row['delta_ns'])}"


def _notes(row: Row) -> str:
    ratio = f", {row['ratio']:.3f} times" if row["ratio"] is not None else ""
    launches = f"{row['base_count']:,.4g} -> {row['candidate_count']:,.4g} launches"
    status = f"{row['status']} " if row["status"] else ""
    return f"{status}{row['kind']}: {_times(row)}{ratio}; {launches}"


def _alt(tree: "CallTreeComparison") -> str:
    """The deepest caller that has half of the change; without one the node that changed most."""
    frame, delta_ns = tree.frame, tree.candidate_ns - tree.base_ns
    if not (frame["delta_ns"] != 0).any():
        return f"No node differs. Device time: {describe_totals(tree)}"
    change, is_caller = pl.col("delta_ns"), pl.col("kind") != "kernel"
    half = frame.filter(is_caller, change * (1 if delta_ns > 0 else -1) * 2 >= max(abs(delta_ns), 1))
    has = "changed most" if half.is_empty() else "is the deepest caller with at least half of the change"
    row = (frame.sort(change.abs(), descending=True).head(1) if half.is_empty() else half.tail(1)).row(0, named=True)
    name = cut(short_label(row["kind"], row["name"]))
    return f"{name} {has}: {_times(row)}, of {format_signed_duration(delta_ns)} in all."


def _only(frame: pl.DataFrame) -> Iterator[Grid]:
    """The paths that one run alone has, each once: what is below them is theirs."""
    known = dict(frame.select("node", "status").iter_rows())
    for status, side, title in _ONLY:
        path: list[str] = []
        rows: list[dict[str, Any]] = []
        for row in frame.iter_rows(named=True):
            path[row["depth"] :] = [short_label(row["kind"], row["name"])]
            *callers, called = path
            if _is_top(row, status, known):
                rows.append({**row, "called": called, "path": _PATH.join(callers)})
        if rows:
            table = pl.DataFrame(rows, schema={**frame.schema, "called": pl.String, "path": pl.String})
            section = Section(title, _only_fields(side), table.sort(f"{side}_ns", descending=True))
            yield Grid(section, sums=(f"{side}_ns",))


def _only_fields(side: str) -> tuple[Field, ...]:
    return (
        Field(f"{side}_ns", "Time", "ns"),
        Field(f"{side}_count", "Launches", "ratio"),
        Field("kind", "Kind", "text"),
        Field("called", "Name", "name"),
        Field("path", "Below", "text"),
    )


def _grid(frame: pl.DataFrame) -> Grid:
    """The nodes with the most time in either run, as a tree."""
    heaviest = pl.max_horizontal("base_ns", "candidate_ns").alias("total_ns")
    section = Section("Both call trees", _FIELDS, with_indent(frame.with_columns(heaviest)))
    return Grid(section, sums=(), bars=("delta_ns",))


SECTION = PageSection("compared_call_tree", build, after="compared_kernels", is_of_callers=True)
