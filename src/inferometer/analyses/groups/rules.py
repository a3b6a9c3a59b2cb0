"""What a pair of neighbours is: kernels of one call, or launches that only follow each other.

The rules were calibrated on same-op truth (neighbours launched by one op instance) of real captures from A100 and H100.
Where ops are known, the same instance decides. How often a kernel has this neighbour then only shows which role is
optional: asking for it in 95 % of the cases would have lost 131 of 362 true pairs, and no false one. Two pairs are
enough: names learned on one rank of a training run found the other's pairs with 146 right and none wrong, of 175.

Without ops, order proves nothing: a layer repeats in order, too. Then neighbours must stick together both ways, the
host must go from one to the next at once, and they must do so in several surroundings. With the ops of these captures
hidden, this finds fewer pairs (324 of 568 with the bundled sample's), none of them wrong; but `HOST_GAP_NS` was chosen
on these very captures, and no other has tested it.

Two more kinds of knowledge stand in for ops where there are none. A pair that another file taught (`learned`) is one by
its names. A pair that the library's source declares (`declared`) is one where its kernels stick together as declared.

Shares decide, and Wilson's lower bound is the confidence that is reported: to have a bound of 0.95, a pair would have
to be seen 73 times without exception.
"""

from typing import Any, Literal

from inferometer.analyses.groups.members import Verdict

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

DECLARED_GAP_NS = 100_000
"""Median host gap of a declared pair at most. True ones of the captures have 39 μs at most; above 130 μs stand pairs of
the sampled captures, where the kernels between the two are missing."""

CONTEXTS = 2
"""Different kernels that come before the pair, or variants of its roles."""

Ruling = Verdict | Literal["own ops", "loose", "rare", "graph", "no calls", "memory", "slow", "one context"]

GROUPED: dict[Verdict, int] = {
    "library call": OWNED_SUPPORT,
    "learned call": 1,
    "declared call": OWNED_SUPPORT,
    "fused-wrapper call": SUPPORT,
}
"""Rulings that make a group, the surest first, and how often such a group must be seen."""


def hits_of(row: dict[str, Any]) -> tuple[int, int]:
    """How often the pair was one, of how often it could have been, by the kind of knowledge that decided."""
    if row["known"]:
        return row["same"], row["known"]
    if row["ruling"] == "learned call":
        return row["learned_same"], row["learned_known"]
    if row["ruling"] == "declared call":
        return min(_bound(row), key=lambda hits: hits[0] / hits[1])
    return min(row["followed"], row["preceded"]), max(row["count_a"], row["count_b"])


def rule_of(row: dict[str, Any], min_support: int | None = None) -> Ruling:
    """What a pair is, from its counts; the first test that it fails, or the kind of call that it passes as."""
    if row["known"]:
        if row["same"] < SAME_OP * row["known"]:
            return "own ops"
        return "library call" if row["owned"] >= (min_support or OWNED_SUPPORT) else "rare"
    if row["learned_on"] and row["count"] >= (min_support or GROUPED["learned call"]):
        return "learned call"
    if row["declared"] and row["count"] >= (min_support or GROUPED["declared call"]) and _is_as_declared(row):
        return "declared call"
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


def _is_as_declared(row: dict[str, Any]) -> bool:
    """Whether those of the two that never come alone, by what is declared, don't; and the host went on at once."""
    if row["timed"] and row["host_gap_ns"] > DECLARED_GAP_NS:
        return False
    return all(hits >= STICKS * of for hits, of in _bound(row))


def _bound(row: dict[str, Any]) -> list[tuple[int, int]]:
    """How often each of the two that is bound to the other had a declared neighbour, of all its launches."""
    if row["repeats"]:
        return [(row["count"], row["count"])]
    sides = {"leader": (row["led"], row["count_a"]), "follower": (row["lagging"], row["count_b"])}
    return [hits for side, hits in sides.items() if row["bound"] in (side, "both")]
