"""Long kernels that can't fill the GPU: fewer blocks than multiprocessors, or few warps on each.

Fires on a kernel of 10 μs or more (median) that has fewer blocks than 40 % of the device's multiprocessors (half of
them can still ask for most of the memory's bandwidth), or, of a kernel that streams data (element-wise work, norms,
activations, copies, reductions), an occupancy of 15 % or less as the profiler estimates it. The device's count comes
from the trace, or else from our file of the device. Without both there is no answer.

Not counted, since it is by design: persistent kernels, whose grid is the number of multiprocessors; collectives,
which leave room for others; preparation of attention; sampling, softmax, scans and the like, of which a row is a
block's work, if they have 16 blocks or take less than 100 μs; and the occupancy of matrix products and attention,
whose large tiles leave room for few warps.

Multiprocessors without a block have nothing to do, and that is counted. Few warps on each prove nothing: a kernel may
reach the memory's bandwidth with them; the finding says so. The profiler's occupancy is its own estimate, from grid,
block and resources.

Severity is their share of all GPU time, times the part of the multiprocessors without a block or of the warps that
could be resident and aren't: from 3 % `low`, from 10 % `medium`, from 25 % `high`. In healthy traces, whose products
and attention are split to fill the device, none is left.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import polars as pl

from inferometer.findings.finding import Finding, Scale
from inferometer.findings.kernel_rows import ATTENTION, PRODUCTS
from inferometer.findings.rule import Evidence, Rule
from inferometer.names import decode
from inferometer.units import format_duration, format_share

if TYPE_CHECKING:
    from inferometer.findings.launch_evidence import LaunchEvidence

_SCALE = Scale(low=0.03, medium=0.10, high=0.25)
_LONG_NS = 10_000  # below, starting and ending is most of a kernel's time
_FEW_BLOCKS = 0.40
_FEW_WARPS = 0.15
_LEAST_SHARE = 0.005  # of all GPU time, of one kernel
_SHOWN = 3
_BY_DESIGN = frozenset({"collective", "attention_metadata", "memory"})
_BY_ROW = frozenset({"sampling", "softmax", "scan_sort", "random", "moe_routing"})
_ROWS, _SHORT_NS = 16, 100_000  # what a kernel of a block a row may have: so many rows, or else so short a time
_STREAMS = frozenset({"elementwise", "norm", "activation", "copy", "reduction", "gather_scatter", "quantize", "rope"})
_LIKE = ("rank", "device", "kernel", "blocks", "threads")


def _find(evidence: Evidence) -> Iterator[Finding]:
    launches = evidence.launches
    if launches is None or not launches.total_ns:
        return
    found = _underused(launches)
    idle_ns = float((found["total_ns"] * (1 - found["used"])).sum())
    severity = _SCALE.severity(idle_ns / launches.total_ns)
    if severity is None:
        return
    size_ns = int(found["total_ns"].sum())
    share = size_ns / launches.total_ns
    first = next(found.iter_rows(named=True))
    name, place = decode(first["kernel"]).short_name, _place(launches, first)
    few = "fewer blocks than multiprocessors" if first["few"] else "few warps"
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"long kernels of few blocks or warps take {format_share(share)} of the GPU time: {name} has {few}",
        evidence=(
            *(_sentence(launches, row) for row in found.head(_SHOWN).iter_rows(named=True)),
            *_together(launches, found),
        ),
        size_ns=size_ns,
        share=share,
        next=_advice(first, place),
    )


def _together(launches: "LaunchEvidence", found: pl.DataFrame) -> Iterator[str]:
    """All of them, and what of the multiprocessors' time had no block; what few warps cost isn't known."""
    size_ns = int(found["total_ns"].sum())
    yield f"Together {format_duration(size_ns)}{launches.a_step(size_ns)}."
    few = found.filter("few")
    if few.height:
        without = float((few["total_ns"] * (1 - few["used"])).sum()) / launches.total_ns
        yield f"Multiprocessors that have no block meanwhile stand for {format_share(without)} of the GPU time."
    if few.height < found.height:
        yield "Whether few warps slow a kernel down, the trace doesn't tell: they may do for the memory's bandwidth."


def _underused(launches: "LaunchEvidence") -> pl.DataFrame:
    """Kernels with `used`, the part of the GPU that has work, the most idle time first."""
    kernels = _kernels(launches)
    if kernels.is_empty():
        return kernels.with_columns(pl.lit(1.0).alias("used"), pl.lit(None, dtype=pl.Int64).alias("units"))
    kernels = kernels.filter(
        pl.col("median_ns") >= _LONG_NS, pl.col("total_ns") >= _LEAST_SHARE * launches.total_ns
    ).with_columns(pl.col("kernel").cast(pl.String))
    families = [decode(name).family for name in kernels["kernel"]]
    known = kernels.with_columns(pl.Series("family", families, dtype=pl.String), _units(launches, kernels))
    filled = pl.col("blocks") / pl.col("units")
    by_row = pl.col("family").is_in(sorted(_BY_ROW)) & ((pl.col("blocks") >= _ROWS) | (pl.col("median_ns") < _SHORT_NS))
    counts = ~pl.col("family").is_in(sorted(_BY_DESIGN)) & ~by_row
    few_blocks = (filled < _FEW_BLOCKS).fill_null(value=False)
    few_warps = ((pl.col("occupancy") <= _FEW_WARPS) & pl.col("family").is_in(sorted(_STREAMS))).fill_null(value=False)
    used = pl.when(few_blocks).then(filled).otherwise("occupancy").clip(0.0, 1.0)
    marked = known.filter(counts, few_blocks | few_warps).with_columns(used.alias("used"), few_blocks.alias("few"))
    return marked.sort(pl.col("total_ns") * (1 - pl.col("used")), "kernel", "blocks", descending=[True, False, False])


def _kernels(launches: "LaunchEvidence") -> pl.DataFrame:
    """One row a kernel, grid size and device: `count`, `total_ns`, `median_ns`, `occupancy`."""
    launched = launches.attribution.launches
    launched = launched.filter(~pl.col("is_captured")) if launched["is_captured"].any() else launched
    occupancy = launches.trace.launches.select("occupancy").collect()["occupancy"]  # in the same order
    worth = (launched["kind"] == "kernel") & launched["kernel"].is_in(_large(launches))
    chosen = launched.select(*_LIKE, "dur_ns").hstack([occupancy]).filter(worth & (launched["blocks"] > 0))
    dur = pl.col("dur_ns")
    return chosen.group_by(_LIKE).agg(
        pl.len().cast(pl.Int64).alias("count"),
        dur.sum().alias("total_ns"),
        dur.median().alias("median_ns"),
        pl.col("occupancy").mean(),
    )


def _large(launches: "LaunchEvidence") -> list[str]:
    """Kernels of which some grid size may be worth a finding: with time enough, and a launch that is long enough."""
    sums = launches.work.group_by("kernel").agg(pl.col("dur_ns").sum().alias("total_ns"), pl.col("dur_ns").max())
    large = (pl.col("dur_ns") >= _LONG_NS) & (pl.col("total_ns") >= _LEAST_SHARE * launches.total_ns)
    return sums.filter(large)["kernel"].cast(pl.String).to_list()


def _units(launches: "LaunchEvidence", kernels: pl.DataFrame) -> pl.Series:
    """Multiprocessors of each row's device; null where they aren't known."""
    from inferometer.hardware.known import find_device

    counts: dict[tuple[int | None, str], int] = {}
    for device in launches.trace.facts.devices:
        units = device.multiprocessors
        if units is None and device.name is not None:
            known = find_device(device.name, memory_bytes=device.memory_bytes)
            quantity = None if known is None else known.multiprocessors
            units = None if quantity is None else int(quantity.value)
        if units:
            counts[device.rank, device.device] = units
    found = [
        counts.get((rank, device), counts.get((None, device)))
        for rank, device in zip(kernels["rank"], kernels["device"].cast(pl.String), strict=True)
    ]
    return pl.Series("units", found, dtype=pl.Int64)


def _sentence(launches: "LaunchEvidence", row: dict[str, Any]) -> str:
    name = decode(str(row["kernel"])).short_name
    if row["few"]:
        blocks = "1 block" if row["blocks"] == 1 else f"{row['blocks']:,} blocks"
        why = f"{blocks} for {row['units']:,} multiprocessors"
    else:
        why = f"{format_share(row['occupancy'])} occupancy by the profiler's estimate"
    threads = "1 thread" if row["threads"] == 1 else f"{row['threads']:,} threads"
    times = "once" if row["count"] == 1 else f"{row['count']:,} launches, median {format_duration(row['median_ns'])}"
    size = f"{threads} in a block, {times}, {format_duration(row['total_ns'])} in all"
    return f"{name}{_place(launches, row)}: {why}, {size}."


def _place(launches: "LaunchEvidence", row: dict[str, Any]) -> str:
    """` in …`: where most launches of this kernel come from; empty where that isn't known."""
    nodes = launches.work.filter(pl.col("kernel") == str(row["kernel"]))["node"]
    usual = nodes.mode()
    return launches.origins.said_of(usual.sort()[0]) if len(usual) else ""


def _advice(row: dict[str, Any], place: str) -> str:
    if not row["few"]:
        return (
            f"Compare the bytes that it moves with the memory's bandwidth{place}; if it is far below, give a block "
            "fewer registers, less shared memory or more threads."
        )
    if row["family"] in ATTENTION:
        return f"Split the KV cache over more blocks (split-KV, flash decoding){place}."
    if row["family"] in PRODUCTS:
        return f"Split the sum over more blocks (split-K, stream-K), or take a smaller tile{place}."
    return f"Spread the work over more blocks{place}, if it has as much."


RULE = Rule("low_occupancy", _find)
