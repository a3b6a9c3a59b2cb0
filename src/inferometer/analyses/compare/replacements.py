"""What took the place of what: kernels renamed, fused or split, recognised by the order of launches.

Anchors are the kernels with as many calls per step in both runs. Between two anchors that follow each other, a stretch
of other kernels is what the run does at that place. Where base and candidate differ at the same place, as often, what
stands there was replaced: one by one of its family is renamed; fewer stand for more where kernels were fused, more for
fewer where one was split. A kernel must have most of its calls at such places, or go on with the rest of its calls.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from math import gcd

import msgspec
import numpy as np
import polars as pl

from inferometer.analyses.compare.activity.activity import class_of
from inferometer.analyses.compare.matches import VARIED, Key, Match, Matching, agree
from inferometer.analyses.comparison_limits import LONGEST_GROUP, SAME_PLACE
from inferometer.names import decode

Place = tuple[int, int]
Stretch = tuple[str, ...]
_NONE = -1
_LONGEST = 64  # kernels between two anchors; of more, nothing can be known


class _Order(msgspec.Struct, frozen=True):
    """`places`: how often each stretch stands between two anchors. `anchors`, `calls`: how often each is seen."""

    places: Mapping[Place, Counter[Stretch]]
    anchors: Counter[int]
    calls: Counter[str]


class _Replaced(msgspec.Struct, frozen=True):
    """At one or several places, `base` stood in the one run as `candidate` does in the other; seen so often in each."""

    base: Stretch
    candidate: Stretch
    in_base: int
    in_candidate: int

    @property
    def sides(self) -> tuple[Stretch, Stretch]:
        """The stretches of both runs."""
        return self.base, self.candidate


def match_places(matching: Matching, base: pl.DataFrame, candidate: pl.DataFrame, ratio: float) -> None:
    """Pair what is left by the order of launches.

    Args:
        matching: Extended in place; a match whose calls differ may become part of a group.
        base: `strand` and `function` of launches in order.
        candidate: The same of the candidate.
        ratio: Candidate's calls per cycle over the base's, for the same work.
    """
    base, candidate = _without_copies(base), _without_copies(candidate)
    if base.is_empty() or candidate.is_empty():
        return
    for pick in (_fuse_into_one, _rename, _regroup):
        if matching.base or matching.candidate:
            left, right = _anchors(matching, ratio)
            pick(_Scene(matching, _order(base, left), _order(candidate, right), ratio))


def _without_copies(order: pl.DataFrame) -> pl.DataFrame:
    """Copies and fills come and go next to kernels; they are no part of one."""
    copies = [name for name in order["function"].unique() if class_of(name) == "transfer"]
    return order.filter(~pl.col("function").is_in(copies)) if copies else order


def _anchors(matching: Matching, ratio: float) -> tuple[dict[str, int], dict[str, int]]:
    """The number of each anchor's match, by name in the base and in the candidate."""
    left: dict[str, int] = {}
    right: dict[str, int] = {}
    for number, match in enumerate(matching.matches):
        if len(match.base) == len(match.candidate) == 1 and match.base[0][1] != "host":
            calls = matching.base_calls[match.base[0]] * ratio, matching.candidate_calls[match.candidate[0]]
            if match.kind == "renamed" or agree(*calls):
                left[match.base[0][0]] = right[match.candidate[0][0]] = number
    return left, right


def _order(order: pl.DataFrame, anchors: Mapping[str, int]) -> _Order:
    """What is between anchors. What touches a strand's end is left out."""
    names = order["function"].unique(maintain_order=True).to_list()
    number = {name: i for i, name in enumerate(names)}
    codes = order["function"].replace_strict(number, return_dtype=pl.Int64).to_numpy()
    anchor = np.array([anchors.get(name, _NONE) for name in names])[codes]
    strand = order["strand"].to_numpy()
    at = np.flatnonzero(anchor != _NONE)
    steps = np.diff(at)
    near = (strand[at[1:]] == strand[at[:-1]]) & (steps <= _LONGEST + 1)
    places: dict[Place, Counter[Stretch]] = defaultdict(Counter)
    adjoining = np.flatnonzero(near & (steps == 1))
    pairs, counts = np.unique(np.stack([anchor[at[adjoining]], anchor[at[adjoining + 1]]]), axis=1, return_counts=True)
    for (before, after), count in zip(pairs.T.tolist(), counts.tolist(), strict=True):
        places[before, after][()] = count
    for i in np.flatnonzero(near & (steps > 1)).tolist():
        first, last = int(at[i]), int(at[i + 1])
        stretch = tuple(names[code] for code in codes[first + 1 : last].tolist())
        places[int(anchor[first]), int(anchor[last])][stretch] += 1
    calls = Counter({name: int(n) for name, n in zip(names, np.bincount(codes), strict=True)})
    return _Order(places, Counter(anchor[at].tolist()), calls)


class _Scene(msgspec.Struct, frozen=True):
    """Both runs in order, between the anchors known so far."""

    matching: Matching
    left: _Order
    right: _Order
    ratio: float

    def replaced(self) -> Iterator[_Replaced]:
        """What differs at the same place, as often for each time that the anchor before it is launched."""
        sums: dict[tuple[Stretch, Stretch], list[int]] = defaultdict(lambda: [0, 0])
        for place, stretches in self.left.places.items():
            others = self.right.places.get(place, Counter())
            scale = self.left.anchors[place[0]] / max(self.right.anchors[place[0]], 1)
            only = {stretch: n - others[stretch] * scale for stretch, n in stretches.items()}
            only_others = {stretch: n * scale - stretches[stretch] for stretch, n in others.items()}
            most = max(only, key=lambda stretch: only[stretch], default=())
            most_others = max(only_others, key=lambda stretch: only_others[stretch], default=())
            if most and most_others and agree(only[most], only_others[most_others]):
                is_short = max(len(most), len(most_others)) <= LONGEST_GROUP  # else whole layers repeat
                times = gcd(_repeats(most), _repeats(most_others)) if is_short else 1
                unit = most[: len(most) // times], most_others[: len(most_others) // times]
                sums[unit][0] += times * stretches[most]
                sums[unit][1] += times * others[most_others]
        for (base, candidate), (in_base, in_candidate) in sorted(sums.items(), key=lambda item: (-item[1][0], item[0])):
            yield _Replaced(base, candidate, in_base, in_candidate)


def _repeats(stretch: Stretch) -> int:
    """How often a stretch is one and the same shorter one."""
    n = len(stretch)
    return next(n // size for size in range(1, n + 1) if n % size == 0 and stretch == stretch[:size] * (n // size))


def _fuse_into_one(scene: _Scene) -> None:
    """Several for one, or one for several."""
    for change in scene.replaced():
        if min(len(change.base), len(change.candidate)) == 1:
            _group(scene, change)


def _regroup(scene: _Scene) -> None:
    """Several for fewer, or for more."""
    for change in scene.replaced():
        _group(scene, change)


def _rename(scene: _Scene) -> None:
    """One for one of its family: in stretches as long in both runs, or among products and attention."""
    votes: Counter[tuple[str, str]] = Counter()
    votes_right: Counter[tuple[str, str]] = Counter()
    for change in scene.replaced():
        for pair in _aligned(change):
            votes[pair] += change.in_base
            votes_right[pair] += change.in_candidate
    left, right = _left_over(scene.matching.base), _left_over(scene.matching.candidate)
    for (name, other), n in sorted(votes.items(), key=lambda item: (-item[1], item[0])):
        mostly = (
            n >= SAME_PLACE * scene.left.calls[name]
            and votes_right[name, other] >= SAME_PLACE * scene.right.calls[other]
        )
        if mostly and name in left and other in right:
            basis = "in the same place of the launch order, with as many calls per step"
            scene.matching.pair([left.pop(name)], [right.pop(other)], "renamed", basis)


def _aligned(change: _Replaced) -> Iterator[tuple[str, str]]:
    if len(change.base) == len(change.candidate):
        for name, other in zip(change.base, change.candidate, strict=True):
            family, others = decode(name).family, decode(other).family
            if family == others or "other" in (family, others):
                yield name, other
        return
    left, right = ([f if (f := decode(name).family) in VARIED else name for name in s] for s in change.sides)
    for i, j, size in SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks():
        yield from zip(change.base[i : i + size], change.candidate[j : j + size], strict=True)


def _group(scene: _Scene, change: _Replaced) -> None:
    """Kernels that stand for others, unless one of them is mostly elsewhere."""
    if len(change.base) == len(change.candidate) or max(map(len, change.sides)) > LONGEST_GROUP:
        return
    left = _taken(scene, change.base, change.in_base, scene.left, is_base=True)
    right = _taken(scene, change.candidate, change.in_candidate, scene.right, is_base=False)
    if left is None or right is None or not (left.own and right.own):
        return
    split = [match for match in scene.matching.matches if match in (*left.shared, *right.shared)]
    for match in split:
        scene.matching.matches.remove(match)
    base = [*left.own, *(key for match in split for key in match.base)]
    candidate = [*right.own, *(key for match in split for key in match.candidate)]
    is_fused = len(change.base) > len(change.candidate)
    basis = f"stands {'for more' if is_fused else 'for fewer'} in the same place of the launch order, as often a step"
    shared = tuple(key[0] for match in split for key in match.base)
    scene.matching.add(Match(tuple(base), tuple(candidate), "fused" if is_fused else "split", basis, shared))


class _Taken(msgspec.Struct, frozen=True):
    """Of the kernels in a stretch: those without a match, and matches that keep the rest of their calls."""

    own: list[Key]
    shared: list[Match]


def _taken(scene: _Scene, stretch: Stretch, seen: int, order: _Order, *, is_base: bool) -> _Taken | None:
    """The kernels of a stretch as parts of a group; None where one of them can't be."""
    matching = scene.matching
    left_over = _left_over(matching.base if is_base else matching.candidate)
    taken = _Taken([], [])
    for name, times in Counter(stretch).items():
        part = times * seen / max(order.calls[name], 1)
        if name in left_over:
            if part < SAME_PLACE:
                return None
            taken.own.append(left_over[name])
            continue
        match = next((m for m in matching.matches if _is_of(m, name, is_base=is_base)), None)
        if match is None:
            return None
        calls = matching.base_calls[match.base[0]] * scene.ratio, matching.candidate_calls[match.candidate[0]]
        rest = (calls[0] * (1 - part), calls[1]) if is_base else (calls[0], calls[1] * (1 - part))
        if not agree(*rest):
            return None
        taken.shared.append(match)
    return taken


def _is_of(match: Match, name: str, *, is_base: bool) -> bool:
    keys = match.base if is_base else match.candidate
    return len(match.base) == len(match.candidate) == 1 and keys[0][0] == name and keys[0][1] != "host"


def _left_over(keys: Mapping[Key, float]) -> dict[str, Key]:
    return {key[0]: key for key in keys if key[1] != "host"}
