"""A printed table of call paths as a review looks at it: rows in printed order, one of them the parent of another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.errors import InputError
from inferometer.trace.trace import Trace

SEPARATOR = "."
Times = Sequence[Sequence[int | None]]
"""By arm, then by row: ns, None where there is none."""


@dataclass(frozen=True)
class PathRows:
    """The rows that have a time. `parents` are rows: the nearest caller that has one.

    `unreadable` are cells (arm, row) that hold something which is no time.
    """

    arms: Sequence[str]
    paths: Sequence[str]
    names: Sequence[str]
    depths: Sequence[int]
    parents: Sequence[int | None]
    times: Times
    unreadable: frozenset[tuple[int, int]] = frozenset()

    @cached_property
    def children(self) -> Sequence[Sequence[int]]:
        """Children of each row, in printed order."""
        found: list[list[int]] = [[] for _ in self.paths]
        for row, parent in enumerate(self.parents):
            if parent is not None:
                found[parent].append(row)
        return found

    @cached_property
    def parent_rows(self) -> NDArray[np.int64]:
        """`parents`, -1 for none. Shape (rows,)."""
        return np.array([-1 if parent is None else parent for parent in self.parents], dtype=np.int64)

    @cached_property
    def roots(self) -> Sequence[int]:
        """Rows that no other is the caller of."""
        return [row for row, parent in enumerate(self.parents) if parent is None]

    @cached_property
    def leaves(self) -> Sequence[Sequence[int]]:
        """Of each row, those below it that call none; of one that calls none, itself."""
        found: list[list[int]] = [[] for _ in self.paths]
        for row, children in enumerate(self.children):
            at: int | None = None if children else row
            while at is not None:
                found[at].append(row)
                at = self.parents[at]
        return found

    def is_above(self, caller: int, row: int) -> bool:
        """Whether `row` is called from `caller`, through others or not."""
        at = self.parents[row]
        while at is not None and at != caller:
            at = self.parents[at]
        return at is not None

    @cached_property
    def repeated(self) -> Sequence[int]:
        """Rows whose path has a row already."""
        first: dict[str, int] = {}
        return [row for row, path in enumerate(self.paths) if first.setdefault(path, row) != row]


def find_rows(trace: Trace) -> PathRows:
    """The table of `trace`, one arm a backend, in the order of the columns.

    Raises:
        InputError: The trace has no times by call path, or doesn't say whose they are.
    """
    totals = trace.path_totals.select("path_id", "order", "host_ns", "backend").collect()
    if not totals.height or totals["backend"].null_count():
        raise InputError(
            f"{trace.facts.source}: expected a table of times by call path with a column for each run, found "
            + ("times without a run's name" if totals.height else "no such times"),
            hint="A file of this kind begins with: kernel | kernel_path | A | B | A-B",
        )
    arms = totals["backend"].unique(maintain_order=True).to_list()
    where = totals.select("order", "path_id").unique("order").sort("order")
    position = {order: row for row, order in enumerate(where["order"])}
    times: list[list[int | None]] = [[None] * where.height for _ in arms]
    unreadable = set()
    number = {arm: i for i, arm in enumerate(arms)}
    for _, order, host_ns, arm in totals.iter_rows():
        times[number[arm]][position[order]] = host_ns
        if host_ns is None:
            unreadable.add((number[arm], position[order]))
    tree = _Tree(trace.call_paths.select("path_id", "parent_id", "name", "depth").collect())
    nodes = where["path_id"].to_list()
    first: dict[int, int] = {}
    for row, node in enumerate(nodes):
        first.setdefault(node, row)
    return PathRows(
        arms=arms,
        paths=[tree.path(node) for node in nodes],
        names=[tree.name[node] for node in nodes],
        depths=[tree.depth[node] for node in nodes],
        parents=[tree.caller(node, first) for node in nodes],
        times=times,
        unreadable=frozenset(unreadable),
    )


def logarithms(times: Times) -> NDArray[np.float64]:
    """Of the times, NaN where there is none; 0 ns, which is rounded, counts as half of one. Shape (arms, rows)."""
    values = np.array([list(arm) for arm in times], dtype=np.float64)  # None is NaN
    return np.log(np.maximum(values, 0.5))


class _Tree:
    def __init__(self, nodes: pl.DataFrame) -> None:
        self.name: dict[int, str] = dict(zip(nodes["path_id"], nodes["name"], strict=True))
        self.depth: dict[int, int] = dict(zip(nodes["path_id"], nodes["depth"], strict=True))
        self._parent: dict[int, int | None] = dict(zip(nodes["path_id"], nodes["parent_id"], strict=True))

    def path(self, node: int | None) -> str:
        names = []
        while node is not None:
            names.append(self.name[node])
            node = self._parent[node]
        return SEPARATOR.join(reversed(names))

    def caller(self, node: int, first: Mapping[int, int]) -> int | None:
        above = self._parent[node]
        while above is not None:
            if above in first:
                return first[above]
            above = self._parent[above]
        return None
