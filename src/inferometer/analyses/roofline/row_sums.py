"""Each row of the roofline: what its launches took together, and how that compares with its bound."""

import polars as pl


def sum_rows(placed: pl.DataFrame, modelled: pl.DataFrame) -> pl.DataFrame:
    """Modelled rows with their measured sums, the most time above the bound first.

    Args:
        placed: Launches with the `row` that each belongs to.
        modelled: The rows, with work and bounds of one call.
    """
    by_kernel = (
        placed.group_by("row", "kernel")
        .agg(pl.col("dur_ns").sum())
        .with_columns(pl.col("kernel").cast(pl.String))
        .sort("dur_ns", "kernel", descending=[True, False])
        .unique("row", keep="first", maintain_order=True)
        .select("row", "kernel")
    )
    calls = pl.col("call").n_unique().cast(pl.Int64)
    measured = placed.group_by("row").agg(
        pl.when(pl.col("call").is_not_null().any() & ~pl.col("is_cut").any()).then(calls).alias("calls"),
        pl.when(pl.col("is_cut").any()).then(calls).alias("cut_calls"),
        pl.len().cast(pl.Int64).alias("launches"),
        pl.col("inferred").sum().cast(pl.Int64).alias("inferred_launches"),
        pl.col("dur_ns").sum().alias("total_ns"),
    )
    bound = pl.col("bound_of_call_ns") * pl.col("calls")
    seconds = pl.col("total_ns") / 1e9
    is_timed = (pl.col("total_ns") > 0) & pl.col("reason").is_null()
    read = pl.when(pl.col("binding") != "pcie").then("read_bytes").otherwise(0)  # a copy crosses PCIe once
    moved = read.cast(pl.Float64) + pl.col("write_bytes")
    fraction = pl.when(is_timed).then(bound / pl.col("total_ns"))
    return (
        modelled.join(measured, on="row", how="inner")
        .join(by_kernel, on="row", how="left")
        .with_columns(
            bound.alias("bound_ns"),
            (pl.col("warm_bound_of_call_ns") * pl.col("calls")).alias("warm_bound_ns"),
            fraction.alias("fraction"),
            pl.when(is_timed).then((pl.col("total_ns") - bound).clip(lower_bound=0)).alias("above_ns"),
            pl.when(is_timed).then(pl.col("flops").cast(pl.Float64) * pl.col("calls") / seconds).alias("flops_per_s"),
            pl.when(is_timed).then(moved * pl.col("calls") / seconds).alias("bytes_per_s"),
        )
        .sort("above_ns", "total_ns", "row", descending=[True, True, False], nulls_last=True)
    )
