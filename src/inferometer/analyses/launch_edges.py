"""Which kernels follow each other because one call launches both: pairs of neighbours, counted by folded names.

The rules were calibrated on same-op truth (neighbours launched by one op instance) of real captures from A100 and H100.
Where ops are known, the same instance decides. How often a kernel has this neighbour then only tells which role is
optional: asking for it in 95 % of the cases would have lost 131 of 362 true pairs, and no false one. Two pairs are
enough: names learned on one rank of a training run found the other's pairs with 146 right and none wrong, of 175.

Without ops, order proves nothing: a layer repeats in order, too. Then neighbours must stick together both ways, the
host must go from one to the next at once, and they must do so in several surroundings. With the ops of these captures
hidden, this finds fewer pairs (324 of 568 with the bundled sample's), none of them wrong; but `HOST_GAP_NS` was chosen
on these very captures, and no other has tested it.

Shares decide, and Wilson's lower bound is the confidence that is reported: to have a bound of 0.95, a pair would have
to be seen 73 times without exception.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.group_roles import role_of
from inferometer.analyses.launch_pairs import NONE, Ordered, thread_gaps
from inferometer.analyses.wilson import lower_bound

SAME_OP = 0.95
"""Share of pairs with both ops known that have the same instance."""

STICKS = 0.95
"""Share of a kernel's launches with this neighbour, both ways, over the variants of its role."""

OWNED_SUPPORT = 2
SUPPORT = 5
"""Pairs to be seen: of one op instance, and without ops."""

HOST_GAP = 0.25
"""Median host gap of the pair over that of any two launches of its thread."""

HOST_GAP_NS = 5_000
"""Median host gap of the pair at most. Set after a false pair, 42 μs apart, in two captures from A100; there some
true pairs are 6 to 39 μs apart and are lost by it. On H100 the one true pair has 2 μs, its false friends 7 or more."""

CONTEXTS = 2
"""Different kernels that stand before the pair, or variants of its roles."""

Ruling = Literal[
    "library call", "fused-wrapper call",
    "own ops", "loose", "rare", "graph", "no calls", "memory", "slow", "one context",
]  # fmt: skip


@dataclass(frozen=True)
class Edges:
    """`frame`: one row a pair of folded names, with its `ruling`; `together[i]`: launch i + 1 is of launch i's call."""

    frame: pl.DataFrame
    together: NDArray[np.bool_]


def find_edges(work: Ordered, *, min_support: int | None = None) -> Edges:
    """Pairs of neighbours and what they are; `min_support` replaces both thresholds of that kind."""
    n = len(work.lane)
    if n < 2:
        return Edges(_judged([], min_support), np.zeros(n, dtype=np.bool_))
    first = np.flatnonzero(work.lane[:-1] == work.lane[1:])
    second = first + 1
    is_known = (work.op[first] != NONE) & (work.op[second] != NONE)
    is_same = is_known & (work.op[first] == work.op[second])
    rows = _count_pairs(work, first, second, is_known, is_same)
    frame = _judged(_with_shares(work, rows), min_support)
    accepted = frame.filter(pl.col("ruling").is_in(["library call", "fused-wrapper call"]))
    size = len(work.folded)
    keys = np.sort((accepted["a"] * size + accepted["b"]).to_numpy())
    together = np.zeros(n, dtype=np.bool_)
    key = work.fold[first] * size + work.fold[second]
    together[first] = _is_in(key, keys) & (is_same | ~is_known)
    return Edges(frame, together)


def _is_in(values: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.bool_]:
    if not len(known):
        return np.zeros(len(values), dtype=np.bool_)
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.asarray(known[at] == values)


def _count_pairs(
    work: Ordered,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    is_known: NDArray[np.bool_],
    is_same: NDArray[np.bool_],
) -> pl.DataFrame:
    """One row a pair of folded names: how often, in one op, in graphs, with which gaps and surroundings."""
    before = np.where((first > 0) & (work.lane[first - 1] == work.lane[first]), work.fold[first - 1], NONE)
    in_graph = work.in_graph[first] & work.in_graph[second]
    has_gap = (work.thread[first] != NONE) & (work.thread[first] == work.thread[second]) & ~in_graph
    host_gap = work.called_ns[second] - work.returned_ns[first]
    pairs = pl.DataFrame(
        {
            "a": work.fold[first],
            "b": work.fold[second],
            "known": is_known,
            "same": is_same,
            "in_graph": in_graph,
            "before": before,
            "host_gap_ns": host_gap,
            "host_gap": host_gap / _usual_gap(work)[work.thread[first]],
            "device_gap_ns": work.start_ns[second] - work.start_ns[first] - work.dur_ns[first],
            "has_gap": has_gap,
        }
    )
    gaps = [pl.col(name).filter(pl.col("has_gap")).median() for name in ("host_gap_ns", "host_gap")]
    return pairs.group_by("a", "b").agg(
        pl.len().cast(pl.Int64).alias("count"),
        *(pl.col(name).sum().cast(pl.Int64) for name in ("known", "same", "in_graph")),
        pl.col("has_gap").sum().cast(pl.Int64).alias("timed"),
        *gaps,
        pl.col("device_gap_ns").median(),
        pl.col("before").filter(pl.col("before") != NONE).n_unique().cast(pl.Int64).alias("contexts"),
    )


def _usual_gap(work: Ordered) -> NDArray[np.float64]:
    """The median gap of each thread, by its number; not a number where unknown (also at -1, the last)."""
    usual = thread_gaps(work)
    gaps = np.full(max([*usual, work.thread.max(initial=0), 0]) + 2, np.nan)
    for thread, gap in usual.items():
        gaps[thread] = max(gap, 1.0)
    return gaps


def _with_shares(work: Ordered, rows: pl.DataFrame) -> list[dict[str, Any]]:
    """The rows with how often `a` is followed and `b` preceded by the pair, over variants of the other's role."""
    counts = np.bincount(work.fold, minlength=len(work.folded))
    roles = _roles(work)
    found = rows.sort("count", "a", "b", descending=[True, False, False]).to_dicts()
    followed: dict[tuple[int, str], int] = {}
    preceded: dict[tuple[str, int], int] = {}
    owned: dict[tuple[str, str], int] = {}
    variants: dict[tuple[str, str], int] = {}
    for row in found:
        a, b, n = row["a"], row["b"], row["count"]
        both = roles[a], roles[b]
        followed[a, both[1]] = followed.get((a, both[1]), 0) + n
        preceded[both[0], b] = preceded.get((both[0], b), 0) + n
        owned[both] = owned.get(both, 0) + row["same"]
        variants[both] = variants.get(both, 0) + 1
    for row in found:
        a, b = row["a"], row["b"]
        both = roles[a], roles[b]
        row |= {"count_a": int(counts[a]), "count_b": int(counts[b])}
        row |= {"followed": followed[a, both[1]], "preceded": preceded[both[0], b]}
        row |= {"owned": owned[both], "variants": variants[both]}
        row["memory"] = all(role.startswith("runtime ") for role in both)
    return found


def _roles(work: Ordered) -> list[str]:
    """The role of each folded name."""
    roles: dict[int, str] = {}
    for kernel, name in enumerate(work.kernels):
        roles.setdefault(int(work.fold_of_kernel[kernel]), role_of(name).key)
    return [roles[i] for i in range(len(work.folded))]


def _judged(rows: list[dict[str, Any]], min_support: int | None) -> pl.DataFrame:
    for row in rows:
        row["forward"], row["backward"] = row["followed"] / row["count_a"], row["preceded"] / row["count_b"]
        row["ruling"] = rule_of(row, min_support)
        hits = (
            (row["same"], row["known"])
            if row["known"]
            else (min(row["followed"], row["preceded"]), max(row["count_a"], row["count_b"]))
        )
        row["confidence"] = lower_bound(min(hits), hits[1])
    columns = {"a": pl.Int64, "b": pl.Int64, "ruling": pl.String, "confidence": pl.Float64}
    return pl.DataFrame(rows) if rows else pl.DataFrame(schema=columns)


def rule_of(row: dict[str, Any], min_support: int | None = None) -> Ruling:
    """What a pair is, from its counts; the first test that it fails, or the kind of call that it passes as."""
    if row["known"]:
        if row["same"] < SAME_OP * row["known"]:
            return "own ops"
        return "library call" if row["owned"] >= (min_support or OWNED_SUPPORT) else "rare"
    if row["count"] < (min_support or SUPPORT):
        return "rare"
    if min(row["forward"], row["backward"]) < STICKS:
        return "loose"
    if row["in_graph"] == row["count"]:
        return "graph"
    if not row["timed"] or row["host_gap"] is None:
        return "no calls"
    if row["memory"]:
        return "memory"
    if row["host_gap"] > HOST_GAP or row["host_gap_ns"] > HOST_GAP_NS:
        return "slow"
    return "fused-wrapper call" if row["contexts"] + row["variants"] - 1 >= CONTEXTS else "one context"
