"""What the numbers of an export stand for: strings by their id, and processes and threads packed into one number."""

import polars as pl

from inferometer.formats.databases.export import Export, read_all
from inferometer.formats.databases.places import Places
from inferometer.trace.losses import Losses

_TWENTY_FOUR_BITS = (1 << 24) - 1


def process_of(packed: pl.Expr) -> pl.Expr:
    """Process id in a `globalPid` or `globalTid`: 8 bits of hardware, 8 of virtual machine, 24 process, 24 thread."""
    return packed.floordiv(1 << 24) & _TWENTY_FOUR_BITS


def thread_of(packed: pl.Expr) -> pl.Expr:
    """Thread id in a `globalTid`."""
    return packed & _TWENTY_FOUR_BITS


class Strings:
    """`StringIds`: texts by their id."""

    def __init__(self, export: Export, losses: Losses) -> None:
        rows = read_all(export, "StringIds", ["id"], ["value"]).drop_nulls().sort("id")
        self._places = Places(rows["id"])
        self._texts = pl.concat(
            [rows["value"], pl.Series([None], dtype=pl.String)]
        )  # the last one: ids that aren't there
        self._categories = self._texts.cast(pl.Categorical)
        self._losses = losses

    def find(self, ids: pl.Series) -> pl.Series:
        """The texts of `ids`; null for a null and for an id that isn't there."""
        return self._texts.gather(self._places.of(ids)).alias(ids.name)

    def name(self, ids: pl.Series, category: str, *, may_be_null: bool = False) -> pl.Series:
        """The texts of `ids` as categories. An id without one is called `[string 17]`, and counted.

        So is a null, `[string null]`; with `may_be_null` it stays one.
        """
        texts = self._categories.gather(self._places.of(ids)).alias(ids.name)
        missing = texts.null_count() - (ids.null_count() if may_be_null else 0)
        if not missing:
            return texts
        self._losses.count("without_string", missing, category=category)
        number = ids.cast(pl.String) if may_be_null else ids.cast(pl.String).fill_null("null")
        numbered = pl.concat_str(pl.lit("[string "), number, pl.lit("]"))
        return pl.select(pl.coalesce(texts.cast(pl.String), numbered).cast(pl.Categorical)).to_series()
