"""Calls of one op that take much longer than the hardware allows, and more of the device's time than others.

Fires on an op with one set of shapes whose calls reach less than half of their bound (`analyses/roofline`), and whose
time above it is 10 % or more of all device time. What such a call must do is modelled from the shapes and types that
the profiler recorded; without these, or where the device isn't known, there is no answer. Not counted are launches of
less than 10 μs, whose starting and ending no faster kernel helps (`launch_bound`, `unfused_elementwise`), copies
from and to the host, and collectives, whose time is also that of waiting for other ranks.

Severity is the time above the bound as a share of all device time: from 10 % `low`, from 25 % `medium`.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import polars as pl

from inferometer.analyses.roofline.shapes import say_op
from inferometer.findings.finding import Finding, Scale
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_count, format_counted, format_duration, format_share

if TYPE_CHECKING:
    from inferometer.analyses.roofline.table import Roofline

_SCALE = Scale("above_the_bound", low=0.10, medium=0.25)
_REACHED = 0.5
_LONG_NS = 10_000  # of a launch; below, starting and ending is most of a kernel's time
_SHOWN = 3


def _find(evidence: Evidence) -> Iterator[Finding]:
    found = None if evidence.launches is None else evidence.launches.roofline
    if found is None or found.device is None or not found.total_ns:
        return
    took = pl.col("total_ns") / pl.col("launches")
    rows = found.frame.filter(
        pl.col("fraction") < _REACHED,
        took >= _LONG_NS,
        ~pl.col("binding").is_in(("pcie", "link")),
        pl.col("above_ns") >= _SCALE.least * found.total_ns,
    )
    for row in rows.head(_SHOWN).iter_rows(named=True):
        yield _finding(found, row)


def _finding(found: "Roofline", row: dict[str, Any]) -> Finding:
    share = row["above_ns"] / found.total_ns
    what = say_op(row)
    calls = format_counted(row["calls"], "call")
    verb = "reaches" if row["calls"] == 1 else "reach"
    device = found.device.name if found.device else ""
    total, bound, above = (format_duration(row[name]) for name in ("total_ns", "bound_ns", "above_ns"))
    flops, read, written = (format_count(row[name]) for name in ("flops", "read_bytes", "write_bytes"))
    took = f"Time: {total}. Bound, by {row['binding']}: {bound}."
    return Finding(
        rule=RULE.name,
        severity=_SCALE.severity(share) or "low",
        title=f"{calls} of {what} {verb} {format_share(row['fraction'])} of what the {device} allows",
        evidence=(
            f"{took} The {above} above it are {format_share(share)} of the device time.",
            f"By its shapes one call must do {flops} FLOPs, read {read} bytes and write {written}.",
            *_inferred(row),
            *(f"Assumed: {each}." for each in row["assumes"]),
        ),
        size_ns=row["total_ns"],
        share=row["total_ns"] / found.total_ns,
        next=f"{_next(row)} All ops: inferometer roofline.",
    )


def _next(row: dict[str, Any]) -> str:
    """The catalogue's operator that it is, or the op by itself where PyTorch registers it."""
    if row["operator"] is not None:
        return (
            "Write its shapes (inferometer roofline --to-bench shapes.jsonl), and time other kernels on them: "
            f"inferometer bench {row['operator']} --shapes shapes.jsonl."
        )
    if row["op"].startswith("aten::"):
        return (
            f"Time it by itself (inferometer replay --op {row['number']}), then in another library, type or layout; "
            "or let one launch do more."
        )
    return "Try another kernel for these shapes, or let one launch do more."


def _inferred(row: dict[str, Any]) -> Iterator[str]:
    if count := row["inferred_launches"]:
        of = f"{format_count(count)} of the {format_count(row['launches'])} launches"
        verb = "is" if count == 1 else "are"
        yield f"{of} {verb} known by launches that are alike: the calls aren't in the file."


RULE = Rule("above_the_bound", _find, (_SCALE,))
