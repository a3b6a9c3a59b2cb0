"""The launches of the process whose steps are looked at, each with its call: read once for all that asks."""

from collections.abc import Sequence
from typing import Self

import msgspec
import polars as pl

from inferometer.analyses.correlation import CALL_KEY, Calls, asked_by, calls_of_launches, find_calls
from inferometer.trace.lean import collect_lean
from inferometer.trace.shared_columns import read_columns
from inferometer.trace.trace import Trace

NEEDED = {  # the columns of each table that are read
    "launches": ("kernel", "device", "stream", *CALL_KEY, "start_ns", "dur_ns"),
    "calls": (*CALL_KEY, "start_ns", "dur_ns"),
}


class QueuedLaunches(msgspec.Struct, frozen=True):
    """`launches`: what ran, when and as which work. `calls`: when these were; None where calls were not read.

    `call`: the row in `calls` of the call that queued each launch, -1 where that is not in the file. Shape (n,).
    """

    launches: pl.DataFrame
    calls: pl.DataFrame | None
    call: Calls | None

    @classmethod
    def read(cls, trace: Trace, rank: int | None, process: int | None) -> Self:
        """Those of an unknown process count where only its rank says whose they are."""
        own = [pl.col("rank").eq_missing(pl.lit(rank, dtype=pl.Int64))]
        if process is not None:
            own.append(pl.col("process").is_null() | (pl.col("process") == process))
        launches, are_all = _of_owner(trace, "launches", own)
        if "calls" not in trace.scope:
            return cls(launches, None, None)
        calls, are_all_calls = _of_owner(trace, "calls", own[:1])
        is_whole = are_all and are_all_calls
        return cls(launches, calls, calls_of_launches(trace) if is_whole else find_calls(launches, calls))

    def asked_ns(self) -> pl.Series:
        """When the host asked for each launch, as `correlation.when_asked`."""
        return asked_by(self.launches, self.calls, self.call)


def _of_owner(trace: Trace, table: str, own: Sequence[pl.Expr]) -> tuple[pl.DataFrame, bool]:
    """The columns `NEEDED` of the rows that all of `own` hold for, and whether these are all, as they mostly are."""
    if trace.compact(table).select(pl.all_horizontal(own).all()).collect().item():
        return read_columns(trace, table, NEEDED[table]), True
    return collect_lean(trace.compact(table), NEEDED[table], *own), False
