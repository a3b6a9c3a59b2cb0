"""The same work over and over: loops of equal launches, and what every layer of a step does again.

- Loops (`evidence.launch_loops`): up to three kernels, eight times or more in a row. The size is their wall time, gaps
  included. Whether a turn needs the one before, a trace doesn't say. If none does, one batched launch saves the gaps,
  and of the rest all but one turn at most. Severity is that bound, as a share of the wall time of all devices: from
  0.5 % `low`, from 5 % `medium`, from 20 % `high`. A trace of which 90 % is one such loop is a benchmark of a kernel,
  and is passed over.
- Work of the batch in every layer: kernels that prepare attention, or compute with whole numbers (positions, lengths,
  indices), of which no more than one attention kernel lies between one and the next. All layers of a step could share
  one result. Severity is the share of all GPU time: from 1 % `low`, from 5 % `medium`, from 20 % `high`. With experts
  in the model, whole numbers route tokens, and only what prepares attention counts.

In healthy runs nothing repeats in loops, and what layers do again (FlashAttention 3 prepares each of its own calls)
stays far below 1 %.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from inferometer.findings.evidence.kernel_rows import ATTENTION, WHOLE_NUMBERS, KernelRows
from inferometer.findings.evidence.launch_loops import find_loops
from inferometer.findings.finding import Finding, Scale
from inferometer.findings.rule import Evidence, Rule
from inferometer.names import KernelName
from inferometer.units import format_counted, format_duration, format_share

if TYPE_CHECKING:
    from inferometer.findings.evidence.launch_evidence import LaunchEvidence

_LOOPS = Scale("repeated_work.loops", low=0.005, medium=0.05, high=0.20)
_LAYERS = Scale("repeated_work.layers", low=0.01, medium=0.05, high=0.20)
_BENCHMARK = 0.90
_SHOWN = 3
_TURNS = ("first", "launches", "length")
_ON_NUMBERS = frozenset({"elementwise", "copy", "scan_sort", "reduction", "gather_scatter", "other"})
_TIMES = 4
_A_STEP = 1.5  # attention kernels per step from which on there are several layers


def _find(evidence: Evidence) -> Iterator[Finding]:
    launches = evidence.launches
    if launches is None or not launches.total_ns:
        return
    rows = launches.rows
    yield from _in_loops(launches, rows)
    yield from _in_layers(launches, rows)


def _in_loops(launches: "LaunchEvidence", rows: KernelRows) -> Iterator[Finding]:
    loops = find_loops(rows)
    devices = int(rows.device.max(initial=0)) + 1
    wall_ns = launches.window_ns * devices
    size_ns, turn_ns, gaps_ns = (int(loops[name].sum()) for name in ("wall_ns", "turn_ns", "gaps_ns"))
    saved_ns = max(0, size_ns - turn_ns)
    severity = _LOOPS.severity(saved_ns / wall_ns) if wall_ns else None
    if severity is None or int(loops["launches"].sum()) >= _BENCHMARK * len(rows.kernel):
        return
    kinds = _kinds(launches, rows, loops)
    of = "the wall time" if devices == 1 else f"the wall time of {devices:,} devices"
    where, turns = launches.origins, loops["turns"].sort()
    between = " to ".join(f"{each:,}" for each in dict.fromkeys((turns[0], turns[-1])))
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"loops of equal launches take {format_share(size_ns / wall_ns)} of {of}",
        evidence=(
            (
                f"{loops.height:,} loops of {between} turns, {int(loops['launches'].sum()):,} launches in all, take "
                f"{format_duration(size_ns)}{launches.a_step(size_ns)}; {format_duration(gaps_ns)} of that is gaps "
                "between the launches."
            ),
            *(
                _sentence(rows, where.describe(kind["place"]), kind)
                for kind in kinds.head(_SHOWN).iter_rows(named=True)
            ),
            (
                "Whether a turn needs the one before it, the trace doesn't tell. If none does, one batched launch for "
                f"each loop saves the gaps, and at most {format_duration(saved_ns)}, "
                f"{format_share(saved_ns / wall_ns)} of {of}, since it takes at least as long as one turn."
            ),
        ),
        size_ns=size_ns,
        share=size_ns / wall_ns,
        next=(
            f"See whether the turns are independent{where.describe(kinds['place'][0])}; then one batched launch "
            "can replace the loop."
        ),
    )


def _kinds(launches: "LaunchEvidence", rows: KernelRows, loops: pl.DataFrame) -> pl.DataFrame:
    """One row per kernel that begins the turns of loops, and the place of all of these: the most time first."""
    codes, nobody = launches.origins.codes(rows.node), len(launches.origins.texts) - 1
    begins = [codes[first : first + n : length] for first, n, length in loops.select(_TURNS).iter_rows()]
    place = [int(each[0]) if (each == each[0]).all() else nobody for each in begins]
    named = loops.with_columns(pl.Series("place", place, dtype=pl.Int64))
    sums = named.group_by("kernel", "place", "length").agg(
        pl.len().cast(pl.Int64).alias("loops"), pl.col("turns").median(), pl.col("wall_ns").sum()
    )
    return sums.sort("wall_ns", "kernel", "place", "length", descending=[True, False, False, False])


def _sentence(rows: KernelRows, place: str, kind: dict[str, int]) -> str:
    others = {1: "", 2: " and the kernel after it", 3: " and the two kernels after it"}[kind["length"]]
    loops = format_counted(kind["loops"], "loop")
    return (
        f"{rows.known[kind['kernel']].short_name}{others}{place}: {loops} of {kind['turns']:,g} turns"
        f"{' (median)' if kind['loops'] > 1 else ''}, {format_duration(kind['wall_ns'])}."
    )


def _in_layers(launches: "LaunchEvidence", rows: KernelRows) -> Iterator[Finding]:
    again = _again(launches, rows)
    size_ns = int(again["total_ns"].sum())
    share = size_ns / launches.total_ns
    severity = _LAYERS.severity(share)
    if severity is None:
        return
    count, first = int(again["count"].sum()), again.row(0, named=True)
    place = launches.origins.describe_node(first["node"])
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title="kernels that prepare attention or compute with whole numbers run in every layer: "
        f"{format_share(share)} of the GPU time",
        evidence=(
            (
                f"{count:,} such launches, one or more for each attention kernel, take {format_duration(size_ns)}"
                f"{launches.a_step(size_ns)}, besides the gaps around them."
            ),
            *(
                (
                    f"{rows.known[row['kernel']].short_name}{launches.origins.describe_node(row['node'])}: "
                    f"{row['count']:,} launches, {format_duration(row['total_ns'])}."
                )
                for row in again.head(_SHOWN).iter_rows(named=True)
            ),
        ),
        size_ns=size_ns,
        share=share,
        next=f"See whether it differs from layer to layer{place}; if not, compute it once a step, before the layers.",
    )


def _again(launches: "LaunchEvidence", rows: KernelRows) -> pl.DataFrame:
    """One row per kernel that runs in every layer: `count`, `total_ns`, `node` of one launch; the most time first."""
    attention = rows.of_family(*ATTENTION)
    has_experts = bool(rows.of_family("moe_routing", "grouped_gemm").any())
    chosen = np.flatnonzero(rows.each(lambda _, known: _is_of_batch(known, has_experts=has_experts)))
    steps = len(launches.step_starts_ns) if len(chosen) and attention.any() else 0
    if not attention.any() or attention.sum() < _A_STEP * steps:
        chosen = chosen[:0]
    frame = pl.DataFrame(
        {
            "kernel": rows.kernel[chosen],
            "dur_ns": rows.dur_ns[chosen],
            "node": rows.node[chosen],
            "seen": np.cumsum(attention)[chosen],
        }
    )
    between = pl.col("seen").diff()
    kinds = frame.group_by("kernel").agg(
        pl.len().cast(pl.Int64).alias("count"),
        pl.col("dur_ns").sum().alias("total_ns"),
        pl.col("node").mode().sort().first(),
        between.filter(between > 0).median().alias("between"),
    )
    in_layers = (pl.col("count") >= _TIMES) & (pl.col("between") <= 1)
    return kinds.filter(in_layers.fill_null(value=False)).sort("total_ns", "kernel", descending=[True, False])


def _is_of_batch(known: KernelName, *, has_experts: bool) -> bool:
    """Whether a kernel computes what doesn't depend on the layer: sizes, positions, indices."""
    if known.family == "attention_metadata":
        return True
    return not has_experts and known.family in _ON_NUMBERS and known.dtype in WHOLE_NUMBERS


RULE = Rule("repeated_work", _find, (_LOOPS, _LAYERS))
