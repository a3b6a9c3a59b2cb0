"""Frames with exactly the columns that a result declares."""

import polars as pl


def with_schema(frame: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    """`frame` with exactly these columns and types, in this order; those that it lacks are null."""
    lacking = [pl.lit(None, dtype=dtype).alias(name) for name, dtype in schema.items() if name not in frame.columns]
    return frame.with_columns(lacking).select(pl.col(name).cast(dtype) for name, dtype in schema.items())
