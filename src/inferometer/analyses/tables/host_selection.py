"""Which part of the host's activity a question is about: of a rank, in a window of time."""

import msgspec
import polars as pl

from inferometer.analyses.selection import Selection
from inferometer.errors import UnknownName
from inferometer.trace.trace import Trace


class HostSelection(msgspec.Struct, frozen=True):
    """Rows to look at; None means all. `between_ns` counts from the trace's start, as in `Selection`."""

    rank: int | None = None
    between_ns: tuple[int, int] | None = None

    def of_rank(self, trace: Trace, *tables: str) -> list[pl.LazyFrame]:
        """These tables, or their rows of the rank.

        Raises:
            UnknownName: None of them has such a rank.
        """
        frames = [trace.tables[table] for table in tables]
        if self.rank is None:
            return frames
        unique = pl.collect_all([frame.select(pl.col("rank").unique()) for frame in frames])
        known = pl.concat(unique).to_series().unique().drop_nulls().sort().to_list()
        if self.rank not in known:
            raise UnknownName("rank", str(self.rank), [str(value) for value in known])
        return [frame.filter(pl.col("rank") == self.rank) for frame in frames]

    def window(self, trace: Trace) -> tuple[int, int] | None:
        """The window on the trace's clock, its end exclusive; None when all times are meant.

        Raises:
            InputError: As `Selection.window`.
        """
        return None if self.between_ns is None else Selection(between_ns=self.between_ns).window(trace)
