"""Which launches a question is about: of a device, a stream, a rank, a window of time."""

import msgspec
import polars as pl

from inferometer.errors import InputError, UnknownName
from inferometer.trace.tables import ALL_TABLES
from inferometer.trace.trace import Trace


class Selection(msgspec.Struct, frozen=True):
    """Launches to look at; None means all.

    `device` is `gpu:7` or just its number. `between_ns` is a window from the trace's start (the earliest time of any of
    its tables), ns: launches that begin at or after the first and before the second, so adjoining windows add up.
    """

    device: str | None = None
    stream: int | None = None
    rank: int | None = None
    between_ns: tuple[int, int] | None = None

    def apply(self, trace: Trace, *, compact: bool = False) -> pl.LazyFrame:
        """The launches selected; `compact` as `Trace.compact` gives them.

        Raises:
            UnknownName: The trace has no such device, stream or rank.
            InputError: The window ends before it begins, or lies outside the trace; or it was opened without all
                tables, which a window needs to know where the trace starts.
        """
        launches = trace.compact("launches") if compact else trace.launches
        return launches.filter(*conditions) if (conditions := self.conditions(trace)) else launches

    def conditions(self, trace: Trace) -> list[pl.Expr]:
        """What a launch of this trace must fulfil to be selected; empty where all are. Raises as `apply`."""
        asked = (("device", self.device), ("stream", self.stream), ("rank", self.rank))
        found = [pl.col(name) == _known(trace, name, wanted) for name, wanted in asked if wanted is not None]
        if self.between_ns:
            first_ns, last_ns = self.window(trace)
            found.append(pl.col("start_ns").is_between(first_ns, last_ns, closed="left"))
        return found

    def window(self, trace: Trace) -> tuple[int, int]:
        """The window's first and last time on the trace's clock. Raises `InputError` as `apply`."""
        first_ns, last_ns = self.between_ns or (0, 0)
        if last_ns <= first_ns:
            raise InputError(f"between: expected two times in order, found {first_ns:,} ns and {last_ns:,} ns")
        trace.require(ALL_TABLES)
        whole = trace.window()
        if whole is None:
            raise InputError(f"{trace.facts.source}: has no times to select a window from")
        if first_ns > whole[1] - whole[0]:
            raise InputError(
                f"between: begins at {first_ns:,} ns, but {trace.facts.source} is only {whole[1] - whole[0]:,} ns long",
                hint="Times count from the trace's start, in seconds unless a unit is given: 1.5, 20ms.",
            )
        return whole[0] + first_ns, whole[0] + last_ns


def _known(trace: Trace, column: str, wanted: str | int) -> str | int:
    """`wanted` as the trace writes it."""
    if column == "device" and str(wanted).isdecimal():
        wanted = f"gpu:{wanted}"
    known = trace.compact("launches").select(pl.col(column).unique()).collect().to_series().drop_nulls().to_list()
    if column == "rank":  # one without device work is a rank too
        known = sorted({*known, *trace.facts.ranks})
    if wanted not in known:
        raise UnknownName(column, str(wanted), [str(value) for value in known])
    return wanted
