"""Collectives by kind, bytes and ranks: algorithm and bus bandwidth, as NCCL's own tests define them, and the link's.

A kernel's time includes waiting for ranks that come late. Where the ranks are in the files and can be matched (see
`timeline.ranks`), the time that each waited is kept apart: all leave together, so *transfer* is the time from the
latest start to the end, which is the shortest of the ranks' times, whatever their clocks say. Otherwise transfer is at
most the kernels' time, and bandwidths are at least those given.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import polars as pl

from inferometer.analyses.roofline.exchanges import Exchanges
from inferometer.analyses.timeline.ranks import KIND, match_ranks
from inferometer.hardware.device import Device, Quantity
from inferometer.operators.framework.exchange import Exchange

ROWS: Final[dict[str, Any]] = {
    "collective": pl.String,
    **dict.fromkeys(
        ("message_bytes", "group_size", "calls", "launches", "inferred_launches", "devices", "total_ns"), pl.Int64
    ),
    **dict.fromkeys(("compared", "wait_ns", "transfer_ns"), pl.Int64),
    "is_exact": pl.Boolean,
    **dict.fromkeys(("algorithm_bytes_per_s", "bus_bytes_per_s", "link_bytes_per_s", "fraction"), pl.Float64),
    **dict.fromkeys(("not_compared", "reason"), pl.String),
}


class Collectives(msgspec.Struct, frozen=True):
    """`frame`: a row for each kind, bytes and ranks, most time first; columns `ROWS`. `link`: of the device.

    `calls`, `launches` and `total_ns` are those of all `devices` together; `inferred_launches`: of the launches, those
    whose collective isn't in the file, but that of launches that are alike. `compared`: of the launches, how many can
    be matched with other ranks'; `wait_ns`: how long these waited; null where there are none, and `not_compared` says
    why. `transfer_ns`: `total_ns` without it; all waiting is out of it where `is_exact`: every rank of the group is in
    the files, and compared. Bandwidths are of the message, and of what crosses the link per direction, over
    `transfer_ns`: at least, unless `is_exact`. `fraction`: of the link's peak. `reason`: why there is no bus bandwidth.
    """

    frame: pl.DataFrame
    link: Quantity | None

    @property
    def total_ns(self) -> int:
        """Time of all."""
        return int(self.frame["total_ns"].sum())

    @property
    def wait_ns(self) -> int | None:
        """Waiting of all that could be compared; None where none could."""
        known = self.frame["wait_ns"].drop_nulls()
        return int(known.sum()) if known.len() else None


def sum_collectives(launches: pl.DataFrame, exchanges: Exchanges, device: Device | None) -> Collectives:
    """By kind, bytes and ranks.

    Args:
        launches: Those in which `exchanges` were found, with `call`, `inferred` and `is_selected`, which says whether
            one is summed.
        exchanges: Of `find_exchanges`.
        device: For the link's peak.
    """
    link = device.link if device else None
    exchanged = exchanges.launches
    ran = launches[exchanged["at"]].with_columns(
        *exchanged.get_columns(),
        pl.struct("rank", "device").rank("dense").cast(pl.Int64).alias("place"),
        (pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns"),
        pl.col("kernel").cast(pl.String),
    )  # fmt: skip
    kinds, matched = match_ranks(ran.sort("place", "start_ns", maintain_order=True))
    described = _described(exchanges.distinct)
    each = (
        ran.join(matched.select("at", "wait_ns"), on="at", how="left")
        .join(kinds.select(*KIND, "ranks", "not_compared"), on=KIND, how="left", nulls_equal=True)
        .join(described, on="exchange", how="left")
        .filter("is_selected")
    )
    is_exact = pl.col("wait_ns").is_not_null() & (pl.col("ranks") >= pl.col("group_size")).fill_null(value=False)
    call = pl.struct(pl.col("call"), pl.when(pl.col("call").is_null()).then("at"))
    sums = each.group_by("collective_of", "message_bytes", "link_bytes", "group_size", "reason").agg(
        call.n_unique().cast(pl.Int64).alias("calls"),
        pl.len().cast(pl.Int64).alias("launches"),
        pl.col("inferred").sum().cast(pl.Int64).alias("inferred_launches"),
        pl.col("place").n_unique().cast(pl.Int64).alias("devices"),
        pl.col("dur_ns").sum().alias("total_ns"),
        pl.col("wait_ns").count().cast(pl.Int64).alias("compared"),
        pl.when(pl.col("wait_ns").count() > 0).then(pl.col("wait_ns").sum()).alias("wait_ns"),
        is_exact.all().alias("is_exact"),
        pl.col("not_compared").drop_nulls().unique().sort().str.join("; ").alias("not_compared"),
    )
    return Collectives(_with_rates(sums, link), link)


def _described(distinct: Sequence[Exchange]) -> pl.DataFrame:
    rows = [
        (number, found.kind, found.message_bytes, found.link_bytes, found.ranks, found.unknown)
        for number, found in enumerate(distinct)
    ]
    schema = {
        "exchange": pl.Int64,
        "collective_of": pl.String,
        **dict.fromkeys(("message_bytes", "link_bytes", "group_size"), pl.Int64),
        "reason": pl.String,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _with_rates(sums: pl.DataFrame, link: Quantity | None) -> pl.DataFrame:
    transfer = pl.col("total_ns") - pl.col("wait_ns").fill_null(0)
    peak = pl.lit(link.value if link else None, dtype=pl.Float64)
    timed = sums.with_columns(
        transfer.alias("transfer_ns"),
        peak.alias("link_bytes_per_s"),
        pl.when(pl.col("not_compared") != "").then("not_compared").alias("not_compared"),
        *(
            pl.when(transfer > 0, pl.col(moved) > 0).then(1e9 * pl.col(moved) * pl.col("calls") / transfer).alias(rate)
            for moved, rate in (("message_bytes", "algorithm_bytes_per_s"), ("link_bytes", "bus_bytes_per_s"))
        ),
    )
    order = ("total_ns", "collective_of", "message_bytes", "group_size", "link_bytes")
    return (
        timed.with_columns((pl.col("bus_bytes_per_s") / peak).alias("fraction"))
        .sort(*order, descending=[True, False, False, False, False])
        .select(pl.col("collective_of").alias("collective"), *list(ROWS)[1:])
    )
