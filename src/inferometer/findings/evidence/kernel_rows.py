"""Launches as columns of numbers, in the order of their streams, with names decoded once per kernel.

For rules about sequences of kernels. A *stretch* is what runs on one stream without a pause: what stands on both sides
of a pause has nothing to do with each other. Fills of memory (memsets) are left out: libraries put them between a
kernel and its neighbour as they like, and they take about 1 μs.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.batches import batches
from inferometer.analyses.launched_by.chain_tree import ROOT
from inferometer.names import KernelName, decode
from inferometer.trace.lean import having_several

PRODUCTS = ("gemm", "grouped_gemm", "conv")
ATTENTION = ("attention", "attention_prefill", "attention_decode", "linear_attention")
WHOLE_NUMBERS = frozenset({"int32", "int64", "bool"})
"""Types of positions, lengths and indices; what a model computes has others."""

UNKNOWN_PLACE = "an unknown place"

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Bools = NDArray[np.bool_]
_PAUSE_NS = 200_000  # eager launches follow each other within 5 to 50 μs, steps and requests do not
_DEVICE = ("rank", "device")
_WORK = ("kernel", *_DEVICE, "stream", "process", "correlation_id", "is_replay", "shape_hash")
_PLACE = ("module_pooled", "op", "user_frame", "frame")  # the first that is known, or else a range
_STEP_MARK = "ProfilerStep"  # a range that says when, not where


class KernelRows(msgspec.Struct, frozen=True):
    """One place per launch in each array, ordered by rank, device, stream and start.

    `names` and `known` have a place a distinct kernel, `kernel` points into them. `device` and `lane` (a stream of a
    device) are numbers from 0. `begins`: the first of a stretch.
    `work`: the same launches, columns of `LaunchEvidence.work`. `node`: of the tree of callers; the root of launches
    that a graph replayed whose capture isn't known, since what called the replay says nothing of them.
    """

    work: pl.DataFrame
    names: list[str]
    known: list[KernelName]
    kernel: Codes
    device: Codes
    lane: Codes
    begins: Bools
    start_ns: Ints
    dur_ns: Ints
    node: Ints

    @property
    def end_ns(self) -> Ints:
        """When each ended."""
        return self.start_ns + self.dur_ns

    def each(self, test: Callable[[str, KernelName], bool]) -> Bools:
        """Whether each launch's kernel passes a test of its name; the test is made once per kernel."""
        passed = [test(name, known) for name, known in zip(self.names, self.known, strict=True)]
        return np.array(passed, dtype=np.bool_)[self.kernel] if passed else np.zeros(0, dtype=np.bool_)

    def of_family(self, *families: str) -> Bools:
        """Whether each launch is of one of these families."""
        return self.each(lambda _, known: known.family in families)

    def before(self, values: Bools) -> Bools:
        """For each launch, the value of the one before it in its stretch; false where it is the first."""
        return np.concatenate([[False], values[:-1]]) & ~self.begins if len(values) else values

    def behind(self, values: Bools) -> Bools:
        """For each launch, the value of the one after it in its stretch; false where it is the last."""
        return np.concatenate([values[1:] & ~self.begins[1:], [False]]) if len(values) else values

    def runs(self, wanted: Bools) -> tuple[Ints, Ints]:
        """The longest rows of wanted launches in a stretch: the first of each, and the one after the last."""
        opens = wanted & (self.begins | ~np.concatenate([[False], wanted[:-1]]))
        closes = wanted & np.concatenate([self.begins[1:] | ~wanted[1:], [True]]) if len(wanted) else wanted
        return np.flatnonzero(opens), np.flatnonzero(closes) + 1


class Origins:
    """Where launches come from, as people call it: module with layers pooled, else op, frame or range."""

    def __init__(self, sites: pl.DataFrame) -> None:
        span = pl.when(~pl.col("span").str.starts_with(_STEP_MARK)).then("span")
        place = sites.select(pl.coalesce(*_PLACE, span).alias("place"))["place"]
        known = place.drop_nulls().unique(maintain_order=True).to_frame().with_row_index("number")
        self.texts = [*known["place"].to_list(), UNKNOWN_PLACE]
        found = place.to_frame().join(known, on="place", how="left", maintain_order="left")["number"]
        nobody = known.height
        codes = found.cast(pl.Int64).fill_null(nobody).to_numpy()
        self._codes = np.append(codes, nobody)  # the root, -1, is the last

    def codes(self, nodes: Ints) -> Ints:
        """A number of `texts` for each node."""
        return self._codes[nodes]

    def describe(self, code: int) -> str:
        """` in …`, for a place of `texts`; empty for the unknown one."""
        return "" if self.texts[code] == UNKNOWN_PLACE else f" in {self.texts[code]}"

    def describe_node(self, node: int) -> str:
        """The same for a node."""
        return self.describe(int(self._codes[node]))

    def describe_nodes(self, nodes: Sequence[int]) -> str:
        """The same for the nodes of several launches: ` mostly in …` where only more than half come from there."""
        counts = Counter(self._codes[np.asarray(nodes, dtype=np.int64)].tolist())
        code, most = counts.most_common(1)[0]
        place = self.describe(code)
        if most == len(nodes) or not place:
            return place
        return f" mostly{place}" if 2 * most > len(nodes) else ""


def make_rows(work: pl.DataFrame) -> KernelRows:
    """The launches of `LaunchEvidence.work`, without fills of memory."""
    fills = work["kind"] == "memset"
    work = work.filter(~fills) if fills.any() else work
    kernel = work["kernel"].cast(pl.Categorical)
    distinct = kernel.unique()
    names = distinct.cast(pl.String).to_list()
    found = distinct.to_physical().to_numpy()
    numbers = np.zeros(int(found.max()) + 1 if len(found) else 0, dtype=np.int32)
    numbers[found] = np.arange(len(found))
    start_ns, dur_ns = (work[name].to_numpy() for name in ("start_ns", "dur_ns"))
    dur_ns = np.maximum(dur_ns, 0) if len(dur_ns) and dur_ns.min() < 0 else dur_ns
    lane = number_changes(work, (*_DEVICE, "stream"))
    return KernelRows(
        work=work.select(_WORK),
        names=names,
        known=[decode(name) for name in names],
        kernel=numbers[kernel.to_physical().to_numpy()],
        device=number_changes(work, _DEVICE),
        lane=lane,
        begins=_begins(lane, start_ns, dur_ns),
        start_ns=start_ns,
        dur_ns=dur_ns,
        node=_nodes(work),
    )


def _nodes(work: pl.DataFrame) -> Ints:
    """The node of each launch; the root's where a graph replayed it that isn't known."""
    unknown = work["how"] == "graph_launch"
    nodes = work["node"].to_numpy()
    return np.where(unknown.to_numpy(), ROOT, nodes) if unknown.any() else nodes


def number_changes(rows: pl.DataFrame, columns: Sequence[str], *more: pl.Expr) -> Codes:
    """How often any of these columns has changed up to each row, from 0: equal in a row of equal ones.

    `more`: expressions of single rows, which are looked at batch by batch.
    """
    varied = [*having_several(rows, columns), *more]
    count = np.zeros(rows.height, dtype=np.int32)
    if not varied:
        return count
    has_changed = pl.any_horizontal(pl.all().ne_missing(pl.all().shift()))
    for part in batches(rows.height):
        before = max(0, part.start - 1)
        changes = rows[before : part.stop].select(varied).select(has_changed.cast(pl.Int32).cum_sum()).to_series()
        count[before : part.stop] = changes - changes[0] + int(count[before])
    return count


def _begins(lane: Codes, start_ns: Ints, dur_ns: Ints) -> Bools:
    """Where a lane begins, or a pause has ended."""
    begins = np.ones(len(lane), dtype=np.bool_)
    begins[1:] = (lane[1:] != lane[:-1]) | (start_ns[1:] - (start_ns + dur_ns)[:-1] > _PAUSE_NS)
    return begins
