"""Pairs of neighbours on a stream, counted by folded names, with what is known of each; `rules` decides."""

from collections import Counter
from typing import Any, TypeVar

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.groups.declared import find_relation
from inferometer.analyses.groups.kernel_roles import role_of
from inferometer.analyses.groups.learned import Lessons
from inferometer.analyses.groups.ordered_launches import NONE, Ordered, named, thread_gaps
from inferometer.analyses.groups.rules import GROUPED, hits_of, rule_of
from inferometer.analyses.groups.wilson import lower_bound
from inferometer.analyses.numbering import is_among

_Value = TypeVar("_Value", np.int64, np.int32, np.bool_)


class Edges(msgspec.Struct, frozen=True):
    """`frame`: one row a pair of folded names, with its `ruling`; `together[i]`: launch i + 1 is of launch i's call."""

    frame: pl.DataFrame
    together: NDArray[np.bool_]


class _Neighbours:
    """Launches that follow each other on a stream: values of the first or the second of each pair, of values by launch.

    Where all launches are on one stream, nothing is copied.
    """

    def __init__(self, work: Ordered) -> None:
        is_pair = work.lane[:-1] == work.lane[1:]
        self._chosen = slice(None) if is_pair.all() else is_pair

    def first(self, values: NDArray[_Value]) -> NDArray[_Value]:
        return values[:-1][self._chosen]

    def second(self, values: NDArray[_Value]) -> NDArray[_Value]:
        return values[1:][self._chosen]

    def mark_first(self, marks: NDArray[np.bool_], holds: NDArray[np.bool_]) -> None:
        """Set the mark of the first of each pair."""
        marks[:-1][self._chosen] = holds


def find_edges(work: Ordered, lessons: Lessons, *, min_support: int | None = None) -> Edges:
    """Pairs of neighbours and what they are; `min_support` replaces both thresholds of that kind."""
    n = len(work.lane)
    if n < 2:
        return Edges(_judged([], min_support), np.zeros(n, dtype=np.bool_))
    pairs = _Neighbours(work)
    op, next_op = pairs.first(work.op), pairs.second(work.op)
    is_known = (op != NONE) & (next_op != NONE)
    is_same = is_known & (op == next_op)
    size = len(work.folded)
    key = pairs.first(work.fold).astype(np.int64) * size + pairs.second(work.fold)
    rows = _count_pairs(work, pairs, key, is_known, is_same)
    frame = _judged(_with_knowledge(work, _with_shares(work, rows), lessons), min_support)
    accepted = frame.filter(pl.col("ruling").is_in([*GROUPED]))
    keys = np.sort((accepted["a"] * size + accepted["b"]).to_numpy())
    together = np.zeros(n, dtype=np.bool_)
    pairs.mark_first(together, is_among(key, keys) & (is_same | ~is_known))
    return Edges(frame, together)


def _count_pairs(
    work: Ordered,
    pairs: _Neighbours,
    key: NDArray[np.int64],
    is_known: NDArray[np.bool_],
    is_same: NDArray[np.bool_],
) -> pl.DataFrame:
    """One row a pair of folded names: how often, in one op, in graphs, with which gaps and surroundings.

    `key` is the number of the first name, times how many there are, and that of the second. Each column is looked at by
    itself: of ten million launches it takes 80 MB.
    """
    in_graph = pairs.first(work.in_graph) & pairs.second(work.in_graph)
    thread = pairs.first(work.thread)
    has_gap = (thread != NONE) & (thread == pairs.second(work.thread)) & ~in_graph
    flags = {"known": is_known, "same": is_same, "in_graph": in_graph, "timed": has_gap}
    found = (
        pl.DataFrame({"key": key, **flags})
        .group_by("key")
        .agg(pl.len().cast(pl.Int64).alias("count"), pl.col(*flags).sum().cast(pl.Int64))
    )
    host_gap = pairs.second(work.called_ns) - pairs.first(work.returned_ns)
    medians = [_medians(key, host_gap_ns=host_gap, where=has_gap)]
    medians.append(_medians(key, host_gap=host_gap / _usual_gap(work)[thread], where=has_gap))
    del host_gap
    device_gap = pairs.second(work.start_ns) - pairs.first(work.start_ns) - pairs.first(work.dur_ns)
    medians.append(_medians(key, device_gap_ns=device_gap))
    del device_gap
    for each in medians:
        found = found.join(each, on="key", how="left")
    surroundings = pl.DataFrame({"key": key, "before": pairs.first(_before(work))}).filter(pl.col("before") != NONE)
    contexts = surroundings.unique().group_by("key").agg(pl.len().cast(pl.Int64).alias("contexts"))
    found = found.join(contexts, on="key", how="left").with_columns(pl.col("contexts").fill_null(0))
    names = len(work.folded)
    a, b = (pl.col("key") // names).alias("a"), (pl.col("key") % names).alias("b")
    return found.select(a, b, pl.exclude("key"))


def _medians(
    key: NDArray[np.int64], where: NDArray[np.bool_] | None = None, **column: NDArray[np.int64] | NDArray[np.float64]
) -> pl.DataFrame:
    """The median of a column for each key, over the pairs `where` it is known."""
    rows = pl.DataFrame({"key": key, **column})
    rows = rows if where is None else rows.filter(pl.Series(where))
    return rows.group_by("key").agg(pl.col(*column).median())


def _before(work: Ordered) -> NDArray[np.int32]:
    """The folded name of what ran before each launch on its stream, `NONE` for the first."""
    before = np.full(len(work.lane), NONE, dtype=np.int32)
    before[1:] = np.where(work.lane[1:] == work.lane[:-1], work.fold[:-1], NONE)
    return before


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
