"""What a store that must stay below a size gives up first: the detail of its oldest counters, then its oldest rows.

Counters become one row per metric and second, then per 10 s, per minute, per 10 minutes: the mean of a level, the last
value of a count that only grows. A part is the sooner thinned the older it is for the detail that it still has. Other
tables keep their rows until no counters are left to be thinned.
"""

from collections.abc import Iterator

import polars as pl

from inferometer.record.journal.parts import JournalPart, Parts
from inferometer.trace.tables import TABLES

PERIODS_NS = (10**9, 10 * 10**9, 60 * 10**9, 600 * 10**9)
"""Between two rows of a metric, after each round of thinning."""

_FIRST_NS = 10**8  # before any
_THINNED = "counters"
_SERIES = ("metric", "device", "host", "process", "rank", "unit")
_EASED = 0.95  # of the size: thinned down to there, so that it isn't done again with every write
_ROUND = 100  # what a round adds to the level of a part; merging adds some


class Thinning:
    """Keeps the parts of a store below a size.

    Args:
        most_bytes: Of the files of all parts together.
        growing: Metrics that only grow.
    """

    def __init__(self, most_bytes: int, growing: frozenset[str]) -> None:
        self._most_bytes, self._growing = most_bytes, growing
        self._sizes: dict[str, int] = {}  # of files, by the name of the part

    def keep(self, parts: Parts) -> tuple[int, int]:
        """Thin and drop until they fit: how many rows were averaged away, and how many dropped.

        What was done is in the store when `parts` is published.

        Raises:
            OSError: There is no room for the thinned part.
        """
        self._sizes = {part.name: self._size(parts, part) for some in parts.tables.values() for part in some}
        total, averaged, dropped = sum(self._sizes.values()), 0, 0
        if total <= self._most_bytes:
            return 0, 0
        for part in _in_turn(parts):
            if total <= _EASED * self._most_bytes:
                break
            total -= self._sizes.pop(part.name)
            rounds = part.level // _ROUND
            if part.table == _THINNED and rounds < len(PERIODS_NS):
                frame = thinned(parts.read(part), PERIODS_NS[rounds], self._growing)
                total += self._size(parts, parts.exchange(part, frame, level=_ROUND * (rounds + 1)))
                averaged += part.rows - frame.height
            else:
                parts.drop(part)
                dropped += part.rows
        return averaged, dropped

    def _size(self, parts: Parts, part: JournalPart) -> int:
        size = self._sizes.get(part.name) or (parts.folder / part.name).stat().st_size
        self._sizes[part.name] = size
        return size


def thinned(counters: pl.DataFrame, period_ns: int, growing: frozenset[str]) -> pl.DataFrame:
    """One row per series and period, in the order of time; those of `growing` keep their last value and its time."""
    grows = pl.col("metric").is_in(sorted(growing))
    window = pl.col("time_ns") // period_ns
    series = [name for name in _SERIES if name in counters.columns]
    levels = counters.filter(~grows.fill_null(value=False)).group_by(*series, window.alias("\0window"))
    counts = counters.filter(grows).group_by(*series, window.alias("\0window"))
    found = pl.concat(
        [
            levels.agg(pl.col("value").mean(), pl.col("time_ns").mean().round().cast(pl.Int64)),
            counts.agg(pl.col("value", "time_ns").sort_by("time_ns").last()),
        ]
    )
    return found.sort("time_ns", *series).select(name for name in TABLES[_THINNED].schema if name in found.columns)


def _in_turn(parts: Parts) -> Iterator[JournalPart]:
    """The next part to be made smaller, as long as there is one: to be thinned, or, where none can be, the oldest."""
    while any(parts.tables.values()):
        counters = parts.tables.get(_THINNED, [])
        thick = [part for part in counters if part.level // _ROUND < len(PERIODS_NS)]
        if thick:
            newest_ns = max(part.first_ns or 0 for part in counters)
            yield max(thick, key=lambda part: (newest_ns - (part.first_ns or 0)) / _period_ns(part))
        else:
            yield min((some[0] for some in parts.tables.values() if some), key=lambda part: part.first_ns or 0)


def _period_ns(part: JournalPart) -> int:
    rounds = part.level // _ROUND
    return PERIODS_NS[rounds - 1] if rounds else _FIRST_NS
