"""Where in the code a thread was during idle gaps: the frames and ops that were open for more than half of that time.

Exact overlaps, nothing sampled. A frame or op counts with all its calls on the threads that launched what ended the
gaps. Those that were open for more than half of the time are a path, the outermost first: each lies within the one
before it. Ranges that users name are left out: their names differ from step to step.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np
import polars as pl

from inferometer.analyses.cover import Cover
from inferometer.analyses.intervals import Times
from inferometer.analyses.launched_by.chain_tree import CallTree
from inferometer.analyses.launched_by.host_side import THREAD, chains_at, name_frame
from inferometer.analyses.launched_by.sites import find_sites
from inferometer.analyses.launched_by.user_frames import UserCode
from inferometer.trace.trace import Trace

_MOST: Final = 0.5  # of the time: what is open for no more is no answer
_OUTSIDE: Final = 0.01  # of the time, that a callee may be open outside of its caller: recorded times are rounded
_SHOWN: Final = 3  # links of the path, the innermost
_COLUMNS: Final = {"frames": ("frame", "module"), "ops": ("op",)}
_LINKS: Final = 64  # names, those open the longest; deeper stacks are cut


class HostPath(msgspec.Struct, frozen=True):
    """`name`: the innermost link of the user's own code, or of any code where none is. `text`: the last links to it.

    `open_ns` of the gaps' `total_ns` was spent in `name`. `launches`: the share of the launches that are known to be
    called from these threads which `name` calls, itself or below it.
    """

    name: str
    text: str
    open_ns: int
    total_ns: int
    launches: float


class _Link(msgspec.Struct, frozen=True):
    """A frame's or op's name with its times on one lane of time, in which all threads stand one after the other."""

    name: str
    is_frame: bool
    cover: Cover
    open_ns: int


def find_host_path(trace: Trace, gaps: pl.DataFrame, called: pl.DataFrame) -> HostPath | None:
    """What was open during most of the time of these gaps.

    Args:
        trace: Needs `frames` and `ops`.
        gaps: Rows of `LaunchEvidence.gaps`.
        called: Launches: `rank`, `process`, `thread`, `called_ns`.

    Returns:
        None where the launching threads aren't known, or nothing was open for more than half of the time.
    """
    total_ns = int(gaps["gap_ns"].sum())
    threads = gaps.drop_nulls("thread").select(THREAD).unique(maintain_order=True).with_row_index("lane")
    if not total_ns or threads.is_empty():
        return None
    lanes = _Lanes(threads, gaps)
    start, length = lanes.place(gaps, "gap_start_ns"), lanes.known(gaps)["gap_ns"].to_numpy()
    within = Cover.of(start, start + length)
    links = _path(_open_links(trace, lanes, within, total_ns), total_ns)
    if not links:
        return None
    code = UserCode()
    shown = [link for link in links if link.is_frame and code.is_own(link.name)] or links
    last = shown[-1]
    moments = lanes.place(called, "called_ns")
    inside = float(np.mean(last.cover.within(moments, moments + 1))) if len(moments) else 0.0
    return HostPath(last.name, " > ".join(link.name for link in shown[-_SHOWN:]), last.open_ns, total_ns, inside)


def longest_ops(trace: Trace, gaps: pl.DataFrame, count: int) -> list[tuple[str, int]]:
    """The ops that were open the longest in these gaps on the threads that launched what ended them, with that time.

    Of ops that contain each other, each counts.
    """
    threads = gaps.drop_nulls("thread").select(THREAD).unique(maintain_order=True).with_row_index("lane")
    if threads.is_empty():
        return []
    lanes = _Lanes(threads, gaps)
    start, length = lanes.place(gaps, "gap_start_ns"), lanes.known(gaps)["gap_ns"].to_numpy()
    links = _links(trace, "ops", lanes, Cover.of(start, start + length), 0)
    return sorted(((link.name, link.open_ns) for link in links), key=lambda each: (-each[1], each[0]))[:count]


class _Lanes:
    """One time for all threads: each thread's times are moved past those of the threads before it."""

    def __init__(self, threads: pl.DataFrame, gaps: pl.DataFrame) -> None:
        self._threads = threads
        self._first = int(gaps["gap_start_ns"].min())  # type: ignore[arg-type]
        self._last = int((gaps["gap_start_ns"] + gaps["gap_ns"]).max())  # type: ignore[arg-type]

    def known(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows of these threads, with their `lane`, in their order."""
        return rows.join(self._threads, on=THREAD, how="inner", nulls_equal=True, maintain_order="left")

    def place(self, rows: pl.DataFrame, column: str) -> Times:
        """The times of `column`, cut to the gaps' window and moved."""
        known = self.known(rows)
        moved = known["lane"].cast(pl.Int64).to_numpy() * (self._last - self._first + 1)
        return np.asarray(np.clip(known[column].to_numpy(), self._first, self._last) - self._first + moved)


def _open_links(trace: Trace, lanes: _Lanes, within: Cover, total_ns: int) -> list[_Link]:
    """Every name that was open for more than half of the time, the longest first."""
    least_ns = _MOST * total_ns
    links = [link for table in _COLUMNS for link in _links(trace, table, lanes, within, least_ns)]
    return sorted(links, key=lambda link: (-link.open_ns, -int((link.cover.end_ns - link.cover.start_ns).sum())))


def _links(trace: Trace, table: str, lanes: _Lanes, within: Cover, least_ns: float) -> Iterator[_Link]:
    """Names of a table that were open for more than `least_ns`."""
    columns = _COLUMNS[table]
    rows = trace.tables[table].filter(pl.col("dur_ns") > 0).select(*THREAD, *columns, "start_ns", "dur_ns")
    ranges = rows.with_columns(end_ns=pl.col("start_ns") + pl.col("dur_ns")).collect()
    start, end = lanes.place(ranges, "start_ns"), lanes.place(ranges, "end_ns")
    own = pl.Series("own_ns", within.within(start, end), dtype=pl.Int64)
    known = lanes.known(ranges).select(columns).with_columns(own).with_row_index("row")
    sums = known.filter(pl.col("own_ns") > 0).group_by(columns).agg(pl.col("own_ns").sum(), "row")
    for *name, _, found in sums.filter(pl.col("own_ns") > least_ns).iter_rows():
        cover = Cover.of(start[found], end[found])
        open_ns = int(cover.within(within.start_ns, within.end_ns).sum())
        if open_ns > least_ns:
            label = name_frame(*name) if table == "frames" else str(name[0])
            yield _Link(label, table == "frames", cover, open_ns)


def _path(links: list[_Link], total_ns: int) -> list[_Link]:
    """Of links, the longest open first, those that lie within each other."""
    path: list[_Link] = []
    for link in links[:_LINKS]:
        if path:
            outer = path[-1].cover
            inside_ns = int(outer.within(link.cover.start_ns, link.cover.end_ns).sum())
            own_ns = int((link.cover.end_ns - link.cover.start_ns).sum())
            if own_ns - inside_ns > _OUTSIDE * total_ns:
                continue
        path.append(link)
    return path


def find_sites_at(trace: Trace, moments: pl.DataFrame) -> pl.DataFrame:
    """`moments` with what stood around each: the columns of `sites.find_sites`.

    Args:
        trace: Needs the columns of `analyses.launched_by.host_side.NEEDED`.
        moments: `rank`, `process`, `thread`, `called_ns`.
    """
    tree = CallTree()
    nodes = chains_at(trace, tree, moments.with_columns(pl.lit(None, dtype=pl.Int64).alias("path_id")))
    sites = find_sites(tree, UserCode())
    placed = moments.with_columns(pl.Series("node", nodes, dtype=pl.Int64))
    return placed.join(sites, on="node", how="left", maintain_order="left")


def outermost_op(column: str) -> pl.Expr:
    """The outermost op in a column of chains of ops."""
    return pl.col(column).str.split(" > ").list.first()


def describe_site(op: str | None, user_frame: str | None) -> str | None:
    """`aten::item in serving/penalties.py(31): rescore`: the outermost op and the user's frame, as far as known."""
    return " in ".join(part for part in (op, user_frame) if part) or None
