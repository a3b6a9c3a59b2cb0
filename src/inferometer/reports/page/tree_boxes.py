"""Call trees as icicles: the heaviest nodes as boxes below their callers, the rest of each node's children as one.

So widths still add up. The table of a tree, for those who can't see or point at boxes, has the heaviest nodes in the
tree's order.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.names import decode
from inferometer.reports.page.blocks import MOST_ROWS, Chart
from inferometer.reports.page.drawing import ICICLE, cut

BOXES = 1_500
"""Boxes of a chart: nodes, and one for the rest of each node's children."""

LEVELS = 32
"""Levels of a tree that the chart shows at once; a click on a box goes down to it."""

GROUND = "var(--line)"
ALL = "all"

_REST = "rest"
_FOLDERS = re.compile(r"^[^(]*[/\\](?=[^/\\]*\.py)")
_FILE = re.compile(r"^[^(]*\.py(?:\(\d+\): |:\d+ )")
_WIDE = 0.2  # of all time: boxes from here on have room for a frame's file next to its function
_HOVER = 500  # characters of a name that hovering shows
_LEVEL_PX = 24
_SPACE = "\u00a0"  # one that no line breaks at: a second line would not be indented
_INDENT = 12  # levels by which the table indents; more would leave no room for names
_CALLED = 46  # characters of a name in the table, with its indent
_LEGEND = {
    "showlegend": True,
    "legend": {"itemclick": False, "itemdoubleclick": False},
    "xaxis": {"visible": False, "fixedrange": True},
    "yaxis": {"visible": False, "fixedrange": True},
}
Row = Mapping[str, Any]


class Box(msgspec.Struct, frozen=True):
    """One area. `id` and `parent` are ours; `label` and `whole` come from the file."""

    id: str
    parent: str
    label: str
    whole: str
    notes: str
    shade: str
    time_ns: int


class BoxWords(msgspec.Struct, frozen=True):
    """What a box shows of a row: `notes` where it is pointed at, `shade`, and what is after its `label`.

    `rest_notes` and the sums of `summed` are of children that have no box of their own.
    """

    notes: Callable[[Row], str]
    shade: Callable[[Row], str]
    rest_notes: Callable[[Row], str]
    summed: Sequence[str]
    aside: Callable[[Row], str] = lambda row: ""


def tree_boxes(frame: pl.DataFrame, top: Box, words: BoxWords) -> Iterator[Box]:
    """`top` for all work, the heaviest nodes, then the rests: so each rest comes after its siblings.

    Args:
        frame: A row per node, depth first: `node`, `parent`, `kind`, `name`, `share`, `total_ns`, what `words` uses.
        top: Of the identity `ALL`.
        words: What boxes show.
    """
    yield top
    drawn = heaviest(frame, BOXES - 1)
    for row in frame.filter(drawn).iter_rows(named=True):
        label = f"{cut(_label(row))}{words.aside(row)}"
        whole = cut(row["name"], _HOVER)
        yield Box(
            str(row["node"]), _id(row["parent"]), label, whole, words.notes(row), words.shade(row), row["total_ns"]
        )
    nodes = frame.filter(drawn)["node"].implode()
    rests = frame.filter(~drawn).filter(pl.col("parent").is_null() | pl.col("parent").is_in(nodes))
    sums = rests.group_by("parent", maintain_order=True).agg(pl.len().alias("nodes"), pl.col(words.summed).sum())
    for row in sums.filter(pl.col("total_ns") > 0).iter_rows(named=True):
        name = f"({row['nodes']:,} smaller)"
        parent = row["parent"]
        yield Box(f"{_REST}{parent}", _id(parent), name, name, words.rest_notes(row), GROUND, row["total_ns"])


def icicle(title: str, alt: str, boxes: Iterable[Box], keys: Mapping[str, str], depth: int) -> Chart:
    """The chart of these boxes.

    Args:
        title: Of the chart.
        alt: Its main fact.
        boxes: All of them.
        keys: The legend: a colour by what it stands for.
        depth: Of the deepest node.
    """
    drawn = [*boxes]
    levels = min(LEVELS, 2 + depth)
    data = {
        **ICICLE,
        "ids": [box.id for box in drawn],
        "parents": [box.parent for box in drawn],
        "labels": [box.label for box in drawn],
        "values": [box.time_ns for box in drawn],
        "text": [box.notes for box in drawn],
        "customdata": [box.whole for box in drawn],
        "maxdepth": levels,
        "marker": {"colors": [box.shade for box in drawn], "line": {"width": 1, "color": "var(--paper)"}},
    }
    layout = {"uniformtext": {"minsize": 11, "mode": "hide"}, **_LEGEND}
    return Chart(title, alt, [data, *(_key(*key) for key in keys.items())], layout, height=60 + _LEVEL_PX * levels)


def _key(name: str, shade: str) -> dict[str, Any]:
    """A line of the legend, which icicles don't have: a series without points."""
    marker = {"color": shade, "symbol": "square", "size": 10}
    return {"type": "scatter", "mode": "markers", "name": name, "x": [None], "y": [None], "marker": marker}


def short_label(kind: str, name: str) -> str:
    """A node's name without arguments of templates and folders of files."""
    if kind == "kernel":
        return decode(name).short_name
    return _FOLDERS.sub("", name) if kind == "frame" else name


def _label(row: Row) -> str:
    label = short_label(row["kind"], row["name"])
    return _FILE.sub("", label) if row["kind"] == "frame" and row["share"] < _WIDE else label


def _id(node: int | None) -> str:
    return ALL if node is None else str(node)


def with_indent(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows for a table: the heaviest nodes with `called`, short and indented, and `full` where that isn't the name.

    The others stand behind them, to be added up.
    """
    flags = pl.Series(_ranks(frame) < MOST_ROWS)
    shown, called, full = frame.filter(flags), [], []
    for kind, depth, name in shown.select("kind", "depth", "name").iter_rows():
        indent = 2 * min(depth, _INDENT) * _SPACE
        label = cut(short_label(kind, name), _CALLED - len(indent))
        called.append(indent + label.replace(" ", _SPACE))
        full.append("" if label == name else name)
    shown = shown.with_columns(pl.Series("called", called, pl.String), pl.Series("full", full, pl.String))
    return pl.concat([shown, frame.filter(~flags)], how="diagonal")


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
