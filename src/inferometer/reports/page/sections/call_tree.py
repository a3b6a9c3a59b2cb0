"""Who launched it: device time by callers, from named ranges, frames and modules through ops down to kernels."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from inferometer.reports.page.blocks import Block, Chart, Grid, Part, Words
from inferometer.reports.page.drawing import REST_COLOR, color, cut
from inferometer.reports.page.look import RunData
from inferometer.reports.page.section import RunSection
from inferometer.reports.page.tree_boxes import (
    ALL,
    GROUND,
    Box,
    BoxWords,
    icicle,
    short_label,
    tree_boxes,
    with_indent,
)
from inferometer.reports.views.layout import Field, Section
from inferometer.units import format_duration, format_share

if TYPE_CHECKING:
    from inferometer.analyses.launched_by.call_tree import CallTreeTable

_TITLE = "Who launched it"
_LACKING = "The trace would need single launches with their times, and the host calls that queued them."
_NOBODY = (
    "Nothing stands around the launches of this file: no framework ops, modules, frames or named ranges. Record next "
    "time with with_stack=True and record_shapes=True of torch.profiler, or name ranges with NVTX."
)
_CALLERS = ("span", "frame", "module", "op", "graph")
_COLORS = {kind: color(i) for i, kind in enumerate((*_CALLERS, "kernel"))} | {"unknown": REST_COLOR}
_FIELDS = (
    Field("total_ns", "Total", "ns"),
    Field("share", "Share", "share"),
    Field("self_ns", "Self", "ns"),
    Field("count", "Launches", "count"),
    Field("kind", "Kind", "text"),
    Field("called", "Name", "name"),
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


def _chart(table: "CallTreeTable") -> Chart:
    share = format_share(table.attributed_ns / table.total_ns)
    top = Box(
        ALL,
        "",
        "all device work",
        "all device work",
        f"{format_duration(table.total_ns)}; {share} attributed",
        GROUND,
        table.total_ns,
    )
    words = BoxWords(
        notes=lambda row: (
            f"{row['kind']}: {_text(row['total_ns'], row['count'], table)}; self {format_duration(row['self_ns'])}"
        ),
        shade=lambda row: _COLORS[row["kind"]],
        rest_notes=lambda row: _text(row["total_ns"], row["count"], table),
        summed=("total_ns", "count"),
    )
    boxes = [*tree_boxes(table.frame, top, words)]
    shades = {box.shade for box in boxes}
    keys = {kind: shade for kind, shade in _COLORS.items() if shade in shades}
    depth = int(table.frame["depth"].to_numpy().max())
    return icicle("Device time by caller", _main_fact(table), boxes, keys, depth)


def _text(time_ns: int, count: int, table: "CallTreeTable") -> str:
    launches = f"{count:,} {'launch' if count == 1 else 'launches'}"
    return f"{format_duration(time_ns)}, {format_share(time_ns / table.total_ns)}; {launches}"


def _main_fact(table: "CallTreeTable") -> str:
    """The deepest caller that has half of the time; without one the heaviest root."""
    half = table.frame.filter(pl.col("kind").is_in(_CALLERS), 2 * pl.col("total_ns") >= table.total_ns).tail(1)
    has = "has the most" if half.is_empty() else "is the deepest caller with at least half"
    first = table.frame.sort("total_ns", descending=True, maintain_order=True).head(1) if half.is_empty() else half
    kind, name, share = first.select("kind", "name", "share").row(0)
    return (
        f"{cut(short_label(kind, name))} {has} of {format_duration(table.total_ns)} device time: {format_share(share)}."
    )


def _grid(frame: pl.DataFrame) -> Grid:
    """The heaviest nodes as a tree, then the others, which are only added up."""
    table = Section("Heaviest callers and kernels", _FIELDS, with_indent(frame))
    return Grid(table, sums=("self_ns",), whole={"called": "full"})


SECTION = RunSection("call_tree", build, after="histogram", is_of_callers=True)
