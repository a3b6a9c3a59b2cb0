"""A few shapes that stand for all shapes of an operator that a fleet has, and what that choice misjudges.

Shapes that differ in more than sizes (a type, a flag, which tensors there are) never stand for each other. Others are
as far apart as the logarithms of their sizes, added up. The representatives are chosen one after another: the shape
that brings the weighted distance of all shapes to the nearest representative down most (the greedy choice of
k-medoids). The error is what would be misjudged if each call took the time of a call of its representative: the sum of
the differences, as a part of the operator's time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

Values = NDArray[np.float64]
_APART: Final = 1e9
"""Of shapes that differ in more than sizes: further than any sizes are."""


@dataclass(frozen=True)
class Representative:
    """A shape with its weight: that of the shapes which it stands for, `shapes` of them with `calls` and `total_ns`."""

    operator: str
    args: dict[str, Any]
    weight: float
    shapes: int
    calls: int
    total_ns: int


@dataclass(frozen=True)
class Represented:
    """The representatives of an operator, the weightiest first; `weight` is the operator's, `shapes` are all of its."""

    operator: str
    weight: float
    shapes: int
    error: float
    representatives: tuple[Representative, ...]


def choose_representatives(frame: pl.DataFrame, *, most: int, weight: str) -> list[Represented]:
    """The representatives of each operator of the catalogue, the weightiest operator first.

    Args:
        frame: Of `questions.importance.weighed`. Rows without an operator, or with unknown calls, are left out.
        most: Of an operator; more where shapes differ in more than sizes.
        weight: The column of weights.
    """
    rows = frame.filter(pl.col("operator").is_not_null() & (pl.col("calls") > 0))
    merged = rows.group_by("operator", "operator_args").agg(pl.col("calls", "total_ns", weight).sum())
    ordered = merged.sort("operator", weight, "operator_args", descending=[False, True, False])
    found = [_represented(part, most, weight) for part in ordered.partition_by("operator", maintain_order=True)]
    return sorted(found, key=lambda each: (-each.weight, each.operator))


def _represented(shapes: pl.DataFrame, most: int, weight: str) -> Represented:
    args = [msgspec.json.decode(text, type=dict[str, Any]) for text in shapes["operator_args"]]
    weights = shapes[weight].to_numpy().astype(np.float64)
    far = _distances(args)
    chosen = _chosen(far, weights, most)
    of = np.array(chosen)[far[:, chosen].argmin(axis=1)]
    calls, total = shapes["calls"].to_numpy(), shapes["total_ns"].to_numpy()
    each_ns = total / calls
    wrong_ns = float((calls * np.abs(each_ns[of] - each_ns)).sum())
    made = [
        Representative(
            operator=shapes["operator"][0],
            args=args[i],
            weight=float(weights[of == i].sum()),
            shapes=int((of == i).sum()),
            calls=int(calls[of == i].sum()),
            total_ns=int(total[of == i].sum()),
        )
        for i in chosen
    ]
    ordered = tuple(sorted(made, key=lambda each: (-each.weight, msgspec.json.encode(each.args, order="sorted"))))
    whole = float(total.sum())
    return Represented(
        shapes["operator"][0], float(weights.sum()), len(args), wrong_ns / whole if whole else 0.0, ordered
    )


def _chosen(far: Values, weights: Values, most: int) -> list[int]:
    """At most `most` places, or one for each kind of shape where there are more kinds."""
    chosen: list[int] = []
    nearest = np.full(len(weights), 2 * _APART)
    while len(chosen) < len(weights):
        left = np.minimum(nearest[:, None], far)  # a column for each choice
        cost = np.maximum(weights, np.finfo(float).tiny) @ left
        cost[chosen] = np.inf
        if len(chosen) >= most and nearest.max() < _APART:
            break
        chosen.append(int(cost.argmin()))
        nearest = left[:, chosen[-1]]
        if not nearest.any():
            break
    return chosen


def _distances(args: Sequence[Mapping[str, Any]]) -> Values:
    """How far shapes are apart. Shape (n, n)."""
    parts = [_parts(each) for each in args]
    kinds = {kind: number for number, kind in enumerate(dict.fromkeys(kind for kind, _ in parts))}
    kind = np.array([kinds[each] for each, _ in parts])
    far = np.full((len(args), len(args)), _APART)
    for number in kinds.values():
        own = np.flatnonzero(kind == number)
        sizes = np.log2(1 + np.array([parts[i][1] for i in own], dtype=np.float64)).reshape(len(own), -1)
        far[np.ix_(own, own)] = sum(np.abs(column[:, None] - column) for column in sizes.T) + np.zeros((len(own),) * 2)
    return far


def _parts(args: Mapping[str, Any]) -> tuple[bytes, list[int]]:
    """What isn't a size, and the sizes: whole numbers, also in lists of as many."""
    sizes: list[int] = []
    return msgspec.json.encode(_without_sizes(args, sizes), order="sorted"), sizes


def _without_sizes(value: Any, sizes: list[int]) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        sizes.append(value)
        return 0
    if isinstance(value, Mapping):
        return {key: _without_sizes(value[key], sizes) for key in sorted(value)}
    if isinstance(value, list):
        return [_without_sizes(each, sizes) for each in value]
    return value
