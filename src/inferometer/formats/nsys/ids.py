"""What the numbers of an export stand for: strings by their id, and processes and threads packed into one number."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.formats.nsys.export import Export, read_all
from inferometer.trace.losses import Losses

_SPARSE = 16  # a table of places pays when it has at most so many for each string
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
        self._ids: NDArray[np.int64] = rows["id"].to_numpy()
        self._texts = pl.concat(
            [rows["value"], pl.Series([None], dtype=pl.String)]
        )  # the last one: ids that aren't there
        self._categories = self._texts.cast(pl.Categorical)
        self._by_id = _by_id(self._ids)
        self._losses = losses

    def find(self, ids: pl.Series) -> pl.Series:
        """The texts of `ids`; null for a null and for an id that isn't there."""
        return self._texts.gather(self._places(ids)).alias(ids.name)

    def _places(self, ids: pl.Series) -> pl.Series:
        """Where the text of each id stands; the last place for a null and for an id that isn't there."""
        none = len(self._ids)
        if self._by_id is not None and ids.len() and not ids.null_count():
            least, most = ids.min(), ids.max()
            if isinstance(least, int) and isinstance(most, int) and 0 <= least <= most < len(self._by_id):
                return pl.Series(self._by_id.take(ids.to_numpy()))
        wanted = ids.fill_null(-1).to_numpy()
        places = np.searchsorted(self._ids, wanted)
        found = self._ids[np.minimum(places, none - 1)] == wanted if none else np.zeros(len(wanted), np.bool_)
        return pl.Series(np.where(found, places, none))

    def name(self, ids: pl.Series, category: str, *, may_be_null: bool = False) -> pl.Series:
        """The texts of `ids` as categories. An id without one is called `[string 17]`, and counted.

        So is a null, `[string null]`; with `may_be_null` it stays one.
        """
        texts = self._categories.gather(self._places(ids)).alias(ids.name)
        missing = texts.null_count() - (ids.null_count() if may_be_null else 0)
        if not missing:
            return texts
        self._losses.count("without_string", missing, category=category)
        number = ids.cast(pl.String) if may_be_null else ids.cast(pl.String).fill_null("null")
        numbered = pl.concat_str(pl.lit("[string "), number, pl.lit("]"))
        return pl.select(pl.coalesce(texts.cast(pl.String), numbered).cast(pl.Categorical)).to_series()


def _by_id(ids: NDArray[np.int64]) -> NDArray[np.uint32] | None:
    """The place of each id from 0 on, and the last place where there is none; None when the ids are too far apart."""
    if not len(ids) or ids[0] < 0 or ids[-1] > _SPARSE * len(ids) + _SPARSE:
        return None
    places = np.full(int(ids[-1]) + 1, len(ids), np.uint32)
    places[ids] = np.arange(len(ids))
    return places
