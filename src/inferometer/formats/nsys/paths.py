"""Call chains: the frames above a call, native or Python, into one tree in which equal paths are one node."""

from itertools import groupby
from operator import itemgetter

import polars as pl

from inferometer.formats.databases.export import Export, read_all
from inferometer.formats.nsys.ids import Strings
from inferometer.trace.builder import TraceBuilder

CHAINS = "CUDA_CALLCHAINS"
_SCHEMA = {"callchainId": pl.Int64, "path_id": pl.Int64}


def read_paths(export: Export, out: TraceBuilder, strings: Strings) -> pl.DataFrame:
    """Fill `call_paths`, and return the node (`path_id`) of each chain (`callchainId`)."""
    rows = read_all(export, CHAINS, ["id", "symbol", "stackDepth", "module"])
    named = rows.with_columns(strings.find(rows["symbol"]), strings.find(rows["module"]))
    tree = _Tree()
    frames = named.drop_nulls(["id", "stackDepth"]).sort("id", "stackDepth", descending=[False, True])
    if out.wants("call_paths") and rows.height:
        out.losses.see(CHAINS, rows.height)
        out.losses.count("chain_without_place", rows.height - frames.height, category=CHAINS)
    chains = [
        (chain, tree.add([(symbol, module) for _, symbol, module in group]))
        for chain, group in groupby(frames.select("id", "symbol", "module").rows(), key=itemgetter(0))
    ]
    out.add("call_paths", len(tree.names), tree.columns())
    return pl.DataFrame(chains, schema=_SCHEMA, orient="row")


class _Tree:
    """Nodes found by parent and frame."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._parents: list[int | None] = []
        self._frames: list[str] = []
        self._depths: list[int] = []
        self._nodes: dict[tuple[int | None, str | None, str | None], int] = {}

    def add(self, frames: list[tuple[str | None, str | None]]) -> int | None:
        """The node of a path, root first."""
        node: int | None = None
        for depth, (symbol, module) in enumerate(frames):
            key = (node, symbol, module)
            if key not in self._nodes:
                self._nodes[key] = len(self.names)
                self.names.append(symbol or "[unknown function]")
                self._parents.append(node)
                self._frames.append(" ".join(filter(None, (module, symbol))) or "[unknown function]")
                self._depths.append(depth)
            node = self._nodes[key]
        return node

    def columns(self) -> dict[str, list[int] | list[str] | list[int | None]]:
        return {
            "path_id": list(range(len(self.names))),
            "parent_id": self._parents,
            "name": self.names,
            "frame": self._frames,
            "depth": self._depths,
        }
