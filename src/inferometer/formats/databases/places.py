"""Where the rows of a table stand, by their ids: millions are looked up without a join."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

_SPARSE = 16  # a table of places pays when it has at most so many for each id


class Places:
    """Places of ids that are sorted, unique and not null."""

    def __init__(self, ids: pl.Series) -> None:
        self._ids: NDArray[np.int64] = ids.to_numpy()
        self._by_id = _by_id(self._ids)

    def of(self, ids: pl.Series) -> pl.Series:
        """The place of each of `ids`, from 0; for a null and for an id that isn't there, the place after the last."""
        none = len(self._ids)
        if self._by_id is not None and ids.len() and not ids.null_count():
            least, most = ids.min(), ids.max()
            if isinstance(least, int) and isinstance(most, int) and 0 <= least <= most < len(self._by_id):
                return pl.Series(self._by_id.take(ids.to_numpy()))
        wanted = ids.fill_null(-1).to_numpy()
        places = np.searchsorted(self._ids, wanted)
        found = self._ids[np.minimum(places, none - 1)] == wanted if none else np.zeros(len(wanted), np.bool_)
        return pl.Series(np.where(found, places, none))


class ById:
    """Rows of a table by its column `id`; of rows with one id the first counts."""

    def __init__(self, rows: pl.DataFrame) -> None:
        known = rows.drop_nulls("id").unique("id", keep="first", maintain_order=True).sort("id")
        self._places = Places(known["id"])
        absent = pl.DataFrame({name: [None] for name in known.columns}, schema=known.schema)
        self._rows = pl.concat([known, absent])

    def find(self, ids: pl.Series, column: str) -> pl.Series:
        """Values of `column` for `ids`; null for a null and for an id that isn't there."""
        return self._rows[column].gather(self._places.of(ids)).alias(column)

    def as_categories(self, column: str) -> "ById":
        """The same with one text column as categories, which keeps names that repeat small."""
        self._rows = self._rows.with_columns(pl.col(column).cast(pl.Categorical))
        return self


def _by_id(ids: NDArray[np.int64]) -> NDArray[np.uint32] | None:
    """The place of each id from 0 on, and the last place where there is none; None when the ids are too far apart."""
    if not len(ids) or ids[0] < 0 or ids[-1] > _SPARSE * len(ids) + _SPARSE:
        return None
    places = np.full(int(ids[-1]) + 1, len(ids), np.uint32)
    places[ids] = np.arange(len(ids))
    return places
