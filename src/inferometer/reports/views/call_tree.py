"""The tree of who launched what; ops that call one op alone stand on its line."""

from collections.abc import Iterator, Sequence

import polars as pl

from inferometer.analyses.launched_by.call_tree import CallTreeTable
from inferometer.names import decode
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View
from inferometer.units import format_share

_FIELDS = (
    Field("share", "Time", "share"),
    Field("total_ns", "Total Time", "ns"),
    Field("direct_ns", "Launched Here", "ns", spare=2),
    Field("count", "Launches", "count", spare=1),
    Field("kind", "Kind", "text", spare=3),
    Field("indented", "Name", "name"),
)


def _sections(tree: CallTreeTable) -> Sequence[Section]:
    return [Section("Call tree", _FIELDS, join_ops(tree.shown, "total_ns"))]


def _remarks(tree: CallTreeTable) -> Iterator[str]:
    if tree.shown.height < tree.frame.height:
        yield f"{tree.shown.height:,} of {tree.frame.height:,} nodes shown: --min-share 0 shows all."
    if tree.total_ns:
        share = format_share(tree.attributed_ns / tree.total_ns)
        yield f"{share} of the device time is attributed to who launched it."
    yield from tree.notable


def join_ops(nodes: pl.DataFrame, *times: str) -> pl.DataFrame:
    """Rows to read, `indented`: ops that call one op alone and launch nothing themselves stand on its line.

    `times`: the columns that are then equal.
    """
    first = (pl.col(name).first().alias(f"inner_{name}") for name in times)
    below = nodes.group_by("parent").agg(pl.col("node").first(), pl.len(), *first)
    only = {parent: (node, inner) for parent, node, n, *inner in below.iter_rows() if n == 1}
    kinds = dict(zip(nodes["node"], nodes["kind"], strict=True))
    up: dict[int, int] = {}  # how many levels up the callees of a node move
    before: dict[int, str] = {}
    rows = []
    for row in nodes.iter_rows(named=True):
        node, parent = row["node"], row["parent"]
        up[node] = up.get(parent, 0) + (parent in before)
        name = decode(row["name"]).short_name if row["kind"] == "kernel" else row["name"]
        if parent in before:
            name = f"{before[parent]} > {name}"
        inner, inner_times = only.get(node, (None, []))
        if (
            row["kind"] == "op"
            and inner is not None
            and kinds[inner] == "op"
            and inner_times == [row[t] for t in times]
        ):
            before[node] = name
        else:
            rows.append({**row, "indented": "  " * (row["depth"] - up[node]) + name})
    return pl.DataFrame(rows, schema={**nodes.schema, "indented": pl.String})


VIEW = View(schema=Schema("tree", 1), sections=_sections, remarks=_remarks, remarks_in_json=True)
