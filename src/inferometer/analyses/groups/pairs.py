"""Pairs of neighbours on a stream, counted by folded names, with what is known of each; `rules` decides."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.groups.declared import find_relation
from inferometer.analyses.groups.kernel_roles import role_of
from inferometer.analyses.groups.learned import Lessons
from inferometer.analyses.groups.ordered_launches import NONE, Ordered, named, thread_gaps
from inferometer.analyses.groups.rules import GROUPED, hits_of, rule_of
from inferometer.analyses.groups.wilson import lower_bound


@dataclass(frozen=True)
class Edges:
    """`frame`: one row a pair of folded names, with its `ruling`; `together[i]`: launch i + 1 is of launch i's call."""

    frame: pl.DataFrame
    together: NDArray[np.bool_]


def find_edges(work: Ordered, lessons: Lessons, *, min_support: int | None = None) -> Edges:
    """Pairs of neighbours and what they are; `min_support` replaces both thresholds of that kind."""
    n = len(work.lane)
    if n < 2:
        return Edges(_judged([], min_support), np.zeros(n, dtype=np.bool_))
    first = np.flatnonzero(work.lane[:-1] == work.lane[1:])
    second = first + 1
    is_known = (work.op[first] != NONE) & (work.op[second] != NONE)
    is_same = is_known & (work.op[first] == work.op[second])
    rows = _count_pairs(work, first, second, is_known, is_same)
    frame = _judged(_with_knowledge(work, _with_shares(work, rows), lessons), min_support)
    accepted = frame.filter(pl.col("ruling").is_in([*GROUPED]))
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


def _with_knowledge(work: Ordered, rows: list[dict[str, Any]], lessons: Lessons) -> list[dict[str, Any]]:
    """The rows with what other files teach and sources declare of pairs whose ops are unknown here."""
    names = named(work)
    for row in rows:
        leader, follower = names[row["a"]][0], names[row["b"]][0]
        lesson = None if row["known"] else lessons.find(leader, follower)
        relation = None if row["known"] else find_relation(leader, follower)
        row["learned_on"] = lesson and lesson.source
        row["learned_same"], row["learned_known"] = (lesson.same, lesson.known) if lesson else (None, None)
        row["declared"] = relation and relation.source
        row["bound"] = relation and (relation.bound if relation.times == 1 else "leader")
        row["repeats"] = role_of(leader).key == role_of(follower).key
    led, lagging = Counter[int](), Counter[int]()
    for row in rows:
        led[row["a"]] += row["count"] if row["declared"] else 0
        lagging[row["b"]] += row["count"] if row["declared"] else 0
    return [row | {"led": led[row["a"]], "lagging": lagging[row["b"]]} for row in rows]


def _roles(work: Ordered) -> list[str]:
    """The role of each folded name."""
    names = named(work)
    return [role_of(names[fold][0]).key for fold in range(len(work.folded))]


def _judged(rows: list[dict[str, Any]], min_support: int | None) -> pl.DataFrame:
    for row in rows:
        row["forward"], row["backward"] = row["followed"] / row["count_a"], row["preceded"] / row["count_b"]
        row["ruling"] = rule_of(row, min_support)
        row["confidence"] = lower_bound(*hits_of(row))
    columns = {"a": pl.Int64, "b": pl.Int64, "ruling": pl.String, "confidence": pl.Float64}
    return pl.DataFrame(rows, infer_schema_length=None) if rows else pl.DataFrame(schema=columns)
