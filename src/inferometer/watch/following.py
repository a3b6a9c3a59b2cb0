"""Recordings that are still being written: new steps at each look, until their writers close them or are gone.

A recording is one store, or a folder with a store for each process (`NAME.ifm.parts` while `inferometer record` runs):
stores that join later are followed, too. Times of all are on the clock of the first.
"""

import os
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from inferometer.errors import FormatError
from inferometer.processes import is_alive, state_of
from inferometer.record.workers.parts import find_parts
from inferometer.trace.facts import Facts
from inferometer.trace.losses import Losses
from inferometer.trace.store import read_store
from inferometer.trace.store_writer import MANIFEST, is_store
from inferometer.trace.trace import Trace
from inferometer.watch.growing import stores_in
from inferometer.watch.recorded import recorded_steps
from inferometer.watch.steps import WatchedStep

STALE_S = 600.0
"""A recording of a machine that can't be seen from here has ended when nothing was written for so long."""

_LATE_NS = 60 * 10**9  # by which rows of one process may come after those of another
_ENDED = ("Z", "X")  # states of a process that nobody has waited for
_GRACE_LOOKS = 3  # in which all are over, and none has joined


@dataclass
class _Store:
    """One store: what was seen of it."""

    path: Path
    shift_ns: int = 0
    version: tuple[int, int] = (0, 0)  # of its manifest
    facts: Facts | None = None  # of that version
    last_ns: dict[str | None, int] = field(default_factory=dict)  # start of the last step of each owner
    is_over: bool = False
    why_over: str | None = None
    losses: Losses = field(default_factory=lambda: Losses(frozenset({"steps"})))


class Following:
    """The steps of one recording, as they come.

    Args:
        path: A store, or a folder of stores.
        wall_s: Seconds since 1970.
    """

    def __init__(self, path: Path, *, wall_s: Callable[[], float] = time.time) -> None:
        self.path, self._wall_s = path, wall_s
        self._is_one = is_store(path)
        self._stores: dict[Path, _Store] = {}
        self._owners: dict[str, Path] = {}
        self._base_ns: int | None = None
        self._looks_over = 0

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come."""
        return self._looks_over >= (1 if self._is_one else _GRACE_LOOKS)

    @property
    def clock_base_ns(self) -> int | None:
        """Added to the steps' times it gives ns since 1970; None: not known."""
        return self._base_ns

    @property
    def losses(self) -> Losses:
        """Losses of all stores, as they were at the last look."""
        together = Losses(frozenset({"steps"}))
        for store in self._stores.values():
            together.add(store.losses)
        return together

    @property
    def left(self) -> list[str]:
        """What is over without having been closed."""
        return [f"{store.path}: {store.why_over}" for store in self._stores.values() if store.why_over]

    def look(self) -> list[WatchedStep]:
        """New steps, in order of their start.

        Raises:
            InputError: The recording is gone or damaged.
        """
        if not self.path.is_dir() and self._stores and not self._is_one:  # `record` has joined its parts
            self._looks_over = _GRACE_LOOKS
            return []
        for path in [self.path] if self._is_one else stores_in(self.path):
            self._stores.setdefault(path, _Store(path))
        new = [step for store in self._stores.values() if not store.is_over for step in self._look_at(store)]
        is_over = bool(self._stores) and all(store.is_over for store in self._stores.values())
        self._looks_over = self._looks_over + 1 if is_over else 0
        return sorted(new, key=lambda step: step.start_ns)

    def _look_at(self, store: _Store) -> Iterator[WatchedStep]:
        try:
            yield from self._new_steps(store)
        except FormatError:
            if self._is_one or store.path.is_dir():
                raise
            store.is_over = True  # joined and removed meanwhile

    def _new_steps(self, store: _Store) -> Iterator[WatchedStep]:
        manifest = _manifest_of(store.path)
        version = manifest.st_mtime_ns, manifest.st_ino
        if store.facts is None or version != store.version:
            with read_store(store.path, ("steps",)) as trace:
                store.version, store.facts, store.losses = version, trace.facts, trace.losses
                steps = _recent(trace, max(store.last_ns.values(), default=None))
            self._tie(store, store.facts)
            for step in steps:
                if step.start_ns <= store.last_ns.get(step.owner, -1):
                    continue
                store.last_ns[step.owner] = step.start_ns
                yield step._replace(start_ns=step.start_ns + store.shift_ns, owner=self._owner(store, step.owner))
        if store.facts.recorded.get("finished", True):
            store.is_over = True
        elif why := _left(store.facts, self._wall_s() - manifest.st_mtime):
            store.is_over, store.why_over = True, why

    def _tie(self, store: _Store, facts: Facts) -> None:
        if facts.clock_base_ns is None:
            return
        if self._base_ns is None:
            self._base_ns = facts.clock_base_ns
        store.shift_ns = facts.clock_base_ns - self._base_ns

    def _owner(self, store: _Store, name: str | None) -> str | None:
        """Two processes of one number are told apart by their stores."""
        if self._is_one:
            return name
        name = name or store.path.stem
        return name if self._owners.setdefault(name, store.path) == store.path else f"{name} ({store.path.stem})"


def store_of(path: Path, scratch: Path) -> Path:
    """What can be opened as one trace: `path`, or of parts of a recording a store in `scratch` that joins them."""
    from inferometer.record.workers.parts import join_parts

    if is_store(path) or not find_parts(path):
        return path
    with join_parts(path, scratch / "joined.ifm"):
        return scratch / "joined.ifm"


def _manifest_of(store: Path) -> os.stat_result:
    try:
        return (store / MANIFEST).stat()
    except OSError as error:
        raise FormatError(f"{store}: not a store: {MANIFEST} can't be read ({error.strerror})") from error


def _recent(trace: Trace, last_ns: int | None) -> list[WatchedStep]:
    """Steps that may be new: another process's may come late."""
    if last_ns is not None:
        later = trace.steps.filter(pl.col("start_ns") > last_ns - _LATE_NS)
        trace = Trace(trace.facts, {"steps": later}, trace.losses, scope=trace.scope)
    return recorded_steps(trace, may_grow=True)


def _left(facts: Facts, idle_s: float) -> str | None:
    """Why nothing more will come of a recording that isn't closed; None while something may."""
    processes = [named.process for named in facts.processes if named.process is not None]
    if processes and facts.hosts == (socket.gethostname(),):
        return None if any(map(_is_running, processes)) else "its process has ended without closing it"
    return f"nothing was written for {STALE_S:g} s" if idle_s > STALE_S else None


def _is_running(process: int) -> bool:
    return is_alive(process) and state_of(process) not in _ENDED
