"""How much of the launches' time is tied to an op, has recorded sizes, and is modelled."""

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True)
class CoveredTimes:
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
    op_known = placed.filter(pl.col("signature").is_not_null() & ~pl.col("inferred"))
    sized = op_known.filter(pl.col("kind") == "kernel").join(frame.filter("sizes_recorded"), on="row", how="semi")
    modelled = frame.filter(pl.col("reason").is_null())
    return CoveredTimes(
        total_ns=_sum(placed),
        op_known_ns=_sum(op_known),
        op_modelled_ns=_sum(op_known.join(modelled, on="row", how="semi")),
        sized_ns=_sum(sized),
        sized_modelled_ns=_sum(sized.join(modelled, on="row", how="semi")),
        inferred_ns=_sum(placed.filter("inferred")),
        captured_ns=_sum(placed.filter(pl.col("op_source") > 0)),
    )


def _sum(launches: pl.DataFrame) -> int:
    return int(launches["dur_ns"].sum())
