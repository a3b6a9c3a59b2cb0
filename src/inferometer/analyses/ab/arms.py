"""What each path took in each arm, and how far its operators' answers are off: one record per path and arm."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from inferometer.analyses.ab.measurement import PathMeasurement
from inferometer.analyses.ab.rows import ArmPath, Interval, Layers, PathError
from inferometer.analyses.ab.statistics import t_interval
from inferometer.analyses.ab.times import COLUMNS, ArmTimes, Clock, Integers, whole_means
from inferometer.analyses.ab.tree import PathTree

_P95 = 0.95
_DEVICE = ("device_busy_ns", "gap_ns", "kernels", "allocated_bytes")  # of `measurement.BUSY`


@dataclass(frozen=True)
class Summed:
    """Times of all arms: on the host, those that are compared, of these the interruptions; and which these are."""

    host: ArmTimes
    times: ArmTimes
    taken: Integers
    clock: Clock


@dataclass(frozen=True)
class Means:
    """Whole means of the compared times, shape (A, P): steady, and with interruptions. Both add up."""

    steady_owns: Integers
    steady_totals: Integers
    owns: Integers
    totals: Integers

    @classmethod
    def of(cls, summed: Summed, tree: PathTree) -> "Means":
        """Both parts are made whole, so that they add up, too."""
        own_AP, total_AP = whole_means(summed.times.owns - summed.taken, tree.ends)
        taken_own_AP, taken_AP = whole_means(summed.taken, tree.ends)
        return cls(own_AP, total_AP, own_AP + taken_own_AP, total_AP + taken_AP)


def arm_paths(
    measurement: PathMeasurement, placed: pl.DataFrame, tree: PathTree, summed: Summed, means: Means
) -> dict[str, dict[int, ArmPath]]:
    """By arm and node, the paths that it calls.

    Args:
        measurement: Whose arms and recorded passes are taken.
        placed: Its calls with their `node` and `layer`.
        tree: Of these.
        summed: Their times.
        means: Of these.
    """
    times, clock = summed.times, summed.clock
    host_own_AP, host_AP = whole_means(summed.host.owns, tree.ends)
    if clock == "host":
        host_own_AP, host_AP = means.owns, means.totals
    repetitions = times.totals.shape[2]
    each_call, layers, backends = _each_call(placed, clock), _layers(placed, clock), _backends(placed)
    busy = _busy(measurement.busy, tree)
    has_spans = placed["span_ns"].null_count() < placed.height
    found: dict[str, dict[int, ArmPath]] = {}
    for a, arm in enumerate(measurement.arms):
        calls_P = times.calls[a].sum(axis=1)
        root_ns = int(means.steady_totals[a][tree.roots].sum())
        _, low_P, high_P = t_interval(times.totals[a].astype(np.float64))
        found[arm] = {}
        for i in np.flatnonzero(calls_P).tolist():
            calls = _fraction(int(calls_P[i]), repetitions)
            device = {"device_busy_ns": None if has_spans else int(host_AP[a, i])} | _a_repetition(
                busy.get((arm, i)), calls
            )
            median, p95 = each_call[arm, i]
            found[arm][i] = ArmPath(
                calls=calls,
                backends=backends.get((arm, i), {}),
                host_ns=int(host_AP[a, i]),
                host_self_ns=int(host_own_AP[a, i]),
                span_ns=None if has_spans and clock == "host" else int(means.totals[a, i]),
                device_busy_ns=device["device_busy_ns"],
                gap_ns=device.get("gap_ns"),
                kernels=device.get("kernels"),
                allocated_bytes=device.get("allocated_bytes"),
                time_ns=int(means.totals[a, i]),
                self_ns=int(means.owns[a, i]),
                steady_ns=int(means.steady_totals[a, i]),
                steady_self_ns=int(means.steady_owns[a, i]),
                interval_ns=_time_interval(low_P[i], high_P[i]),
                median_call_ns=median,
                p95_call_ns=p95,
                share=int(means.steady_totals[a, i]) / root_ns if root_ns else None,
                layers=layers.get((arm, i)),
            )
    return found


def worst_errors(errors: pl.DataFrame, tree: PathTree) -> tuple[dict[str, dict[int, PathError]], Sequence[str]]:
    """By arm and node the worst of a path and those below it, and the checked paths that no arm called."""
    placed = tree.nodes_of(errors)
    unplaced = placed.filter(pl.col("node").is_null())["path"].unique(maintain_order=True).to_list()
    found: dict[str, dict[int, PathError]] = {}
    for row in placed.filter(pl.col("node").is_not_null()).iter_rows(named=True):
        one = PathError(row["max_error"], row["normalised_error"], row["tolerance"], row["call"], row["failure"])
        own = found.setdefault(row["arm"], {})
        node: int | None = row["node"]
        while node is not None:
            own[node] = _worse(own.get(node), one)
            node = tree.nodes[node].parent
    return found, unplaced


def _worse(known: PathError | None, other: PathError) -> PathError:
    if known is None:
        return other
    return PathError(
        _larger(known.max_error, other.max_error),
        _larger(known.normalised_error, other.normalised_error),
        known.tolerance if known.tolerance == other.tolerance else None,  # several dtypes have no one tolerance
        known.call if known.failure else other.call,
        known.failure or other.failure,
    )


def _larger(one: float | None, other: float | None) -> float | None:
    """Not a number is the largest error of all: nothing is known for the answer."""
    there = [each for each in (one, other) if each is not None]
    return max(there, key=lambda each: math.inf if math.isnan(each) else each, default=None)


def backends_of(placed: pl.DataFrame, arm: str, count: int) -> list[frozenset[str]]:
    """The backends that ran in an arm for each of `count` nodes, whoever refused before: `torch` of `torch (…)`."""
    return _names_of(placed.filter(pl.col("arm") == arm), pl.col("backend").str.split(" (").list.first(), count)


def operators_of(placed: pl.DataFrame, arm: str, count: int) -> list[frozenset[str]]:
    """The same of operators, of which an arm may call another from the same place."""
    return _names_of(placed.filter(pl.col("arm") == arm), pl.col("operator"), count)


def _names_of(placed: pl.DataFrame, name: pl.Expr, count: int) -> list[frozenset[str]]:
    found = [frozenset[str]()] * count
    for node, names in placed.group_by("node").agg(name.drop_nulls().unique()).iter_rows():
        found[node] = frozenset(names)
    return found


def _each_call(placed: pl.DataFrame, clock: Clock) -> Mapping[tuple[str, int], tuple[float, float]]:
    """Median and 95th percentile of the calls of each path."""
    ns = pl.col(COLUMNS[clock])
    rows = placed.group_by("arm", "node").agg(ns.median().alias("median"), ns.quantile(_P95, "linear").alias("p95"))
    return {(arm, node): (median, p95) for arm, node, median, p95 in rows.iter_rows()}


def _layers(placed: pl.DataFrame, clock: Clock) -> Mapping[tuple[str, int], Layers]:
    """Of paths that pool layers, the shortest and the longest of these; of equals the first.

    By the median over repetitions, since an interruption doesn't make a layer long.
    """
    ns = pl.col(COLUMNS[clock]).sum()
    sums = (
        placed.filter(pl.col("layer").is_not_null())
        .group_by("arm", "node", "layer", "repetition")
        .agg(ns.alias("ns"), pl.col("order").min())
        .group_by("arm", "node", "layer")
        .agg(pl.col("ns").median(), pl.col("order").min())
    )
    least, most = pl.col("ns").arg_min(), pl.col("ns").arg_max()
    rows = (
        sums.sort("order")
        .group_by("arm", "node")
        .agg(
            pl.len().alias("count"),
            *(
                pl.col(name).get(at).alias(f"{name}_{i}")
                for i, at in enumerate((least, most))
                for name in ("ns", "layer")
            ),
        )
    )
    return {
        (row["arm"], row["node"]): Layers(row["count"], row["ns_0"], row["layer_0"], row["ns_1"], row["layer_1"])
        for row in rows.iter_rows(named=True)
    }


def _backends(placed: pl.DataFrame) -> Mapping[tuple[str, int], Mapping[str, int]]:
    """What ran, the most calls first."""
    rows = placed.filter(pl.col("backend").is_not_null()).group_by("arm", "node", "backend").len()
    found: dict[tuple[str, int], dict[str, int]] = {}
    for arm, node, backend, count in rows.sort("len", "backend", descending=[True, False]).iter_rows():
        found.setdefault((arm, node), {})[backend] = count
    return found


def _busy(busy: pl.DataFrame, tree: PathTree) -> Mapping[tuple[str, int], Mapping[str, Any]]:
    """Device work of the recorded pass, layers together where they are pooled."""
    rows = tree.nodes_of(busy).filter(pl.col("node").is_not_null()).group_by("arm", "node")
    sums = rows.agg(pl.col("calls").sum(), *(pl.col(name).sum() for name in _DEVICE[:-1]), _sum_if_any(_DEVICE[-1]))
    return {(row["arm"], row["node"]): row for row in sums.iter_rows(named=True)}


def _sum_if_any(name: str) -> pl.Expr:
    """Null where all are null, whose sum would be 0."""
    return pl.when(pl.col(name).count() > 0).then(pl.col(name).sum())


def _a_repetition(recorded: Mapping[str, Any] | None, calls: float) -> dict[str, int | None]:
    """Device work of the recorded pass, which may have other calls than a repetition, as much as this has."""
    if recorded is None or not recorded["calls"]:
        return {}
    scale = calls / recorded["calls"]
    return {name: None if recorded[name] is None else round(recorded[name] * scale) for name in _DEVICE}


def _fraction(calls: int, repetitions: int) -> float:
    """Whole where it is whole."""
    return calls // repetitions if calls % repetitions == 0 else calls / repetitions


def _time_interval(low: float, high: float) -> Interval | None:
    """No mean time is below 0, however few and far apart the repetitions are."""
    return None if np.isnan(low) else (max(0.0, float(low)), float(high))
