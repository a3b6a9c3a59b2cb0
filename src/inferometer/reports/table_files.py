"""Tables as Parquet or CSV files for other tools: one file per table, its columns as declared, every number exact.

CSV has no lists: `grid` and `block` become `grid_x`, `grid_y`, `grid_z` and so on. Null is an empty cell, an empty text
is `""`. People open CSV in spreadsheets, so text that these would run has a quote in front (`inferometer.spreadsheets`)
and hidden characters are shown as escapes; Parquet has all text as it is in the trace.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import polars as pl

from inferometer.errors import show_hidden
from inferometer.spreadsheets import guard
from inferometer.trace.trace import Trace

BATCH_ROWS = 1 << 16
ABOUT = "about.json"


def write_parquet(frame: pl.LazyFrame, path: Path) -> int:
    """Write one table; its rows. Raises `OSError` when the disk is full."""
    try:
        frame.sink_parquet(path, compression="zstd", compression_level=1)
    except pl.exceptions.ComputeError as error:  # which is what Polars makes of errors while writing
        raise OSError(str(error)) from error
    rows: int = pl.scan_parquet(path, glob=False).select(pl.len()).collect().item()
    return rows


def write_csv(frame: pl.LazyFrame, file: BinaryIO) -> int:
    """Write one table with a header, a batch at a time; its rows."""
    flat, rows = _flattened(frame), 0
    while (batch := flat.slice(rows, BATCH_ROWS).collect()).height or not rows:
        file.write(_for_people(batch).write_csv(include_header=not rows).encode())
        rows += batch.height
        if batch.height < BATCH_ROWS:
            break
    return rows


def write_about(trace: Trace, rows: Mapping[str, int], path: Path) -> None:
    """Facts and losses of the trace, and the rows of each table, as JSON next to the tables."""
    about: dict[str, Any] = {"facts": trace.facts, "losses": trace.losses.as_dict(), "rows": rows}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(about), indent=1) + b"\n")


def _for_people(batch: pl.DataFrame) -> pl.DataFrame:
    """`batch` with its text guarded and cleaned: each distinct text once, and only where one asks for it."""
    changed: list[pl.Series] = []
    for column in batch.iter_columns():
        if column.dtype in (pl.String, pl.Categorical, pl.Enum):
            texts = column.cast(pl.String).unique().drop_nulls()
            odd = {text: shown for text in texts if (shown := guard(show_hidden(text))) != text}
            changed += [column.cast(pl.String).replace(odd)] if odd else []
    return batch.with_columns(changed)


def _flattened(frame: pl.LazyFrame) -> pl.LazyFrame:
    """`frame` with a column an axis in place of each array."""
    columns: list[pl.Expr] = []
    for name, dtype in frame.collect_schema().items():
        if isinstance(dtype, pl.Array):
            columns += [pl.col(name).arr.get(i).alias(f"{name}_{axis}") for i, axis in enumerate("xyz")]
        else:
            columns.append(pl.col(name))
    return frame.select(columns)
