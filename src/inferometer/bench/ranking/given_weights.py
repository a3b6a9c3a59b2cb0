"""Importance from a file of shapes in place of the published one: what a fleet's traces spend their time on.

An operator weighs as much as its shapes in the file together. Results of other shapes don't count: a fleet doesn't
have them.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from inferometer.analyses.operators.given_shapes import GivenShape
from inferometer.bench.ranking.shape_figures import canonical_args
from inferometer.bench.ranking.standing import NamedRun
from inferometer.errors import InputError


@dataclass(frozen=True)
class GivenWeights:
    """`weights`: by operator, the weightiest first; `shapes`: those that count, each with its operator."""

    source: str
    weights: dict[str, float]
    shapes: frozenset[tuple[str, bytes]]


def weigh_given(source: str, given: Sequence[GivenShape]) -> GivenWeights:
    """The weights of a file's shapes.

    Raises:
        InputError: A shape has none.
    """
    parts: dict[str, list[float]] = defaultdict(list)
    for number, shape in enumerate(given, start=1):
        if shape.weight is None:
            raise InputError(
                f"{source}: shape {number}, {shape.operator.name}: expected a weight, found none",
                hint="`inferometer fleet FLEET importance -o SHAPES.jsonl` writes shapes with their weights.",
            )
        parts[shape.operator.name].append(shape.weight)
    sums = {name: math.fsum(weights) for name, weights in parts.items()}
    ordered = dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))
    return GivenWeights(source, ordered, frozenset((each.operator.name, canonical_args(each.args)) for each in given))


def only_given(runs: Sequence[NamedRun], given: GivenWeights) -> list[NamedRun]:
    """The runs with the results of these shapes alone.

    Raises:
        InputError: A run has none of them.
    """
    found = []
    for name, run in runs:
        own = [each for each in run.results if (each.operator, canonical_args(each.args)) in given.shapes]
        if not own:
            raise InputError(
                f"{name}: expected results of shapes of {given.source}, found none",
                hint=f"`inferometer bench --shapes {given.source}` runs them.",
            )
        found.append((name, msgspec.structs.replace(run, results=own)))
    return found
