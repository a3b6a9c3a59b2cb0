"""What launches that communicate exchange: which collective, of how many bytes, of what type, in which group.

A kernel's name says what it does. What its source records of it (the table `collectives`) says it where the name does
not: of RCCL's generic kernel, and of send and receive, of which all-to-all is made.

The *message* is the larger of what a rank puts in and gets out, in bytes: what NCCL's own tests call the size. Message
bytes over the kernel's duration, waiting for other ranks included, is the *algorithm bandwidth* that was reached.
Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md. Sizes of types: PyTorch, c10/core/ScalarType.h.
"""

import polars as pl

from inferometer.analyses.timeline.work import Work
from inferometer.names.communication import read_collective
from inferometer.trace.tables import COLLECTIVE_KEY, COLLECTIVES
from inferometer.trace.trace import Trace

ABOUT = ("dtype", "message_bytes", "group", "group_size")
"""What `work_collectives` adds to launches, null where it isn't recorded."""

SIDES = ("recorded_as", "in_bytes", "out_bytes", "splits_in", "splits_out", "sequence_number")
"""What else it adds: the collective as the record has it, and what a rank puts in and gets out."""

BY_NAME_ALONE = ("other", "send_recv")
"""Collectives of which a record says more than the kernel's name."""
_DTYPE_BYTES = {
    **dict.fromkeys(("Byte", "Char", "Bool", "QInt8", "QUInt8"), 1),
    **dict.fromkeys(("Float8_e5m2", "Float8_e4m3fn", "Float8_e5m2fnuz", "Float8_e4m3fnuz", "Float8_e8m0fnu"), 1),
    **dict.fromkeys(("Short", "UInt16", "Half", "BFloat16"), 2),
    **dict.fromkeys(("Int", "UInt32", "Float", "QInt32", "ComplexHalf"), 4),
    **dict.fromkeys(("Long", "UInt64", "Double", "ComplexFloat"), 8),
    "ComplexDouble": 16,
}


def recorded_collectives(trace: Trace) -> pl.DataFrame:
    """The rows of `collectives`, without those that say different things of one launch; none if it wasn't read."""
    if "collectives" not in trace.scope:
        return COLLECTIVES.empty.collect()
    rows = trace.collectives.collect()
    return rows.unique(maintain_order=True).unique(COLLECTIVE_KEY, keep="none", maintain_order=True)


def join_collectives(launches: pl.LazyFrame, recorded: pl.DataFrame) -> pl.LazyFrame:
    """`launches` in their order with the other columns of `recorded`, null where it has no row of them.

    `is_collective` says where it has. `recorded` is as `recorded_collectives` gives it.
    """
    marked = recorded.lazy().with_columns(is_collective=True)
    joined = launches.join(marked, on=COLLECTIVE_KEY, how="left", nulls_equal=True, maintain_order="left")
    return joined.with_columns(pl.col("is_collective").fill_null(value=False))


def work_collectives(work: Work, recorded: pl.DataFrame) -> pl.DataFrame:
    """The launches of `work` that communicate, in its order, with `ABOUT`; `collective` as name and record say.

    Args:
        work: The launches, with text or categories.
        recorded: As `recorded_collectives` gives it.
    """
    return describe_collectives(work.launches.filter(pl.col("sort") == "communication"), recorded)


def describe_collectives(launches: pl.DataFrame, recorded: pl.DataFrame) -> pl.DataFrame:
    """Launches that communicate, in their order, with `ABOUT` and `SIDES`; `collective` as name and record say.

    Args:
        launches: With the columns that find a record, and `collective` as the name says.
        recorded: As `recorded_collectives` gives it.
    """
    texts = pl.col("kernel", "device", "collective").cast(pl.String)
    item_bytes = pl.col("dtype").replace_strict(_DTYPE_BYTES, default=None, return_dtype=pl.Int64)
    sides = [
        pl.when(pl.col(elements) >= 0).then(pl.col(elements) * item_bytes).alias(side)
        for elements, side in (("elements_in", "in_bytes"), ("elements_out", "out_bytes"))
    ]
    names = recorded["collective"].drop_nulls().unique()
    decoded = pl.Series([read_collective(name) for name in names], dtype=pl.String)
    about = recorded.with_columns(sides).select(
        *COLLECTIVE_KEY,
        pl.col("collective").alias("recorded_as"),
        pl.col("collective").replace_strict(names, decoded, default=None, return_dtype=pl.String).alias("recorded"),
        "dtype",
        pl.max_horizontal("in_bytes", "out_bytes").alias("message_bytes"),
        "group",
        "group_size",
        *SIDES[1:],
    )
    joined = join_collectives(launches.lazy().with_columns(texts), about).drop("is_collective").collect()
    by_record = pl.col("collective").is_in(BY_NAME_ALONE) & (pl.col("recorded") != "other")
    return joined.with_columns(pl.when(by_record).then("recorded").otherwise("collective").alias("collective")).drop(
        "recorded"
    )


def bytes_per_s() -> pl.Expr:
    """Algorithm bandwidth of rows with `message_bytes` each, `count` launches and their summed `dur_ns`."""
    moved = pl.col("message_bytes") * pl.col("count")
    return pl.when((pl.col("dur_ns") > 0) & (moved > 0)).then(moved / pl.col("dur_ns") * 1e9)


def sum_messages(work: Work, recorded: pl.DataFrame) -> pl.DataFrame:
    """One row per place, collective, message and kernel, the most time first; none where no message is recorded.

    Args:
        work: The launches; in a window, those count that run in it whole.
        recorded: As `recorded_collectives` gives it.

    Returns:
        `rank`, `device`, `collective`, `dtype`, `message_bytes`, `group`, `group_size`, `kernel`, `count`, `dur_ns`
        (summed) and `bytes_per_s`, the algorithm bandwidth. Of launches without a record, `ABOUT` are null.
    """
    by = ["rank", "device", "collective", *ABOUT, "kernel"]
    known = work_collectives(work, recorded)
    if not any(known[name].count() for name in ABOUT):
        known = known.clear()
    if work.window_ns is not None:
        known = known.filter(pl.col("start_ns") >= work.window_ns[0], pl.col("end_ns") <= work.window_ns[1])
    sums = known.group_by(by).agg(pl.len().cast(pl.Int64).alias("count"), pl.col("dur_ns").sum())
    rates = sums.with_columns(bytes_per_s().alias("bytes_per_s"))
    return rates.sort("dur_ns", *by, descending=[True, *(False for _ in by)])
