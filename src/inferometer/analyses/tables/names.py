"""What the names of kernels say, one row per name."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from inferometer.analyses.result import Result
from inferometer.names.decoding import decode
from inferometer.names.kernel_name import KernelName
from inferometer.names.short_names import size
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES

_SCHEMA = {
    **dict.fromkeys(("short_name", "library", "family", "dtype", "tile"), pl.String),
    "stages": pl.Int64,
    **dict.fromkeys(("split_k", "arch"), pl.String),
    "layer": pl.Int64,
    **dict.fromkeys(("role", "evidence", "name"), pl.String),
}


@dataclass(frozen=True)
class NameTable(Result):
    """Names in the order given, each with what it says."""

    view: ClassVar[str] = "names"
    names: tuple[str, ...]
    decoded: tuple[KernelName, ...]
    losses: Losses

    def to_polars(self) -> pl.DataFrame:
        """One row per name."""
        return pl.DataFrame([*map(_row, self.names, self.decoded)], schema=_SCHEMA, orient="row")

    def as_json(self) -> dict[str, Any]:
        """All that each name says."""
        return {
            "names": [{"name": name, **known.as_json()} for name, known in zip(self.names, self.decoded, strict=True)]
        }


def decode_names(names: Sequence[str]) -> NameTable:
    """What each of the names says."""
    return NameTable(tuple(names), tuple(decode(name) for name in names), Losses(ALL_TABLES))


def _row(name: str, known: KernelName) -> tuple[object, ...]:
    tile = size(known.tile_m, known.tile_n, known.tile_k) or None
    split = None if known.split_k is None else str(known.split_k)
    evidence = f"{known.evidence.rule} [{known.evidence.mark}]"
    return (
        *(known.short_name, known.library, known.family, known.dtype, tile, known.stages, split, known.arch),
        *(known.layer, known.role, evidence, name),
    )
