"""Long columns that several analyses of one trace ask for at once: each is read once, and kept while they share it."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import TypeVar

import polars as pl

from inferometer.trace.lean import LARGE, collect_lean
from inferometer.trace.shared import Shared
from inferometer.trace.trace import Trace

Made = TypeVar("Made")

_changing = Lock()  # who shares


@contextmanager
def sharing(trace: Trace) -> Iterator[None]:
    """Keep what `read_columns` reads and `made_once` makes of this trace, on any thread, until the last sharer ends."""
    with _changing:
        shared = trace.shared = trace.shared or Shared()
        shared.users += 1
    try:
        yield
    finally:
        with _changing:
            shared.users -= 1
            if not shared.users:
                trace.shared = None


def read_columns(trace: Trace, table: str, names: Sequence[str]) -> pl.DataFrame:
    """These columns of a table as `Trace.compact` has it, lean."""
    rows, shared = trace.compact(table), trace.shared
    if shared is None or rows.select(pl.len()).collect().item() < LARGE:
        return collect_lean(rows, names)
    columns = [shared.once((table, name), partial(collect_lean, rows, [name])) for name in names]
    return pl.concat(columns, how="horizontal")


def made_once(trace: Trace, key: Hashable, make: Callable[[], Made]) -> Made:
    """What `make` gives, or gave for this key since sharing began."""
    shared = trace.shared  # which another thread may end meanwhile
    return make() if shared is None else shared.once(key, make)
