"""Which rows of a table a reader sees, and in what order; and the statistics of durations that such tables show."""

import re
from typing import Any, Literal

import polars as pl

from inferometer.errors import InputError

SortKey = Literal["total", "count", "mean", "median", "min", "max", "stddev", "name"]

STATISTICS = ("share", "total_ns", "count", "mean_ns", "median_ns", "min_ns", "max_ns", "stddev_ns")
"""The columns of a table of statistics; after them stands the one that names its rows."""


def sort_column(key: SortKey, name: str) -> str:
    """The column that `key` means in a table of statistics whose rows are named by the column `name`."""
    return name if key == "name" else "count" if key == "count" else f"{key}_ns"


def duration_statistics() -> list[pl.Expr]:
    """Total, count, mean, median, min, max and deviation of a group's `dur_ns`, as Nsight Systems defines them.

    Sums, counts and extremes are exact integers; the deviation is the sample's (n - 1), 0 for a single one.
    """
    duration = pl.col("dur_ns")
    return [
        duration.sum().alias("total_ns"),
        pl.len().cast(pl.Int64).alias("count"),
        duration.mean().alias("mean_ns"),
        duration.median().alias("median_ns"),
        duration.min().alias("min_ns"),
        duration.max().alias("max_ns"),
        duration.std(ddof=1).fill_null(0.0).alias("stddev_ns"),
    ]


def compile_match(match: str | None) -> re.Pattern[str] | None:
    """The regular expression of `--match`.

    Raises:
        InputError: It is none.
    """
    try:
        return re.compile(match) if match else None
    except re.error as error:
        raise InputError(
            f"match: expected a regular expression, found {match!r} ({error})",
            hint="Put a backslash before characters like ( [ * to find them as they are.",
        ) from error


def matching(frame: pl.DataFrame, column: str, pattern: re.Pattern[str] | None) -> pl.DataFrame:
    """The rows whose text in `column` the pattern finds; all without a pattern, none where the text is null."""
    if pattern is None:
        return frame
    found = [text is not None and bool(pattern.search(text)) for text in frame[column]]
    return frame.filter(pl.Series(found, dtype=pl.Boolean))


def finds_kernel(pattern: re.Pattern[str], name: str) -> bool:
    """Whether the pattern finds the kernel: in its name, or in the short one that tables show in its place."""
    from inferometer.names import decode

    return bool(pattern.search(name) or pattern.search(decode(name).short_name))


def matching_kernels(frame: pl.DataFrame, pattern: re.Pattern[str] | None) -> pl.DataFrame:
    """As `matching`, of the names in `kernel` and what is shown of them."""
    if pattern is None:
        return frame
    found = [name is not None and finds_kernel(pattern, name) for name in frame["kernel"]]
    return frame.filter(pl.Series(found, dtype=pl.Boolean))


def match_as_json(match: str | None, *names: str) -> dict[str, Any] | None:
    """Which names of a row `match` was searched in; None where nothing was asked for."""
    return {"regex": match, "names": list(names)} if match else None


def ordered(frame: pl.DataFrame, *columns: str, top: int | None = None) -> pl.DataFrame:
    """The first `top` rows by these columns: numbers largest first, texts from A to Z, nulls last."""
    descending = [frame.schema[column] != pl.String for column in columns]
    shown = frame.sort(columns, descending=descending, nulls_last=True, maintain_order=True)
    return first_rows(shown, top)


def first_rows(frame: pl.DataFrame, top: int | None) -> pl.DataFrame:
    """The first `top` rows; None: all."""
    return frame if top is None else frame.head(top)
