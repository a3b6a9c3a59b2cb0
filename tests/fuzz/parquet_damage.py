"""Damage of Parquet files that stay such: columns of other types, lost or added; and of their pages."""

import io
from collections.abc import Callable
from random import Random
from typing import Any

import polars as pl
from tests.fuzz import byte_damage, hostile
from tests.fuzz.byte_damage import Damage

_TYPES: tuple[Any, ...] = (
    *(pl.String, pl.Float32, pl.Float64, pl.Boolean, pl.Int8, pl.UInt64, pl.Int32, pl.Binary, pl.Date, pl.Time),
    *(pl.Datetime("ns"), pl.Duration("ns"), pl.List(pl.Int64), pl.Categorical, pl.Decimal(38, 3), pl.Null),
    pl.Struct({"a": pl.Int64}),
)
_CODECS: tuple[Any, ...] = ("zstd", "snappy", "gzip", "lz4", "uncompressed", "brotli")


def retype(rng: Random, frame: pl.DataFrame) -> pl.DataFrame:
    column, dtype = rng.choice(frame.columns), rng.choice(_TYPES)
    try:
        changed = frame[column].cast(dtype, strict=False)
    except (pl.exceptions.PolarsError, TypeError, pl.exceptions.PanicException):
        changed = pl.Series(column, [None] * frame.height, dtype=dtype)
    return frame.with_columns(changed.alias(column))


def lose(rng: Random, frame: pl.DataFrame) -> pl.DataFrame:
    return frame.drop(rng.sample(frame.columns, min(frame.width, rng.choice((1, 3)))))


def rename(rng: Random, frame: pl.DataFrame) -> pl.DataFrame:
    new = rng.choice((hostile.text(rng), rng.choice(frame.columns).upper()))
    return frame if new in frame.columns else frame.rename({rng.choice(frame.columns): new})


def empty_out(rng: Random, frame: pl.DataFrame) -> pl.DataFrame:
    column = rng.choice(frame.columns)
    return frame.with_columns(pl.lit(None, frame.schema[column]).alias(column)) if rng.random() < 0.6 else frame.clear()


def change_values(rng: Random, frame: pl.DataFrame) -> pl.DataFrame:
    column = rng.choice(frame.columns)
    dtype = frame.schema[column]
    if dtype == pl.String:
        value: Any = hostile.text(rng).replace("\ud800", "?")
    elif dtype.is_integer():
        value = rng.choice((0, -1, 2**63 - 1, -(2**63))) if dtype == pl.Int64 else 1
    else:
        return frame
    chosen = pl.Series([rng.random() < 0.5 for _ in range(frame.height)], dtype=pl.Boolean)
    return frame.with_columns(pl.when(chosen).then(pl.lit(value, dtype)).otherwise(pl.col(column)).alias(column))


def repeat(rng: Random, frame: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([frame] * rng.choice((2, 5))).sample(fraction=1, shuffle=True, seed=rng.randrange(99))


_EDITS: tuple[Callable[[Random, pl.DataFrame], pl.DataFrame], ...] = (
    *(retype, retype, lose, rename, empty_out, change_values, change_values, repeat),
)


def edit(rng: Random, data: bytes, _: bytes) -> bytes:
    """The file written anew with other columns, in another codec and with other row groups."""
    try:
        frame = pl.read_parquet(io.BytesIO(data))
        for _each in range(rng.choice((1, 1, 3))):
            if frame.width:
                frame = rng.choice(_EDITS)(rng, frame)
        file = io.BytesIO()
        frame.write_parquet(file, compression=rng.choice(_CODECS), row_group_size=rng.choice((None, 1, 2)))
    except (pl.exceptions.PolarsError, OSError, ValueError, TypeError, pl.exceptions.PanicException):
        return data  # damaged before, or of a type that Polars doesn't write
    return file.getvalue()


def spoil_pages(rng: Random, data: bytes, other: bytes) -> bytes:
    """Flips in front of the footer, which itself stays whole."""
    footer = int.from_bytes(data[-8:-4], "little") + 8
    pages, end = data[4:-footer], data[-footer:]
    spoil = rng.choice((byte_damage.flip_bits, byte_damage.set_bytes, byte_damage.zero_block))
    return data[:4] + spoil(rng, pages, other)[: len(pages)] + end if footer < len(data) - 4 else data


def spoil_footer(rng: Random, data: bytes, other: bytes) -> bytes:
    footer = min(len(data), int.from_bytes(data[-8:-4], "little") + 8)
    spoil = rng.choice((byte_damage.flip_bits, byte_damage.set_bytes))
    return data[:-footer] + spoil(rng, data[-footer:], other)


OF_BYTES: tuple[Damage, ...] = (spoil_pages, spoil_pages, spoil_footer)
DAMAGES: tuple[Damage, ...] = (edit, edit, edit, *OF_BYTES)


def is_parquet(data: bytes) -> bool:
    """Whether it begins as a Parquet file does."""
    return data.startswith(b"PAR1")
