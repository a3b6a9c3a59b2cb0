"""The steps between the cuts: what each holds, which the recording cut, and how alike those of one kind are."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from inferometer.analyses.steps.found.anchors import Level, is_usual
from inferometer.analyses.steps.found.bodies import Bodies
from inferometer.analyses.steps.found.boundaries import Cuts
from inferometer.analyses.steps.found.lanes import DeviceLaunches, Numbers
from inferometer.analyses.steps.found.roles import Flags

Shares = NDArray[np.float64]
_MOST_CELLS = 20_000_000  # steps times roles: of more roles the rarest are one, so that memory stays bounded
_LONE = 0.9  # how alike a step is that is the only one of its kind: nothing is known against it
_ODD_LENGTH = 0.5  # how far a step is trusted that has more or fewer bodies than most


class Segments(msgspec.Struct, frozen=True):
    """Steps in order; shapes (steps,) or (steps, roles). Times in ns.

    `first` and `last`: launches, the last exclusive. `bodies` in each; `is_partial`: cut by the recording. `counts` and
    `times`: launches and summed time of each of `roles`, numbers of the lane's roles, of which the last may stand for
    all rarer ones.
    """

    first: Numbers
    last: Numbers
    start: Numbers
    end: Numbers
    bodies: Numbers
    is_partial: Flags
    roles: Numbers
    counts: Numbers
    times: Numbers


def find_segments(lane: DeviceLaunches, bodies: Bodies, level: Level, cuts: Cuts) -> Segments | None:
    """The steps; None where fewer than two are whole."""
    before = np.concatenate((bodies.before, [bodies.total]))
    first, last = cuts.places[:-1], cuts.places[1:]
    held = before[last] - before[first]
    is_partial = _partial(level, cuts, held)
    if np.count_nonzero(~is_partial) < 2:
        return None
    roles, counts, times = _sums(lane, first, last)
    end = np.maximum.reduceat(lane.end[: last[-1]], first)
    return Segments(first, last, lane.start[first], end, held, is_partial, roles, counts, times)


def _partial(level: Level, cuts: Cuts, held: Numbers) -> Flags:
    """The first or last step where the recording begins or ends in it: other launches at its edge, or fewer bodies."""
    is_partial, usual = np.zeros(len(held), dtype=np.bool_), is_usual(held, level.per_step)
    is_partial[0] = not (usual[0] and cuts.begins_whole)
    is_partial[-1] |= not (usual[-1] and cuts.ends_whole)
    return is_partial


def _sums(lane: DeviceLaunches, first: Numbers, last: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Roles, launches and ns, steps by roles."""
    number = len(lane.roles.names)
    most = max(1, min(number, _MOST_CELLS // len(first)))
    order = np.argsort(-np.bincount(lane.role, minlength=number), kind="stable")[:most]
    column = np.full(number, most - 1, dtype=np.int64)
    column[order] = np.arange(most)
    step = np.repeat(np.arange(len(first)), last - first)
    within = slice(int(first[0]), int(last[-1]))
    cell = step * most + column[lane.role[within]]
    counts = np.bincount(cell, minlength=len(first) * most)
    times = np.bincount(cell, weights=(lane.end - lane.start)[within], minlength=len(first) * most)
    return order, counts.reshape(-1, most), np.rint(times).astype(np.int64).reshape(-1, most)


def find_likeness(segments: Segments, kinds: Numbers, level: Level) -> Shares:
    """How alike each step is to those of its kind, 0 to 1: launches that both have of all that either has.

    A step that the recording cut need only have what others have. One of another length is trusted half.
    """
    alike = np.full(len(kinds), _LONE)
    for kind in np.unique(kinds):
        of_kind = kinds == kind
        models = of_kind & ~segments.is_partial
        if np.count_nonzero(models) > 1:
            usual = np.median(segments.counts[models], axis=0)
            own = segments.counts[of_kind]
            shared = np.minimum(own, usual).sum(axis=1)
            either = np.where(segments.is_partial[of_kind], own.sum(axis=1), np.maximum(own, usual).sum(axis=1))
            alike[of_kind] = shared / np.maximum(either, 1)
    odd = ~is_usual(segments.bodies, level.per_step) & ~segments.is_partial
    return np.asarray(alike * np.where(odd, _ODD_LENGTH, 1.0))


def count_layers(segments: Segments, bodies: Bodies, level: Level, *, is_training: bool) -> NDArray[np.float64]:
    """Layers in each step: its attentions, else the number of launches that most of its roles have; NaN for unknown.

    A training step attends forward and backward, and how often is not known: unknown. So are layers within a graph.
    """
    if is_training or bodies.unit == "graph":
        return np.full(len(segments.bodies), np.nan)
    if bodies.unit == "attention":
        return segments.bodies.astype(np.float64)
    usual = np.median(segments.counts[~segments.is_partial], axis=0)
    values, roles = np.unique(usual[usual > 1], return_counts=True)
    if not len(values) or roles.max() < 2:
        return np.full(len(segments.bodies), np.nan)
    return np.where(segments.bodies == level.per_step, values[np.argmax(roles)], np.nan)
