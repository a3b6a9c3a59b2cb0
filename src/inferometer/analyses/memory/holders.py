"""What a block is held by: where it was allocated, as a frame, a file, a stack, an op or a module.

A snapshot has the stack with each block. Of a profiler's records it is what stood around them on their thread by time:
ops, modules and Python frames.
"""

import re
from collections.abc import Iterator
from typing import Final, Literal, Protocol

import polars as pl

from inferometer.analyses.launched_by import host_side
from inferometer.analyses.launched_by.chain_tree import ROOT, CallTree
from inferometer.analyses.launched_by.sites import find_sites
from inferometer.analyses.launched_by.user_frames import UserCode, python_file
from inferometer.trace.trace import Trace

By = Literal["frame", "file", "stack", "op", "module"]
OF_STACKS: Final = ("frame", "file", "stack")
NO_STACK: Final = "(no stack was recorded)"
_NOTHING: Final = {"op": "(no op is open)", "module": "(no module is open)"}
_PYTHON: Final = re.compile(r"(.+\.py):\d+ .+", re.DOTALL)
_PYTORCHS: Final = re.compile(r"[/\\]torch[/\\]")


class Names(Protocol):
    """Names of holders by their numbers."""

    def of(self, number: int | None) -> str:
        """What it is called."""


class StackNames:
    """Holders in a snapshot: numbers are nodes of `call_paths`."""

    def __init__(self, trace: Trace, by: By) -> None:
        self._by = by
        paths = trace.call_paths.select("path_id", "parent_id", "name").collect()
        self._nodes = {path: (parent, name) for path, parent, name in paths.iter_rows()}
        self._known: dict[int | None, str] = {None: NO_STACK}

    def of(self, number: int | None) -> str:
        """The name of one."""
        if number not in self._known:
            self._known[number] = self._name([*self._stack(number)])
        return self._known[number]

    def _stack(self, path: int | None) -> Iterator[str]:
        """Frames, innermost first."""
        while path is not None:
            path, name = self._nodes.get(path, (None, NO_STACK))
            yield name

    def _name(self, stack: list[str]) -> str:
        if self._by == "stack":
            return " < ".join(stack)
        python = [frame for frame in stack if _PYTHON.fullmatch(frame)]
        own = next((frame for frame in python if not _PYTORCHS.search(frame)), python[0] if python else stack[0])
        match = _PYTHON.fullmatch(own)
        return match[1] if self._by == "file" and match else own


class ChainNames:
    """Holders in records: numbers are nodes of the tree of what stood around them."""

    def __init__(self, trace: Trace, by: By) -> None:
        self._trace = trace
        self._by = by
        self._tree = CallTree()
        self._known: dict[int, str] = {}

    def numbered(self, events: pl.DataFrame) -> pl.DataFrame:
        """`events` with the number of what stood around each as `holder`; null where nothing did."""
        moments = events.select(*host_side.THREAD, pl.col("time_ns").alias("called_ns"), "path_id")
        nodes = host_side.chains_at(self._trace, self._tree, moments)
        sites = find_sites(self._tree, UserCode())
        self._known = {node: name for node, name in sites.select("node", self._expr()).iter_rows() if name}
        if self._by == "stack":
            self._known = {node: self._stack(node) for node in range(len(self._tree))}
        return events.with_columns(pl.Series("holder", nodes, dtype=pl.Int64).replace(ROOT, None))

    def of(self, number: int | None) -> str:
        """The name of one."""
        nothing = _NOTHING.get(self._by, NO_STACK)
        name = nothing if number is None else self._known.get(number, nothing)
        return python_file(name) or name if self._by == "file" else name

    def _expr(self) -> pl.Expr:
        if self._by in ("op", "module"):
            return pl.col("op_chain" if self._by == "op" else "module")
        return pl.coalesce("user_frame", "frame")

    def _stack(self, node: int) -> str:
        return " < ".join(self._tree.label_of(each).name for each in reversed(self._tree.chain(node)))
