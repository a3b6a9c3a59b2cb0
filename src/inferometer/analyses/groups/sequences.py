"""Launches that always follow each other and are no group: the cycle of a layer, distinguished from one call's kernels.

Chains of pairs that stick together both ways but were launched by ops of their own, inside one graph, too far apart on
the host, or in one surrounding only. Reported as sequences, with the reason, never as groups.
"""

from collections import Counter
from typing import Any

import polars as pl

from inferometer.analyses.groups.members import Refusal
from inferometer.analyses.groups.ordered_launches import Ordered, named
from inferometer.analyses.groups.pairs import Edges
from inferometer.analyses.groups.rules import GROUPED, HOST_GAP_NS, STICKS, SUPPORT
from inferometer.units import format_duration


def find_sequences(work: Ordered, edges: Edges) -> list[Refusal]:
    """Chains of neighbours that stick together for another reason than one call, the longest times first."""
    if not edges.frame.height:
        return []
    found = edges.frame.filter(
        ~pl.col("ruling").is_in([*GROUPED, "loose"])
        & (pl.col("count") >= SUPPORT)
        & (pl.min_horizontal(pl.col("count") / pl.col("count_a"), pl.col("count") / pl.col("count_b")) >= STICKS)
    )
    following: dict[int, dict[str, Any]] = {row["a"]: row for row in found.iter_rows(named=True)}
    spent, names = _spent(work), named(work)
    refusals = [_refusal(chain, names, spent) for chain in _chains(following)]
    return sorted(refusals, key=lambda refusal: (-refusal.total_ns, refusal.kernels))


def _chains(following: dict[int, dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Pairs joined where one's second kernel is the next one's first; a cycle is cut where it began to be followed."""
    begins = [a for a in following if a not in {row["b"] for row in following.values()}]
    chains, used = [], set()
    for begin in [*begins, *following]:
        chain, at = [], begin
        while at in following and at not in used:
            used.add(at)
            chain.append(following[at])
            at = following[at]["b"]
        if chain:
            chains.append(chain)
    return chains


def _spent(work: Ordered) -> dict[int, int]:
    sums = pl.DataFrame({"fold": work.fold, "ns": work.dur_ns}).group_by("fold").agg(pl.col("ns").sum())
    return dict(sums.iter_rows())


def _refusal(chain: list[dict[str, Any]], named: dict[int, list[str]], spent: dict[int, int]) -> Refusal:
    folds = [chain[0]["a"], *(row["b"] for row in chain)]
    total_ns = sum(spent[fold] for fold in dict.fromkeys(folds))
    names = tuple(name for fold in folds for name in named[fold])
    return Refusal(names, min(row["count"] for row in chain), _why(chain), total_ns)


def _why(chain: list[dict[str, Any]]) -> str:
    """The reason that most pairs of the chain were refused for."""
    ruling = Counter(row["ruling"] for row in chain).most_common(1)[0][0]
    n = len(chain) + 1
    known, same = sum(row["known"] for row in chain), sum(row["same"] for row in chain)
    gaps = [row["host_gap_ns"] for row in chain if row["host_gap_ns"] is not None]
    times = dict.fromkeys(format_duration(gap) for gap in (min(gaps), max(gaps))) if gaps else {}
    medians = "median" if len(gaps) == 1 else "medians"
    between = f"the host took {' to '.join(times)} between them ({medians})" if gaps else "the host's gaps are unknown"
    always = "always" if all(row["count"] == row["count_a"] == row["count_b"] for row in chain) else "nearly always"
    return {
        "own ops": f"A sequence of {n}, {always} in this order, but each from an op of its own: one op launched both "
        f"in {same:,} of {known:,} pairs, and {between}.",
        "rare": f"A sequence of {n}, seen too rarely to say that one call launches it.",
        "graph": f"A sequence of {n} that one call launched with others (a graph, a submit): order only, since no op "
        "or call stands behind each kernel.",
        "no calls": f"A sequence of {n}, {always} in this order; without host calls that proves no common call.",
        "slow": f"A sequence of {n}, {always} in this order, but {between}: {_slow(gaps)}.",
        "memory": f"A sequence of {n} copies or fills, {always} in this order: each is a call of its own.",
        "one context": f"A sequence of {n}, {always} in this order, in one surrounding only: so does a layer repeat.",
    }[ruling]


def _slow(gaps: list[float]) -> str:
    if gaps and max(gaps) > HOST_GAP_NS:
        return f"one call launches its kernels within {format_duration(HOST_GAP_NS)}"
    return "as long as between other launches of the thread, or nearly so"
