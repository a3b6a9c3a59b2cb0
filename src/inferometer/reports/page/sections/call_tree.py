"""Who launched it: device time by callers, from named ranges, frames and modules through ops down to kernels.

The chart has the heaviest nodes; of each node's children, those that are left out are one box, so widths still add up.
The table next to it, for those who can't see or point at boxes, has the heaviest nodes in the tree's order.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.names import decode
from inferometer.reports.page.blocks import MOST_ROWS, Block, Chart, Grid, Part, Words
from inferometer.reports.page.drawing import ICICLE, REST_COLOR, color, cut
from inferometer.reports.page.look import RunData
from inferometer.reports.page.section import RunSection
from inferometer.reports.views.layout import Field, Section
from inferometer.units import format_duration, format_share

if TYPE_CHECKING:
    from inferometer.analyses.launched_by.call_tree import CallTreeTable

BOXES = 1_500
"""Of the chart: nodes, and one for the rest of each node's children."""

LEVELS = 32
"""Of the tree, as many as the chart shows at once; a click on a box goes down to it."""

_TITLE = "Who launched it"
_LACKING = "The trace would need single launches with their times, and the host calls that queued them."
_NOBODY = (
    "Nothing stands around the launches of this file: no framework ops, modules, frames or named ranges. Record next "
    "time with with_stack=True and record_shapes=True of torch.profiler, or name ranges with NVTX."
)
_ALL, _REST = "all", "rest"
_CALLERS = ("span", "frame", "module", "op", "graph")
_GROUND = "var(--line)"
_COLORS = {kind: color(i) for i, kind in enumerate((*_CALLERS, "kernel"))}
_COLORS |= {"unknown": REST_COLOR, _ALL: _GROUND, _REST: _GROUND}
_FOLDERS = re.compile(r"^[^(]*[/\\](?=[^/\\]*\.py)")
_FILE = re.compile(r"^[^(]*\.py(?:\(\d+\): |:\d+ )")
_WIDE = 0.2  # of all time: boxes from here on have room for a frame's file next to its function
_HOVER = 500  # characters of a name that hovering shows
_LEVEL_PX = 24
_SPACE = "\u00a0"  # one that no line breaks at: a second line would not be indented
_INDENT = 12  # levels by which the table indents; more would leave no room for names
_CALLED = 46  # characters of a name in the table, with its indent
_FIELDS = (
    Field("total_ns", "Total", "ns"),
    Field("share", "Share", "share"),
    Field("self_ns", "Self", "ns"),
    Field("count", "Launches", "count"),
    Field("kind", "Kind", "text"),
    Field("called", "Name", "name"),
    Field("full", "In Full", "text"),
)


def build(run: RunData) -> Block | None:
    """What share has a caller, the chart, the heaviest nodes."""
    table = run.call_tree
    if table is None or not table.total_ns:
        return Block("call_tree", _TITLE, lacking=_LACKING)
    return Block("call_tree", _TITLE, [*_words(table), _chart(table), _grid(table.frame)])


def _words(table: "CallTreeTable") -> Iterator[Part]:
    share, total = format_share(table.attributed_ns / table.total_ns), format_duration(table.total_ns)
    yield Words(f"{share} of {total} device time is attributed to who launched it.")
    if not table.frame["kind"].is_in(_CALLERS).any():
        yield Words(_NOBODY, "warning")
    unknown = table.frame.filter(pl.col("kind") == "unknown").select("total_ns", "name").rows()
    if unknown:
        notes = [f"{format_duration(time_ns)} {name}" for time_ns, name in unknown]
        yield Words(f"Not attributed: {'; '.join(notes)}.", "note")
    yield from (Words(text, "note") for text in table.notable)


@dataclass(frozen=True)
class _Box:
    """One area. `id` and `parent` are ours; `label` and `whole` come from the file."""

    id: str
    parent: str
    label: str
    whole: str
    notes: str
    kind: str
    time_ns: int


def _chart(table: "CallTreeTable") -> Chart:
    boxes = [*_boxes(table)]
    levels = min(LEVELS, 2 + int(table.frame["depth"].to_numpy().max()))
    data = {
        **ICICLE,
        "ids": [box.id for box in boxes],
        "parents": [box.parent for box in boxes],
        "labels": [cut(box.label) for box in boxes],
        "values": [box.time_ns for box in boxes],
        "text": [box.notes for box in boxes],
        "customdata": [box.whole for box in boxes],
        "maxdepth": levels,
        "marker": {"colors": [_COLORS[box.kind] for box in boxes], "line": {"width": 1, "color": "var(--paper)"}},
    }
    kinds = [kind for kind in _COLORS if kind in {box.kind for box in boxes} - {_ALL, _REST}]
    layout = {"uniformtext": {"minsize": 11, "mode": "hide"}, **_LEGEND}
    height = 60 + _LEVEL_PX * levels
    return Chart("Device time by caller", _main_fact(table), [data, *map(_key, kinds)], layout, height=height)


def _key(kind: str) -> dict[str, Any]:
    """A line of the legend, which icicles don't have: a series without points."""
    marker = {"color": _COLORS[kind], "symbol": "square", "size": 10}
    return {"type": "scatter", "mode": "markers", "name": kind, "x": [None], "y": [None], "marker": marker}


_LEGEND = {
    "showlegend": True,
    "legend": {"itemclick": False, "itemdoubleclick": False},
    "xaxis": {"visible": False, "fixedrange": True},
    "yaxis": {"visible": False, "fixedrange": True},
}


def _boxes(table: "CallTreeTable") -> Iterator[_Box]:
    """All work, the heaviest nodes, then the rests: so each rest stands behind its siblings."""
    notes = f"{format_duration(table.total_ns)}; {format_share(table.attributed_ns / table.total_ns)} attributed"
    yield _Box(_ALL, "", "all device work", "all device work", notes, _ALL, table.total_ns)
    drawn = heaviest(table.frame, BOXES - 1)
    for row in table.frame.filter(drawn).iter_rows(named=True):
        label, whole = _short(row["kind"], row["name"]), cut(row["name"], _HOVER)
        if row["kind"] == "frame" and row["share"] < _WIDE:
            label = _FILE.sub("", label)
        notes = f"{row['kind']}: {_text(row['total_ns'], row['count'], table)}; self {format_duration(row['self_ns'])}"
        yield _Box(str(row["node"]), _id(row["parent"]), label, whole, notes, row["kind"], row["total_ns"])
    nodes = table.frame.filter(drawn)["node"].implode()
    rests = table.frame.filter(~drawn).filter(pl.col("parent").is_null() | pl.col("parent").is_in(nodes))
    sums = rests.group_by("parent", maintain_order=True).agg(pl.len(), pl.col("total_ns", "count").sum())
    for parent, smaller, time_ns, count in sums.filter(pl.col("total_ns") > 0).iter_rows():
        words = f"({smaller:,} smaller)"
        yield _Box(f"{_REST}{parent}", _id(parent), words, words, _text(time_ns, count, table), _REST, time_ns)


def _id(node: int | None) -> str:
    return _ALL if node is None else str(node)


def _short(kind: str, name: str) -> str:
    if kind == "kernel":
        return decode(name).short_name
    return _FOLDERS.sub("", name) if kind == "frame" else name


def _text(time_ns: int, count: int, table: "CallTreeTable") -> str:
    launches = f"{count:,} {'launch' if count == 1 else 'launches'}"
    return f"{format_duration(time_ns)}, {format_share(time_ns / table.total_ns)}; {launches}"


def _main_fact(table: "CallTreeTable") -> str:
    """The deepest caller that has half of the time; without one the heaviest root."""
    half = table.frame.filter(pl.col("kind").is_in(_CALLERS), 2 * pl.col("total_ns") >= table.total_ns).tail(1)
    has = "has the most" if half.is_empty() else "is the deepest caller with at least half"
    first = table.frame.sort("total_ns", descending=True, maintain_order=True).head(1) if half.is_empty() else half
    kind, name, share = first.select("kind", "name", "share").row(0)
    return f"{cut(_short(kind, name))} {has} of {format_duration(table.total_ns)} device time: {format_share(share)}."


def _grid(frame: pl.DataFrame) -> Grid:
    """The heaviest nodes as a tree, then the others, which are only added up."""
    flags = pl.Series(_ranks(frame) < MOST_ROWS)
    shown, called, full = frame.filter(flags), [], []
    for kind, depth, name in shown.select("kind", "depth", "name").iter_rows():
        indent = 2 * min(depth, _INDENT) * _SPACE
        label = cut(_short(kind, name), _CALLED - len(indent))
        called.append(indent + label.replace(" ", _SPACE))
        full.append("" if label == name else name)
    shown = shown.with_columns(pl.Series("called", called, pl.String), pl.Series("full", full, pl.String))
    rows = pl.concat([shown, frame.filter(~flags)], how="diagonal")
    return Grid(Section("Heaviest callers and kernels", _FIELDS, rows), sums=("self_ns",))


def heaviest(frame: pl.DataFrame, most: int) -> pl.Series:
    """Which nodes to draw, so that with one more for each whose children aren't all drawn there are at most `most`.

    Whatever is drawn has its parents drawn; nodes without time are not.

    Args:
        frame: A row per node, depth first, no lighter than its children together. Needs `parent`, `total_ns`.
        most: From 1 on.
    """
    ranks = _ranks(frame)
    parent, timed = frame["parent"].fill_null(-1).to_numpy(), (frame["total_ns"] > 0).to_numpy()
    last_child = np.full(frame.height + 1, -1)  # the rank of each node's lightest child; at the end that of the roots
    np.maximum.at(last_child, parent[timed], ranks[timed])
    own = np.append(ranks, -1)
    low, high = 0, int(timed.sum())
    while low < high:
        middle = (low + high + 1) // 2
        rests = int(((own < middle) & (last_child >= middle)).sum())
        low, high = (middle, high) if middle + rests <= most else (low, middle - 1)
    return pl.Series(ranks < low)


def _ranks(frame: pl.DataFrame) -> NDArray[np.int64]:
    """Each node's place by falling time, from 0 on; parents come before their children."""
    order = np.argsort(-frame["total_ns"].to_numpy(), kind="stable")
    ranks = np.empty(frame.height, dtype=np.int64)
    ranks[order] = np.arange(frame.height)
    return ranks


SECTION = RunSection("call_tree", build, after="timeline")
