"""What rows of kernels are grouped by: their names, or what their names say.

A name that doesn't show it is labelled null. Such kernels are one row, so that every grouping adds up to the same time.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Literal

import polars as pl

from inferometer.names.demangle import demangle

if TYPE_CHECKING:
    from inferometer.names import KernelName

By = Literal["name", "short", "family", "library", "dtype", "tile", "layer", "role"]


def label_names(names: Iterable[str], by: By, *, raw: bool = False) -> Mapping[str, str | None]:
    """The label of each name; `raw` leaves names as they are where these are the labels."""
    if by == "name":
        return {name: name if raw else demangle(name) for name in names}
    from inferometer.names import decode  # a table by name needs no grammars

    return {name: _LABELS[by](decode(name)) for name in names}


def relabel(rows: pl.LazyFrame, labels: Mapping[str, str | None]) -> pl.LazyFrame:
    """`rows` with the label of each `kernel` in its place, as categories, by a join with the few names there are."""
    schema = {"kernel": pl.Categorical, "label": pl.Categorical}
    table = pl.LazyFrame({"kernel": list(labels), "label": list(labels.values())}, schema=schema)
    labelled = rows.with_columns(pl.col("kernel").cast(pl.Categorical)).join(table, on="kernel", how="left")
    return labelled.with_columns(pl.col("label").alias("kernel")).drop("label")


def _tile(known: "KernelName") -> str | None:
    sizes = [size for size in (known.tile_m, known.tile_n, known.tile_k) if size is not None]
    return "x".join(map(str, sizes)) or None


_LABELS: dict[By, Callable[["KernelName"], str | None]] = {
    "short": lambda known: known.short_name,
    "family": lambda known: known.family,
    "library": lambda known: known.library,
    "dtype": lambda known: known.dtype,
    "tile": _tile,
    "layer": lambda known: None if known.layer is None else str(known.layer),
    "role": lambda known: known.role,
}
