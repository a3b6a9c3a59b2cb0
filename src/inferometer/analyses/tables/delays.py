"""Launch delay: from a host call to the device work that it queued.

`delay_ns` runs from the beginning of the call to the start of its first device work. `queued_ns` begins at the call's
end instead, and is negative where the device started before the call returned; it keeps its sign. A graph launch is
one call: its first kernel counts for the delay, all of them for `launches`. Percentiles are interpolated, as the
median is.
"""

import polars as pl

_QUANTILES = {"p95": 0.95, "p99": 0.99}
COLUMNS = ("api", "calls", "launches", "launches_per_call", *(
    f"{what}_{statistic}_ns" for what in ("delay", "queued") for statistic in ("min", "median", "p95", "p99", "max")
))  # fmt: skip


def launch_delays(calls: pl.DataFrame) -> pl.DataFrame:
    """Delays by API, most calls first, and those of all calls together in the last row, whose `api` is null.

    Args:
        calls: `api`, `start_ns`, `dur_ns`, `launches` and `first_ns`, the start of the first of them; calls without
            device work are passed over.
    """
    working = calls.filter(pl.col("first_ns").is_not_null()).with_columns(
        (pl.col("first_ns") - pl.col("start_ns")).alias("delay"),
        (pl.col("first_ns") - pl.col("start_ns") - pl.col("dur_ns")).alias("queued"),
    )
    statistics = [
        pl.len().cast(pl.Int64).alias("calls"),
        pl.col("launches").sum().cast(pl.Int64),
        pl.col("launches").mean().alias("launches_per_call"),
        *(each for what in ("delay", "queued") for each in _statistics(what)),
    ]
    by_api = working.group_by("api").agg(statistics).sort("calls", "api", descending=[True, False])
    whole = working.select(pl.lit(None, dtype=pl.String).alias("api"), *statistics)
    return pl.concat([by_api.select(COLUMNS), whole.select(COLUMNS)])


def _statistics(what: str) -> list[pl.Expr]:
    value = pl.col(what)
    return [
        value.min().alias(f"{what}_min_ns"),
        value.median().alias(f"{what}_median_ns"),
        *(value.quantile(q, "linear").alias(f"{what}_{name}_ns") for name, q in _QUANTILES.items()),
        value.max().alias(f"{what}_max_ns"),
    ]
