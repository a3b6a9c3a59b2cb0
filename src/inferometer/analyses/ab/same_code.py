"""Where two arms of an A/B ran the same code, and which caller a path counts with that one arm alone calls. P paths."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inferometer.analyses.ab.times import Integers
from inferometer.analyses.ab.tree import PathTree


@dataclass(frozen=True)
class ArmColumns:
    """What one arm took: sums by repetition, shape (P, R), and their whole means, shape (P,) (see `whole_means`).

    `backends`, `operators`: of each path what ran itself and for which operators, empty of what is no operator.
    """

    name: str
    totals: Integers
    owns: Integers
    mean_totals: Integers
    mean_owns: Integers
    is_called: NDArray[np.bool_]
    backends: Sequence[frozenset[str]]
    operators: Sequence[frozenset[str]]


def owners_of(tree: PathTree, both_P: NDArray[np.bool_]) -> list[int]:
    """For each path the nearest that both arms call, itself or a caller; itself where there is none."""
    owners: list[int] = []
    for i, node in enumerate(tree.nodes):
        owners.append(i if both_P[i] or node.parent is None else owners[node.parent])
    return owners


def is_own_code_same(base: ArmColumns, candidate: ArmColumns, owners: Sequence[int]) -> NDArray[np.bool_]:
    """Whether both arms call a path, ran the same in it, and call nothing alone that counts with it. Shape (P,)."""
    return _both_call(base, candidate, owners) & _are_equal(base.backends, candidate.backends)


def is_same_code(base: ArmColumns, candidate: ArmColumns, tree: PathTree) -> NDArray[np.bool_]:
    """Whether that holds for a path and for all paths below it. Shape (P,)."""
    return _of_all_below(is_own_code_same(base, candidate, owners_of(tree, base.is_called & candidate.is_called)), tree)


def call_the_same(base: ArmColumns, candidate: ArmColumns, tree: PathTree) -> NDArray[np.bool_]:
    """Whether both arms call the same operators at a path and below it. Shape (P,)."""
    both_P = _both_call(base, candidate, owners_of(tree, base.is_called & candidate.is_called))
    return _of_all_below(both_P & _are_equal(base.operators, candidate.operators), tree)


def _both_call(base: ArmColumns, candidate: ArmColumns, owners: Sequence[int]) -> NDArray[np.bool_]:
    """Whether both arms call a path and call nothing alone that counts with it. Shape (P,)."""
    both_P = base.is_called & candidate.is_called
    for i, owner in enumerate(owners):
        if owner != i:
            both_P[[i, owner]] = False
    return both_P


def _are_equal(ones: Sequence[frozenset[str]], others: Sequence[frozenset[str]]) -> NDArray[np.bool_]:
    return np.array([one == other for one, other in zip(ones, others, strict=True)], bool)


def _of_all_below(own_P: NDArray[np.bool_], tree: PathTree) -> NDArray[np.bool_]:
    """Whether `own_P` holds for a path and for all paths below it. Shape (P,)."""
    return np.array([bool(own_P[i:end].all()) for i, end in enumerate(tree.ends)], bool)
