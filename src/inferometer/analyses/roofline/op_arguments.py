"""Unique arguments: each op with each set of shapes, types and strides, its calls, launches, time and rates."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import polars as pl

from inferometer.analyses.result import Result
from inferometer.analyses.roofline.calls import ARGUMENTS
from inferometer.analyses.roofline.table import Roofline
from inferometer.analyses.rows import compile_match, first_rows, matching
from inferometer.trace.losses import Losses

_COLUMNS: Final = (
    *("number", "op", *ARGUMENTS, "calls", "cut_calls", "launches", "total_ns", "share", "mean_of_call_ns", "flops"),
    *("read_bytes", "write_bytes", "flops_per_s", "bytes_per_s", "reason"),
)


@dataclass(frozen=True)
class OpArguments(Result):
    """`frame`: a row for each op and arguments, the most time first; launches without an op are one row, `op` null.

    Measured: `calls`, `launches`, `total_ns`, `share` of all device time, `mean_of_call_ns`. Modelled: `flops`,
    `read_bytes` and `write_bytes` of one call, null with a `reason`. `flops_per_s` and `bytes_per_s`: the one over the
    other. Calls of which only some launches are selected are `cut_calls`, in rows of their own. `number`: as
    `replay --op` takes it. `shown`: the rows that were asked for.
    """

    view: ClassVar[str] = "op_arguments"
    source: str
    frame: pl.DataFrame
    shown: pl.DataFrame
    total_ns: int
    losses: Losses

    def to_polars(self) -> pl.DataFrame:
        """The rows that were asked for."""
        return self.shown

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "total_ns": self.total_ns,
            "rows": self.shown.to_dicts(),
            "losses": self.losses.as_dict(),
        }


def op_arguments(found: Roofline, *, top: int | None = None, match: str | None = None) -> OpArguments:
    """The table of unique arguments.

    Args:
        found: Of `roofline`.
        top: Show so many rows.
        match: Show ops whose name this regular expression finds.

    Raises:
        InputError: `match` is no regular expression.
    """
    known = found.frame.filter(pl.col("op").is_not_null())
    unknown = found.frame.filter(pl.col("op").is_null())
    without = pl.DataFrame(
        {
            "launches": [int(unknown["launches"].sum())],
            "total_ns": [int(unknown["total_ns"].sum())],
            "reason": ["no op is known of these launches"],
        }
    )
    parts = [known, without] if unknown.height else [known]
    rows = (
        pl.concat(parts, how="diagonal_relaxed")
        .with_columns(
            (pl.col("total_ns") / pl.col("total_ns").sum()).fill_nan(None).alias("share"),
            (pl.col("total_ns") / pl.col("calls")).alias("mean_of_call_ns"),
        )
        .select(_COLUMNS)
        .sort("total_ns", "op", *ARGUMENTS, descending=[True, *[False] * 5], nulls_last=True)
    )
    matched = matching(rows, "op", compile_match(match))
    return OpArguments(found.source, rows, first_rows(matched, top), found.total_ns, found.losses)
