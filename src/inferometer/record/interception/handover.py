"""Rows of one thread, as the interception has them, become batches of columns for the sink."""

import os
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from inferometer.record.interception.signatures import Signature, Texts
from inferometer.record.sink import Sink
from inferometer.trace.cpu_launches import NOTE_OF_CPU_LAUNCHES
from inferometer.trace.facts import Facts

DOMAIN = "modules"
_CPU_NOTE = (
    NOTE_OF_CPU_LAUNCHES + "no kernel below them was recorded, and their times are those of the op, with {cost} of the "
    "interception in each."
)


class Handover:
    """The way of all rows of one interception to its sink. `cost`: what of it is in an op's time, for the note."""

    def __init__(self, sink: Sink, cost: str) -> None:
        self._sink = sink
        self._note = _CPU_NOTE.format(cost=cost)
        self._lock = threading.RLock()
        self._next_id = 1
        self._host = socket.gethostname()
        self._is_noted = False

    def forget_lock(self) -> None:
        """In a forked child: another thread of the parent may have held it."""
        self._lock = threading.RLock()

    def add_ops(
        self,
        thread: int,
        times: tuple[ArrayLike, ArrayLike],
        signatures: Sequence[Signature],
        rows: ArrayLike,
        works: "NDArray[np.bool_]",
    ) -> None:
        """Ops that have ended.

        Args:
            thread: Where they ran.
            times: Start and end of each, ns on the monotonic clock. Shapes (n,).
            signatures: Each distinct one, once.
            rows: Which of them each op has. Shape (n,).
            works: Whether it is device work. Shape (n,).
        """
        which = pl.Series(np.asarray(rows, dtype=np.uint32))
        names = pl.Series([each.overload.op for each in signatures], dtype=pl.String).gather(which)
        texts = zip(*(each.texts for each in signatures), strict=True)
        arguments = {
            column: pl.Series(of, dtype=pl.String).gather(which)
            for column, of in zip(Texts._fields, texts, strict=True)
        }
        where, columns = {"process": os.getpid(), "thread": thread}, self._times(*times)
        n = len(names)
        with self._lock:
            first, self._next_id = self._next_id, self._next_id + n
        ids = np.arange(first, first + n, dtype=np.int64)
        self._sink.add("ops", n, {"op": names, **where, **columns, "external_id": ids, **arguments})
        if works.any():
            self._add_launches(np.flatnonzero(works), names, ids, where, columns)

    def add_frames(self, thread: int, names: Sequence[str], times: tuple[ArrayLike, ArrayLike]) -> None:
        """Ranges of the user's functions."""
        self._add_ranges("frames", {"frame": pl.Series(names, dtype=pl.String)}, thread, times)

    def add_modules(self, thread: int, texts: Sequence[str], times: tuple[ArrayLike, ArrayLike]) -> None:
        """Calls of modules."""
        columns = {"span": pl.Series(texts, dtype=pl.String), "domain": DOMAIN}
        self._add_ranges("spans", columns, thread, times)

    def _add_ranges(self, table: str, columns: dict[str, Any], thread: int, times: tuple[ArrayLike, ArrayLike]) -> None:
        where = {"process": os.getpid(), "thread": thread}
        spans = self._times(*times)
        if n := len(spans["start_ns"]):
            self._sink.add(table, n, {**columns, **where, **spans})

    def _add_launches(
        self, rows: Any, names: pl.Series, ids: Any, where: dict[str, int], times: dict[str, Any]
    ) -> None:
        self._sink.add(
            "launches",
            len(rows),
            {
                "kind": "kernel",
                "kernel": names.gather(rows),
                "device": "cpu",
                "stream": where["thread"],
                "host": self._host,
                "process": where["process"],
                "external_id": ids[rows],
                **{name: of[rows] for name, of in times.items()},
            },
        )
        if not self._is_noted:
            self._is_noted = True
            self._sink.change_facts(with_note(self._note))

    def _times(self, starts: ArrayLike, ends: ArrayLike) -> dict[str, Any]:
        start_ns, end_ns = np.asarray(starts, dtype=np.int64), np.asarray(ends, dtype=np.int64)
        return {"start_ns": start_ns - self._sink.clock.origin_ns, "dur_ns": end_ns - start_ns}


def with_note(note: str) -> Callable[[Facts], Facts]:
    """A change of facts: this note, where it isn't there yet."""
    return lambda facts: facts if note in facts.notes else msgspec.structs.replace(facts, notes=(*facts.notes, note))
