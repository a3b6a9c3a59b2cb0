"""What a watch made of labelled pairs, as bars and as a table with the reasons of what it missed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.watch_pairs import LONGER, OTHERS, SHARE, STEPS, Row, is_quiet
from benchmarks.watch_shuffled import Longer


def pair_bars(found: Sequence[Row]) -> dict[str, bool]:
    """The bars on labelled pairs, of those that count; on normal steps of those whose machine was quiet."""
    counted = [row for row in found if row.counts]
    quiet = [row for row in found if is_quiet(row.others)]
    soon, right = (sum(chosen) for chosen in ([r.is_soon for r in counted], [r.judged == "right" for r in counted]))
    outside = [one for row in quiet for one in row.outside]
    false = sum(not one.is_real for one in outside)
    return {
        f"labelled pairs: alarm within {STEPS} steps in 9 of 10 ({soon} of {len(counted)})": soon
        >= SHARE * len(counted),
        f"labelled pairs: cause first in 9 of 10 ({right} of {len(counted)})": right >= SHARE * len(counted),
        f"labelled pairs: no alarm on normal steps ({false}; {len(outside) - false} on steps that were slower without "
        "a fault)": not false,
        "labelled pairs: each end seen": all(row.recovered for row in quiet if row.steps is not None),
    }


def pairs_table(found: Sequence[dict[str, Any]]) -> list[str]:
    """A row per fault of each stream, then why bars are missed."""
    head = (
        "Fault",
        "Recorded on",
        "Others, cores",
        "Times as long",
        "Steps to the alarm",
        "Dated off by",
        "Cause first named",
        "End seen",
    )
    lines = [f"| {' | '.join(head)} |", "| --- " * len(head) + "|", *(_line(row) for row in found)]
    notes = [f"- {row['name']}, {row['kind']}: {_why_not(row)}." for row in found if _why_not(row)]
    return [*lines, *(["", "Why not:", "", *notes] if notes else [])]


def of_all(found: Sequence[dict[str, Any]]) -> str:
    """The same numbers of all recordings whose steps took longer, whatever ran next to them."""
    longer = [row for row in found if row["times"] is None or row["times"] >= LONGER]
    soon = sum(row["steps"] is not None and row["steps"] <= STEPS for row in longer)
    right = sum(row["judged"] == "right" for row in longer)
    false = sum(not Longer(**one).is_real for row in found for one in row["outside"])
    ends = sum(row["recovered"] for row in found if row["steps"] is not None)
    noticed = sum(row["steps"] is not None for row in found)
    return (
        f"Of all {len(longer)} whose steps took {LONGER:g} times as long or more, whatever ran next to them: alarm "
        f"within {STEPS} steps in {soon}, cause first in {right}; alarms on normal steps: {false}; {ends} of {noticed} "
        "ends seen."
    )


def _line(row: dict[str, Any]) -> str:
    name = row["name"] if row["counts"] else f"{row['name']} (not counted)"
    others, times = ("-" if row[key] is None else f"{row[key]:.2f}" for key in ("others", "times"))
    head = f"| {name} | {row['kind']} | {others} | {times} |"
    if row["steps"] is None:
        return f"{head} none | - | - | - |"
    seen = "yes" if row["recovered"] else "no"
    cause = f"{row['cause'] or 'nothing new'}, {row['judged']}"
    return f"{head} {row['steps']} | {row['dated']:+d} steps | {cause} | {seen} |"


def _why_not(row: dict[str, Any]) -> str:
    """Why a row misses a bar, or isn't counted, and which alarms belong to no fault; empty where there is none."""
    why = []
    if not row["counts"] and row["times"] < LONGER:
        why.append(f"steps took {row['times']:.2f} times as long, {LONGER:g} times are counted")
    if not is_quiet(row["others"]):
        why.append(f"other programs used {row['others']:.2f} cores, {OTHERS:g} are counted")
    if row["steps"] is None:
        why.append(row["why_not"])
    if row["steps"] is not None and row["steps"] > STEPS:
        why.append(f"the alarm came after {row['steps']} steps")
    if row["steps"] is not None and row["judged"] != "right":
        why.append(f"what was said: {row['said'].rstrip('.') or 'nothing else than at the alarm before'}")
    why += [Longer(**one).sentence for one in row["outside"]]
    return "; ".join(why)
