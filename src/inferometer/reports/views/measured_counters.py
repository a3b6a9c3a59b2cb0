"""What counters measured of the ops of a trace, next to what is modelled, and which launches have counters."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeGuard

import polars as pl

from inferometer.analyses.counters.join import JoinAccount
from inferometer.analyses.counters.kernels import KernelCounters
from inferometer.reports.views.layout import Field, Section, say_rest
from inferometer.units import format_count, format_duration, format_share

if TYPE_CHECKING:  # `kernels` imports this, and models nothing
    from inferometer.analyses.roofline.table import Roofline

OP_OR_KERNEL: Final = Field("what", "Op or kernel", "kernel", kernel_where="is_kernel")
"""The field for rows with the columns of `op_or_kernel`."""
_FIELDS: Final = (
    Field("total_ns", "Total Time", "ns", spare=1),
    Field("counted_launches", "Launches", "count", spare=3),
    Field("size_text", "Of Size", "text"),
    Field("measured_dram_bytes", "DRAM", "bytes"),
    Field("dram_ratio", "Of Modelled", "ratio"),
    Field("l2_hit_rate", "L2 Hits", "share"),
    Field("measured_occupancy", "Occupancy", "share"),
    Field("mhz", "MHz", "count"),
    Field("clock_bound_ns", "Bound at That", "ns", spare=2),
    Field("measured_fp32_flops", "FP32 FLOPs", "ratio", spare=6),
    Field("measured_fp64_flops", "FP64 FLOPs", "ratio", spare=7),
    Field("measured_tensor_flops", "Tensor FLOPs", "ratio", spare=5),
    Field("stall_text", "Warps Spend Cycles On", "text", spare=4),
    OP_OR_KERNEL,
)
_LEFT: Final = (
    Field("total_ns", "Total Time", "ns"),
    Field("launches", "Launches", "count"),
    Field("kernel", "Kernel", "kernel"),
    Field("reason", "Why", "sentence"),
)
_OF_KERNELS: Final = frozenset(
    {
        "total_ns",
        "counted_launches",
        "size_text",
        "measured_dram_bytes",
        "l2_hit_rate",
        "measured_occupancy",
        "mhz",
        "stall_text",
    }
)
_KERNEL_FIELDS: Final = (
    *(field for field in _FIELDS if field.column in _OF_KERNELS),
    Field("kernel", "Kernel", "kernel"),
)
_ALL: Final = 1.0005  # printed as 100.1 % and more
_TITLE: Final = "Counters, mean of a launch"
_ROWS: Final = 20
_REASONS: Final = 10
_NEVER_TIMES: Final = (
    "The kernels of the counters' file ran alone, as a rule with clocks locked and caches flushed: their times aren't "
    "used, and what of their data was in L2 may differ from the trace."
)


def op_or_kernel() -> tuple[pl.Expr, pl.Expr]:
    """What a row of the roofline is about: its op, else its kernel; and whether it is a kernel."""
    return pl.coalesce("op", "kernel").alias("what"), pl.col("op").is_null().alias("is_kernel")


def counter_sections(found: "Roofline") -> Iterator[Section]:
    """What was measured, the longest ops first, and which launches have no counters."""
    if found.counters is None:
        return
    rows = (
        found.frame.filter(pl.col("counted_launches") > 0)
        .sort("total_ns", descending=True, maintain_order=True)
        .with_columns(
            *op_or_kernel(),
            (pl.col("measured_clock_hz") / 1e6).round().cast(pl.Int64).alias("mhz"),
            pl.col("measured_dram_bytes").round().cast(pl.Int64),
            _size(),
        )
    )
    rows = rows.with_columns(shares_as_text(rows["reasons"], "reason", "stall_text"))
    fields = [field for field in _FIELDS if _is_always(field) or rows[field.column].count()]
    if rows.height:
        yield Section(_TITLE, fields, rows.head(_ROWS), tuple(_notes(rows)))
    yield from _without(found.counters)


def kernel_counter_sections(found: KernelCounters) -> Iterator[Section]:
    """The same of kernels as the table of kernels names them."""
    rows = found.frame.with_columns(
        (pl.col("measured_clock_hz") / 1e6).round().cast(pl.Int64).alias("mhz"),
        pl.col("measured_dram_bytes").round().cast(pl.Int64),
        _size(),
        shares_as_text(found.frame["reasons"], "reason", "stall_text"),
    )
    fields = [field for field in _KERNEL_FIELDS if rows[field.column].count()]
    if rows.height:
        yield Section(_TITLE, fields, rows.head(_ROWS), tuple(_notes(rows)))
    yield from _without(found.account)


def _size() -> pl.Expr:
    """`unknown` where counters may be of launches of another size."""
    return pl.when(pl.col("launches_by_name") > 0).then(pl.lit("unknown")).alias("size_text")


def _is_always(field: Field) -> bool:
    return field.column != "size_text" and field.spare in (0, 1, 3)


def _notes(rows: pl.DataFrame) -> Iterator[str]:
    yield from say_rest(_ROWS, rows.height)
    if rows["size_text"].count():
        yield "Of Size: unknown where a file lacks grids or blocks, so that the counters may be of another size."
    yield _NEVER_TIMES
    yield from say_above_all(rows.head(_ROWS), {"l2_hit_rate": "L2 Hits", "measured_occupancy": "Occupancy"})


def say_above_all(rows: pl.DataFrame, shares: Mapping[str, str]) -> Iterator[str]:
    """What to think of shares above 1 as Nsight Compute prints them; `shares`: columns and their headings."""
    above = {heading: rows[name].max() for name, heading in shares.items()}
    told = [f"{heading} of up to {format_share(most)}" for heading, most in above.items() if _is_above(most)]
    if told:
        yield (
            f"{', '.join(told)}: more than there is. A profiler may read the parts of a share in several passes over a "
            "kernel, which differ a little: take it for 100 %."
        )


def _is_above(share: object) -> TypeGuard[float]:
    return isinstance(share, float) and share > _ALL


def _without(found: JoinAccount) -> Iterator[Section]:
    left = found.unjoined
    if left.height:
        yield Section("Without counters", _LEFT, left.head(_REASONS), tuple(say_rest(_REASONS, left.height)))


def shares_as_text(shares: pl.Series, name: str, column: str, *, most: int = 2) -> pl.Series:
    """The largest of each list of names with shares: `long_scoreboard 71 %, wait 8 %`; null where there is none."""
    texts = [
        ", ".join(f"{each[name]} {format_share(each['share'])}" for each in found[:most]) if found else None
        for found in shares.to_list()
    ]
    return pl.Series(column, texts, dtype=pl.String)


def say_counters(found: JoinAccount) -> Iterator[str]:
    """What joined, and what of the counters joined none."""
    share = f" ({format_share(found.joined_ns / found.total_ns)})" if found.total_ns else ""
    yield (
        f"{format_count(found.joined)} of {format_count(found.launches)} launches have counters: "
        f"{format_duration(found.joined_ns)} of {format_duration(found.total_ns)}{share}."
    )
    if found.by_name:
        yield (
            f"{format_count(found.by_name)} of them joined by name alone: a file lacks grids or blocks, so what was "
            "counted may be of launches of another size."
        )
    unused = found.counted - found.used
    if unused:
        yield (
            f"{format_count(unused)} of {format_count(found.counted)} counted launches belong to none of the trace "
            "(`counters.unused` of --json says why)."
        )
