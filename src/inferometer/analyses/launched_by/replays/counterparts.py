"""Graph replays: which kernel of a capture, or of an eager run of the same batch, each replayed kernel is.

A replay is one call and hundreds of kernels without ops or modules. The sequence of its kernels is aligned with what
was recorded where they have chains (see `alignment`); of several captures, the one that fits best is meant.
Where kernels say which node of the graph they are, one replay that was aligned serves all replays of the graph.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import polars as pl

from inferometer.analyses.correlation import CALL_KEY
from inferometer.analyses.launched_by.chain_tree import CallTree
from inferometer.analyses.launched_by.launched import HOWS
from inferometer.analyses.launched_by.op_calls import OWNER, or_null
from inferometer.analyses.launched_by.replays.joined_chains import ReplayChains
from inferometer.analyses.launched_by.replays.search import ReplaySearch, Symbols
from inferometer.analyses.nesting import Numbers

NONE = -1
_TOLD = {NONE: None, 0: "graph_alignment", 1: "graph_node"}
_GRAPH = ["rank", "process", "graph_id"]


class Reference(msgspec.Struct, frozen=True):
    """A recording that has chains.

    `rows`, in the order of their calls: `kernel`, `grid`, `block`, `node`, the columns `OWNER` if asked for, and
    `part`, of which a replay is in one: a thread, or a capture. `nameless`: launch calls of captures that don't say
    which kernel they add; None of the trace's own captures.
    """

    source: str
    rows: pl.DataFrame
    nameless: int | None = None


class ReplayFit(msgspec.Struct, frozen=True):
    """What a reference gave: `replays` that it fits, `launches` in them, `found` of these, where and how well.

    `nameless` as of `Reference`.
    """

    source: str
    replays: int
    launches: int
    found: int
    places: tuple[str, ...]
    worst_score: float | None
    nameless: int | None


class Replays(msgspec.Struct, frozen=True):
    """`work` with what was found; `fits`, one a reference; `unfitted`: replays that fit none of them."""

    work: pl.DataFrame
    fits: tuple[ReplayFit, ...]
    unfitted: int


class _Unit(msgspec.Struct):
    """One replay: its rows among the replayed in order, and for each the reference and its row, -1 for none."""

    rows: Numbers
    reference: Numbers
    place: Numbers
    by_node: Numbers
    score: float | None = None
    main: int = NONE


def attribute_replays(tree: CallTree, work: pl.DataFrame, references: Sequence[Reference]) -> Replays:
    """Give replayed kernels the chains of their references.

    Args:
        tree: That of the nodes of both; grows by the chains of references below those of replays.
        work: Of `find_launched`.
        references: Any number; without one everything stays as it is.

    Returns:
        `work` with the `node` of what was found, and its `how`: `graph_alignment` or `graph_node`.
    """
    positions = (work["is_replay"] & (work["how"] != "node_creation")).arg_true().to_numpy()
    replayed = work[positions]
    if not replayed.height or not references:
        nothing = (ReplayFit(each.source, 0, 0, 0, (), None, each.nameless) for each in references)
        return Replays(work, tuple(nothing), 0)
    symbols = Symbols()
    sequence = symbols.number(replayed)
    search = ReplaySearch(symbols, [(symbols.number(each.rows), each.rows["part"].to_numpy()) for each in references])
    units = [unit for graph in _graphs(replayed) for unit in _fit_graph(graph, replayed, sequence, search)]
    nodes = [each.rows["node"].to_numpy() for each in references]
    chains = ReplayChains(tree, nodes, [str(number) for number in range(len(nodes))])
    node = work["node"].to_numpy().copy()
    by_node = np.full(work.height, NONE, dtype=np.int8)
    owners = {name: work[name].fill_null(NONE).to_numpy().copy() for name in OWNER if name in work.columns}
    for unit in units:
        known = np.flatnonzero(unit.place != NONE)
        at = positions[unit.rows[known]]
        for name, values in owners.items():
            values[at] = _of_places(references, name, unit.reference[known], unit.place[known])
        node[at] = chains.below(node[at], unit.reference[known], unit.place[known])
        by_node[at] = unit.by_node[known] == 1
    filled_in = pl.Series(by_node).replace_strict(_TOLD, return_dtype=HOWS)
    filled = work.with_columns(
        pl.Series("node", node, dtype=pl.Int64),
        pl.when(filled_in.is_not_null()).then(filled_in).otherwise("how").alias("how"),
        *(or_null(name, values) for name, values in owners.items()),
    )
    fits = tuple(_fit(number, each, units, chains) for number, each in enumerate(references))
    return Replays(filled, fits, sum(unit.main == NONE for unit in units))


def _of_places(references: Sequence[Reference], name: str, reference: Numbers, place: Numbers) -> Numbers:
    """The column's value, `NONE` for null, of each place in each reference."""
    values = np.full(len(place), NONE, dtype=np.int64)
    for number in np.unique(reference).tolist():
        some = reference == number
        values[some] = references[number].rows[name].fill_null(NONE).to_numpy()[place[some]]
    return values


def _graphs(replayed: pl.DataFrame) -> Iterator[list[_Unit]]:
    """The replays of each graph, the longest first. Without ids, each replay is a graph of its own."""
    ordered = replayed.with_row_index("row").sort("start_ns", maintain_order=True)
    named = pl.col("graph_id").is_not_null() & pl.col("graph_node_id").is_not_null()
    key = [*_GRAPH, *CALL_KEY]
    units = ordered.group_by(list(dict.fromkeys(key)), maintain_order=True).agg("row", named.all().alias("is_named"))
    graphs: dict[tuple[object, ...], list[_Unit]] = defaultdict(list)
    for number, unit in enumerate(units.iter_rows(named=True)):
        rows = np.array(unit["row"], dtype=np.int64)
        graph = tuple(unit[name] for name in _GRAPH) if unit["is_named"] else (number,)
        graphs[graph].append(_Unit(rows, _nothing(rows), _nothing(rows), _nothing(rows)))
    for graph_units in graphs.values():
        yield sorted(graph_units, key=lambda unit: -len(unit.rows))


def _nothing(rows: Numbers) -> Numbers:
    return np.full(len(rows), NONE, dtype=np.int64)


def _fit_graph(units: list[_Unit], replayed: pl.DataFrame, sequence: Numbers, search: ReplaySearch) -> list[_Unit]:
    """Fill the units of one graph: the longest by alignment, the others by its nodes as far as these show them."""
    filled_in: dict[tuple[int, int], tuple[int, int, float | None]] = {}  # by node and kernel
    ids = replayed["graph_node_id"].fill_null(NONE).to_numpy() if len(units) > 1 else None
    for unit in units:
        nodes = [] if ids is None else list(zip(ids[unit.rows].tolist(), sequence[unit.rows].tolist(), strict=True))
        if not filled_in or any(node not in filled_in for node in nodes):
            fit = search.find(sequence[unit.rows])
            if fit is not None:
                unit.main, unit.score, unit.place = fit.reference, fit.alignment.score, fit.alignment.place.copy()
                unit.reference = np.where(unit.place == NONE, NONE, fit.reference)
        for i, node in enumerate(nodes):
            if node in filled_in:
                unit.reference[i], unit.place[i], unit.score = filled_in[node]
                unit.main, unit.by_node[i] = filled_in[node][0], 1
        for node, reference, place in zip(nodes, unit.reference.tolist(), unit.place.tolist(), strict=False):
            if place != NONE and node[0] != NONE:
                filled_in.setdefault(node, (reference, place, unit.score))
    return units


def _fit(number: int, reference: Reference, units: list[_Unit], chains: ReplayChains) -> ReplayFit:
    mine = [unit for unit in units if unit.main == number]
    scores = [unit.score for unit in mine if unit.score is not None]
    return ReplayFit(
        source=reference.source,
        replays=len(mine),
        launches=sum(len(unit.rows) for unit in mine),
        found=sum(int((unit.place != NONE).sum()) for unit in mine),
        places=chains.places(number),
        worst_score=min(scores, default=None),
        nameless=reference.nameless,
    )
