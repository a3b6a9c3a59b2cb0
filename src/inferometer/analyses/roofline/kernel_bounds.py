"""The kernel table with bounds: how much of each kernel's time is above what its ops' calls must take."""

from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from inferometer.analyses.result import Result
from inferometer.analyses.roofline.gaps import with_fractions
from inferometer.analyses.roofline.table import Roofline
from inferometer.analyses.rows import compile_match, first_rows, match_as_json, matching_kernels
from inferometer.hardware.device import Device
from inferometer.names import decode
from inferometer.trace.losses import Losses


@dataclass(frozen=True)
class KernelBounds(Result):
    """`frame`: a row per kernel, the most time first: columns of `gaps.GAPS`, `kernel` for `key`, `share`, `fraction`.

    A call's bound is shared among the kernels that it launches as their times are. `fraction` is that of the time that
    is modelled; null where none of it is. `shown`: the rows that were asked for.
    """

    view: ClassVar[str] = "kernel_bounds"
    source: str
    device: Device | None
    frame: pl.DataFrame
    shown: pl.DataFrame
    total_ns: int
    notable: tuple[str, ...]
    losses: Losses
    match: str | None = None

    def to_polars(self) -> pl.DataFrame:
        """The rows that were asked for."""
        return self.shown

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "hardware": None if self.device is None else self.device.name,
            "total_ns": self.total_ns,
            "match": match_as_json(self.match, "kernel", "short"),
            "rows": [{**row, "short": decode(row["kernel"]).short_name} for row in self.shown.to_dicts()],
            "losses": self.losses.as_dict(),
        }


def kernel_bounds(found: Roofline, *, top: int | None = None, match: str | None = None) -> KernelBounds:
    """The kernels with their bounds.

    Args:
        found: Of `roofline`.
        top: Show so many rows.
        match: Show kernels whose name, or whose short name, this regular expression finds.

    Raises:
        InputError: `match` is no regular expression.
    """
    rows = (
        with_fractions(found.by["kernel"])
        .rename({"key": "kernel"})
        .with_columns(
            (pl.col("total_ns") / found.total_ns if found.total_ns else pl.lit(None)).alias("share"),
        )
        .sort("total_ns", "kernel", descending=[True, False])
    )
    shown = first_rows(matching_kernels(rows, compile_match(match)), top)
    return KernelBounds(found.source, found.device, rows, shown, found.total_ns, found.notable, found.losses, match)
