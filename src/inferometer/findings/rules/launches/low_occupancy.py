"""Long kernels that can't fill the GPU: fewer blocks than multiprocessors, or few warps on each.

Fires on a kernel of 10 μs or more (median) that has fewer blocks than 40 % of the device's multiprocessors (half of
them can still ask for most of the memory's bandwidth), or, of a kernel that streams data (element-wise work, norms,
activations, copies, reductions), an occupancy of 15 % or less as the profiler estimates it. The device's count comes
from the trace, or else from our file of the device; of a device that the trace doesn't describe, from the others if
these are all alike (visible devices are numbered anew). Without these there is no answer.

Not counted, since it is by design: persistent kernels, whose grid is the number of multiprocessors; collectives,
which leave room for others; preparation of attention; kernels that only wait (`torch.cuda._sleep`); sampling, softmax,
scans and the like, of which a row is a block's work, if they have 16 blocks or take less than 100 μs; and the occupancy
of matrix products and attention, whose large tiles leave room for few warps.

Severity is their share of all GPU time, times the part of the multiprocessors that none of their blocks is on: from
3 % `low`, from 10 % `medium`, from 25 % `high`. Few warps on each prove nothing: a kernel may reach the memory's
bandwidth with them. So these are `info`, from 3 % of all GPU time. In healthy traces, whose products and attention are
split to fill the device, none is left.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from inferometer.analyses.batches import batches
from inferometer.analyses.launched_by.chain_tree import ROOT
from inferometer.findings.evidence.kernel_rows import ATTENTION, PRODUCTS
from inferometer.findings.finding import Finding, Scale, Severity
from inferometer.findings.rule import Evidence, Rule
from inferometer.names import decode
from inferometer.trace.lean import aggregate, collect_lean, gather
from inferometer.units import format_counted, format_duration, format_share

if TYPE_CHECKING:
    from inferometer.findings.evidence.launch_evidence import LaunchEvidence

_SCALE = Scale("low_occupancy", low=0.03, medium=0.10, high=0.25)
_LONG_NS = 10_000  # below, starting and ending is most of a kernel's time
_FEW_BLOCKS = 0.40
_FEW_WARPS = 0.15
_LEAST_SHARE = 0.005  # of all GPU time, of one kernel
_SHOWN = 3
_OF_A_BLOCK = "give a block fewer registers, less shared memory or more threads"
_BY_DESIGN = frozenset({"collective", "attention_metadata", "memory"})
_SLEEPS = "spin"  # the short name of PyTorch's
_BY_ROW = frozenset({"sampling", "softmax", "scan_sort", "random", "moe_routing"})
_ROWS, _SHORT_NS = 16, 100_000  # what a kernel of a block a row may have: so many rows, or else so short a time
_STREAMS = frozenset({"elementwise", "norm", "activation", "copy", "reduction", "gather_scatter", "quantize", "rope"})
_SIZE = pl.struct("blocks", "threads").rank("dense").cast(pl.UInt32).alias("size")
_MEASURE = "Compare the bytes that it moves with the memory's bandwidth{}; if it is far below, {}."


def _find(evidence: Evidence) -> Iterator[Finding]:
    launches = evidence.launches
    if launches is None or not launches.total_ns:
        return
    found = _underused(launches)
    without_ns = float((found["total_ns"] * found["without"]).sum())
    size_ns = int(found["total_ns"].sum())
    share = size_ns / launches.total_ns
    few_warps_ns = found.filter(~pl.col("few"))["total_ns"].sum()
    severity: Severity | None = _SCALE.severity(without_ns / launches.total_ns)
    if severity is None and few_warps_ns < _SCALE.least * launches.total_ns:
        return
    first = found.row(0, named=True)
    few = "fewer blocks than multiprocessors" if first["without"] else "few warps"
    name = decode(first["kernel"]).short_name
    yield Finding(
        rule=RULE.name,
        severity=severity or "info",
        title=f"long kernels of few blocks or warps take {format_share(share)} of the GPU time: {name} has {few}",
        evidence=(
            *(_sentence(launches, row) for row in found.head(_SHOWN).iter_rows(named=True)),
            f"Together {format_duration(size_ns)}{launches.a_step(size_ns)}.",
            *_cost(found, without_ns / launches.total_ns),
        ),
        size_ns=size_ns,
        share=share,
        next=_advice(first, _place(launches, first)),
    )


def _cost(found: pl.DataFrame, without: float) -> Iterator[str]:
    """What of the multiprocessors' time had no block; what few warps cost isn't known."""
    if without:
        yield (
            f"While they run, multiprocessors without any of their blocks stand for {format_share(without)} of the GPU "
            "time, unless another stream uses them."
        )
    if not found["few"].all():
        yield "Whether few warps slow a kernel down, the trace doesn't tell: few may reach the memory's rate."


def _underused(launches: "LaunchEvidence") -> pl.DataFrame:
    """Kernels with few blocks (`few`) or few warps, the most time without blocks first.

    `without`: part of the multiprocessors that none of a kernel's blocks is on, at least; 0 where their number isn't
    known.
    """
    kernels = _kernels(launches).filter(
        pl.col("median_ns") >= _LONG_NS, pl.col("total_ns") >= _LEAST_SHARE * launches.total_ns
    )
    kernels = kernels.with_columns(pl.col("kernel").cast(pl.String))
    kernels = kernels.filter(
        pl.Series([decode(name).short_name != _SLEEPS for name in kernels["kernel"]], dtype=pl.Boolean)
    )
    families = [decode(name).family for name in kernels["kernel"]]
    known = kernels.with_columns(pl.Series("family", families, dtype=pl.String), _units(launches, kernels))
    filled = pl.col("blocks") / pl.col("units")
    by_row = pl.col("family").is_in(sorted(_BY_ROW)) & ((pl.col("blocks") >= _ROWS) | (pl.col("median_ns") < _SHORT_NS))
    counts = ~pl.col("family").is_in(sorted(_BY_DESIGN)) & ~by_row
    few_blocks = (filled < _FEW_BLOCKS).fill_null(value=False)
    few_warps = ((pl.col("occupancy") <= _FEW_WARPS) & pl.col("family").is_in(sorted(_STREAMS))).fill_null(value=False)
    without = (1 - filled).clip(lower_bound=0.0).fill_null(0.0)
    marked = known.filter(counts, few_blocks | few_warps).with_columns(
        without.alias("without"), few_blocks.alias("few")
    )
    lost = pl.col("total_ns") * pl.col("without")
    return marked.sort(lost, "total_ns", "kernel", "blocks", descending=[True, True, False, False])


def _kernels(launches: "LaunchEvidence") -> pl.DataFrame:
    """One row per kernel, grid size and device: `count`, `total_ns`, `median_ns`, `occupancy`."""
    sized = launches.shapes.filter(pl.col("blocks") > 0)
    launched = launches.work.lazy().filter(_is_kernel(), pl.col("kernel").is_in(_large(launches)))
    chosen = launched.select("launch", "rank", "device", "kernel", "shape_hash", "dur_ns").collect()
    size = _sizes(chosen["shape_hash"], sized.select("shape_hash", _SIZE).sort("shape_hash"))
    occupancy = gather(collect_lean(launches.trace.launches, ["occupancy"]), chosen["launch"])
    known = pl.concat([chosen.drop("shape_hash", "launch"), size.to_frame(), occupancy], how="horizontal")
    dur = pl.col("dur_ns")
    kernels = aggregate(
        known,
        ["rank", "device", "kernel", "size"],
        pl.len().cast(pl.Int64).alias("count"),
        dur.sum().alias("total_ns"),
        dur.median().alias("median_ns"),
        pl.col("occupancy").mean(),
    )
    return kernels.join(sized.select("blocks", "threads", _SIZE).unique(), on="size").drop("size")


def _sizes(hashes: pl.Series, known: pl.DataFrame) -> pl.Series:
    """`size` of each of these, null where it isn't known; `known` has few, in order."""
    hash_of = np.append(known["shape_hash"].to_numpy(), np.uint64(0))  # the last stands for all others
    values, row = hashes.to_numpy(), np.empty(hashes.len(), dtype=np.int32)
    for part in batches(len(row)):
        at = np.searchsorted(hash_of[:-1], values[part])
        row[part] = np.where(hash_of[at] == values[part], at, known.height)
    return known["size"].extend_constant(None, 1).gather(row)


def _place(launches: "LaunchEvidence", row: dict[str, Any]) -> str:
    """Where the launches of a row of `_kernels` come from."""
    like = (pl.col(name).eq_missing(pl.lit(row[name])) for name in ("rank", "device", "kernel"))
    alike = launches.shapes.filter(pl.col("blocks") == row["blocks"], pl.col("threads") == row["threads"])
    node = pl.when(pl.col("how") != "graph_launch").then("node").otherwise(ROOT).alias("node")
    own = (
        launches.work.lazy()
        .filter(_is_kernel(), *like)
        .filter(pl.col("shape_hash").is_in(alike["shape_hash"].implode()))
    )
    return launches.origins.describe_nodes(own.select("launch", node).sort("launch").collect()["node"].to_list())


def _is_kernel() -> pl.Expr:
    return pl.col("kind") == "kernel"


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
    alike = {rank: {units for (of, _), units in counts.items() if of == rank} for rank, _ in counts}
    others = {rank: next(iter(units)) for rank, units in alike.items() if len(units) == 1}
    found = [
        counts.get((rank, device), counts.get((None, device), others.get(rank, others.get(None))))
        for rank, device in zip(kernels["rank"], kernels["device"].cast(pl.String), strict=True)
    ]
    return pl.Series("units", found, dtype=pl.Int64)


def _sentence(launches: "LaunchEvidence", row: dict[str, Any]) -> str:
    name, place = decode(str(row["kernel"])).short_name, _place(launches, row)
    sentences = []
    if row["without"]:
        blocks = format_counted(row["blocks"], "block")
        sentences.append(f"{blocks} for {row['units']:,} multiprocessors")
    if not row["few"]:
        sentences.append(f"{100 * row['occupancy']:.0f} % occupancy by the profiler's estimate")
    threads = format_counted(row["threads"], "thread")
    times = "once" if row["count"] == 1 else f"{row['count']:,} launches, median {format_duration(row['median_ns'])}"
    why = ", ".join([*sentences, f"{threads} in a block"])
    return f"{name}{place}: {why}, {times}, {format_duration(row['total_ns'])} in all."


def _advice(row: dict[str, Any], place: str) -> str:
    if not row["few"]:
        more = "spread the work over more blocks" if row["without"] else _OF_A_BLOCK
        return _MEASURE.format(place, more)
    if row["family"] in ATTENTION:
        return (
            f"Spread attention over more blocks{place}: split keys and values (flash decoding) where a sequence asks "
            "one token per step, else take smaller tiles of queries."
        )
    if row["family"] == "conv":
        return f"Let the library time its kernels for these shapes{place} (torch.backends.cudnn.benchmark = True)."
    if row["family"] in PRODUCTS:
        return f"Split the sum over more blocks (split-K, stream-K), or take a smaller tile{place}."
    return f"Spread the work over more blocks{place}, if there is enough of it."


RULE = Rule("low_occupancy", _find, (_SCALE,))
