"""How much of the launches' time is tied to an op, has recorded sizes, and is modelled."""

import msgspec
import polars as pl


class CoveredTimes(msgspec.Struct, frozen=True):
    """Sums of the launches' times.

    Attributes:
        total_ns: Of all launches.
        op_known_ns: Of those whose op the file or a capture names.
        op_modelled_ns: What of that has a bound, or would have one if the device were known.
        sized_ns: What of `op_known_ns` is of kernels, not copies, in rows with `sizes_recorded`: the size of any tensor
            is among the op's arguments, or it is recorded what a collective exchanges.
        sized_modelled_ns: What of that is modelled.
        inferred_ns: Of those whose op neither names, but launches that are alike have one.
        captured_ns: Of those whose op a capture names.
    """

    total_ns: int
    op_known_ns: int
    op_modelled_ns: int
    sized_ns: int
    sized_modelled_ns: int
    inferred_ns: int
    captured_ns: int


def cover_times(placed: pl.DataFrame, frame: pl.DataFrame) -> CoveredTimes:
    """The times of all launches of the roofline.

    Args:
        placed: Launches with the `row` that each belongs to.
        frame: The rows.
    """
    sums = (
        placed.group_by(
            "row",
            is_known=pl.col("signature").is_not_null() & ~pl.col("inferred"),
            is_kernel=pl.col("kind") == "kernel",
            is_inferred="inferred",
            is_captured=(pl.col("op_source") > 0).fill_null(value=False),
        )
        .agg(pl.col("dur_ns").sum())
        .join(frame.select("row", "sizes_recorded", is_modelled=pl.col("reason").is_null()), on="row", how="left")
    )
    is_sized = pl.col("is_known") & pl.col("is_kernel") & pl.col("sizes_recorded")
    return CoveredTimes(
        total_ns=_sum(sums),
        op_known_ns=_sum(sums.filter("is_known")),
        op_modelled_ns=_sum(sums.filter("is_known", "is_modelled")),
        sized_ns=_sum(sums.filter(is_sized)),
        sized_modelled_ns=_sum(sums.filter(is_sized, "is_modelled")),
        inferred_ns=_sum(sums.filter("is_inferred")),
        captured_ns=_sum(sums.filter("is_captured")),
    )


def _sum(sums: pl.DataFrame) -> int:
    return int(sums["dur_ns"].sum())
