"""One rank that keeps the others waiting in collectives.

All ranks leave a collective together, so the rank whose kernel is the shortest came last, and the others waited by
what theirs are longer: durations alone show it, whatever the clocks say. The time is what the others waited for the
one rank, on average; its share is of the windows of their devices. Fires where one rank came last far more often than
chance has it (four standard deviations above an even draw) and the others waited for it for 2 % of their time: `low`;
from 5 % `medium`, from 15 % `high`.

Normal: ranks come last in turn, by a few μs. Where collectives can't be matched across ranks, the rule is silent.
"""

from collections.abc import Iterator
from math import sqrt

import polars as pl

from inferometer.analyses.timeline.work import PLACE, place_name
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.finding import Finding, Scale
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_duration, format_share

_SCALE = Scale("rank_imbalance", low=0.02, medium=0.05, high=0.15)
_DEVIATIONS = 4.0
_UNEVEN = 0.02  # of compute from the mean: above it, that explains a straggler


def _find(evidence: Evidence) -> Iterator[Finding]:
    launches = evidence.launches
    if launches is None or launches.devices.height < 2:
        return
    windows = launches.devices.select(*PLACE, "window_ns")
    compared = launches.ranks.frame.filter(pl.col("compared") > 0).join(windows, on=PLACE, nulls_equal=True)
    frame = compared.filter(pl.col("last") > 0)
    if frame.is_empty():
        return
    row = frame.sort("kept_waiting_ns", descending=True, maintain_order=True).row(0, named=True)
    others, others_ns = compared.height - 1, int(compared["window_ns"].sum()) - row["window_ns"]
    if others_ns <= 0 or not _is_systematic(row["last"], row["compared"], compared.height):
        return
    waited_ns = row["kept_waiting_ns"] // others
    share = row["kept_waiting_ns"] / others_ns
    severity = _SCALE.severity(share)
    if severity is None:
        return
    name = place_name(row["rank"], row["device"])
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"{name} keeps the others waiting for {format_share(share)} of their time",
        evidence=(
            (
                f"It came last in {row['last']:,} of {row['compared']:,} collectives; {_waited(others)} "
                f"{format_duration(waited_ns)} for it{launches.a_step(waited_ns)}."
            ),
            _compute(row["against_mean"], row["compute_busy_ns"]),
            *_kernels(launches),
        ),
        size_ns=waited_ns,
        share=share,
        next=_next(row["against_mean"], row["rank"]),
    )


def _is_systematic(last: int, compared: int, places: int) -> bool:
    """Whether it came last more often than an even draw among the places explains."""
    even = 1 / places
    return last > compared * even + _DEVIATIONS * sqrt(compared * even * (1 - even))


def _waited(others: int) -> str:
    return "the other rank waited" if others == 1 else f"the {others:,} other ranks waited, on average,"


def _compute(against_mean: float | None, compute_ns: int) -> str:
    if against_mean is None:
        return "What it computes isn't recorded."
    from_mean = f"{format_share(abs(against_mean))} {'below' if against_mean < 0 else 'above'} the mean of all"
    computes = f"It computes for {format_duration(compute_ns)}, {from_mean}"
    if against_mean > _UNEVEN:
        return f"{computes}."
    return f"{computes}: that doesn't make it late. Its host is, or it waits for something else."


def _kernels(launches: LaunchEvidence) -> Iterator[str]:
    matched = launches.ranks.collectives.filter(pl.col("not_compared").is_null())
    if matched.height:
        kinds = matched.group_by("collective", maintain_order=True).agg(pl.col("compared").sum())
        names = ", ".join(f"{n:,} {kind}" for kind, n in kinds.iter_rows())
        yield f"Matched across ranks: {names}."


def _next(against_mean: float | None, rank: int | None) -> str:
    if against_mean is not None and against_mean > _UNEVEN:
        return "Compare its kernels with another rank's: inferometer compare FILE_OF_A_QUICK_RANK FILE_OF_THIS_RANK."
    chosen = "" if rank is None else f" --rank {rank}"
    return f"See what it waits for: inferometer timeline FOLDER_OF_RANKS{chosen}."


RULE = Rule("rank_imbalance", _find, (_SCALE,))
