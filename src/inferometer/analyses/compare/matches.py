"""Which functions of two runs are the same: by name first, then by what their names show and how often they are called.

In this order, each over what the one before left: the name as recorded; the canonical name (one kernel, spelled
otherwise by another tool); the short name that our own tables print; the short name of both (the same kernel with other
template arguments); the order of launches (see `replacements`), or where it is unknown the words of the names; the only
kernel of its family with as many calls per step; where the order is known, of products and attention only. Host
functions are matched by name only.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec
import polars as pl

from inferometer.analyses.comparison_limits import SAME_CALLS
from inferometer.names import canonical_name, decode

VARIED = frozenset(  # families whose kernels a library chooses between at run time
    ("gemm", "gemm_epilogue", "grouped_gemm", "conv", "attention", "attention_prefill", "attention_decode")
)
_SAY_NOTHING = frozenset(("kernel", "and", "v", "fused", "triton", "bf", "fp", "f", "fwd", "with", "of", "the"))
MatchKind = Literal["same", "renamed", "fused", "split", "new", "gone"]
Key = tuple[str, str]


class Match(msgspec.Struct, frozen=True):
    """Functions of the base and what they are in the candidate, with the basis on which that is reported.

    `shared`: in the group as well, though they have calls elsewhere, too; their whole time is in both sums.
    """

    base: tuple[Key, ...]
    candidate: tuple[Key, ...]
    kind: MatchKind
    basis: str
    shared: tuple[str, ...] = ()


@dataclass
class Matching:
    """What is matched so far, and what is left of each run: functions with their calls per step.

    `base_calls`, `candidate_calls`: the same of all functions, matched or not.
    """

    base: dict[Key, float]
    candidate: dict[Key, float]
    matches: list[Match] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.base_calls, self.candidate_calls = dict(self.base), dict(self.candidate)

    def pair(self, base: Iterable[Key], candidate: Iterable[Key], kind: MatchKind, basis: str) -> None:
        """Take these from what is left, as one match."""
        self.add(Match(tuple(base), tuple(candidate), kind, basis))

    def add(self, match: Match) -> None:
        """Take its functions from what is left."""
        for left, keys in ((self.base, match.base), (self.candidate, match.candidate)):
            for key in keys:
                left.pop(key, None)
        self.matches.append(match)

    def close(self) -> None:
        """What is left is gone or new."""
        for key in list(self.base):
            self.pair([key], [], "gone", "no function of the candidate matches")
        for key in list(self.candidate):
            self.pair([], [key], "new", "no function of the base matches")


def match_names(base: pl.DataFrame, candidate: pl.DataFrame) -> Matching:
    """Matches by name; frames have `function`, `cls` and `calls` a step, without the remainders of the step."""
    matching = Matching(_keys(base), _keys(candidate))
    _pair_equal(matching, lambda key: (key[0], key[1] == "host"), "same", "same name", host=True)
    _pair_equal(matching, lambda key: canonical_name(key[0]), "same", "same name in another spelling")
    _pair_printed(matching)
    _pair_equal(matching, _short_name, "renamed", "same short name, other template arguments")
    return matching


def match_families(matching: Matching, ratio: float, families: Collection[str] | None = None) -> None:
    """Pair what is left where one kernel of a family has as many calls per step on either side.

    Args:
        matching: Extended in place.
        ratio: Candidate's calls per cycle over the base's, for the same work.
        families: Only these; all by default.
    """
    left, right = _by_family(matching.base), _by_family(matching.candidate)
    for family, keys in left.items():
        others = right.get(family, []) if families is None or family in families else []
        for key in keys:
            calls = matching.base.get(key, 0.0) * ratio
            fit = [other for other in others if other in matching.candidate and agree(calls, matching.candidate[other])]
            rivals = [one for one in keys if one in matching.base and agree(matching.base[one] * ratio, calls)]
            if key in matching.base and len(fit) == 1 and len(rivals) == 1:
                words = family.replace("_", " ")
                matching.pair(
                    [key], fit, "renamed", f"the only {words} kernel with as many calls per step in either run"
                )


def match_words(matching: Matching, ratio: float) -> None:
    """Pair what is left where one name holds the words of several others with as many calls per step each.

    For sources that show no order of launches. Arguments as of `match_families`.
    """
    scaled = {key: calls * ratio for key, calls in matching.base.items()}
    for new, calls in list(matching.candidate.items()):
        parts = _parts(new, calls, {key: scaled[key] for key in matching.base})
        if parts:
            matching.pair(parts, [new], "fused", "its name holds theirs, as many calls per step each; order unknown")
    for gone in list(matching.base):
        parts = _parts(gone, scaled[gone], matching.candidate)
        if parts:
            matching.pair([gone], parts, "split", "their names are in its, as many calls per step each; order unknown")


def agree(calls: float, others: float) -> bool:
    """Whether these are as many calls."""
    return abs(calls - others) <= SAME_CALLS * max(calls, others)


def _parts(whole: Key, calls: float, others: Mapping[Key, float]) -> list[Key]:
    """Those of `others` whose words make up the name of `whole`; empty where they aren't at least two."""
    words = _words(whole)
    parts = [key for key, n in others.items() if agree(calls, n) and _words(key) and _words(key) < words]
    found = frozenset[str]().union(*(_words(key) for key in parts))
    return parts if len(parts) > 1 and len(found) == sum(len(_words(key)) for key in parts) else []


def _words(key: Key) -> frozenset[str]:
    """The words of a kernel's short name that show what it computes."""
    if key[1] == "host":
        return frozenset()
    known = decode(key[0])
    words = re.findall(r"[a-z]+", known.short_name.lower().replace("_", " "))
    return frozenset(words) - _SAY_NOTHING - {known.library, *re.findall(r"[a-z]+", (known.dtype or ""))}


def _keys(frame: pl.DataFrame) -> dict[Key, float]:
    return {(function, cls): calls for function, cls, calls in frame.select("function", "cls", "calls").iter_rows()}


def _short_name(key: Key) -> Hashable:
    known = decode(key[0])
    return known.short_name if known.is_known else None


def _pair_equal(
    matching: Matching,
    name: Callable[[Key], Hashable],
    kind: MatchKind,
    basis: str,
    *,
    host: bool = False,
) -> None:
    """Pair what has the same `name` in both runs; of several with one name, the most called with the most called."""
    left, right = (_named(keys, name, host=host) for keys in (matching.base, matching.candidate))
    for same, keys in left.items():
        for key, other in _closest(keys, right.get(same, []), matching):
            matching.pair([key], [other], kind, basis)


def _pair_printed(matching: Matching) -> None:
    """Pair what one run calls by the short name of what the other has, where that is one function."""
    for printed, whole in ((matching.base, matching.candidate), (matching.candidate, matching.base)):
        shortened = _named(whole, lambda key: decode(key[0]).short_name, host=False)
        for key in [key for key in printed if key[1] != "host" and len(shortened.get(key[0], ())) == 1]:
            (other,) = shortened[key[0]]
            pair = (key, other) if printed is matching.base else (other, key)
            matching.pair([pair[0]], [pair[1]], "same", "the short name of the other, as tables print it")


def _named(keys: Iterable[Key], name: Callable[[Key], Hashable], *, host: bool) -> dict[Hashable, list[Key]]:
    found: dict[Hashable, list[Key]] = defaultdict(list)
    for key in keys:
        called = name(key) if host or key[1] != "host" else None
        if called is not None:
            found[called].append(key)
    return found


def _closest(keys: Sequence[Key], others: Sequence[Key], matching: Matching) -> list[tuple[Key, Key]]:
    if len(keys) == len(others) == 1:
        return [(keys[0], others[0])]
    ranked = sorted(keys, key=lambda key: (-matching.base[key], key))
    facing = sorted(others, key=lambda key: (-matching.candidate[key], key))
    return list(zip(ranked, facing, strict=False))


def _by_family(keys: Iterable[Key]) -> dict[str, list[Key]]:
    found: dict[str, list[Key]] = defaultdict(list)
    for key in keys:
        if key[1] == "host":
            continue
        known = decode(key[0])
        if known.is_known and known.family != "other":
            found[known.family].append(key)
    return found
