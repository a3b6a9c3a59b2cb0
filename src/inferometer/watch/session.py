"""One watch, from its first step to its end: of a recording that is over, or of one that is still being written."""

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from inferometer.errors import InputError
from inferometer.trace.losses import Losses
from inferometer.trace.store import read_store
from inferometer.trace.trace import Trace
from inferometer.watch.recorded import recorded_steps
from inferometer.watch.steps import WatchedStep
from inferometer.watch.watched import Account, Slowdown, Watched
from inferometer.watch.watcher import Change, Watcher
from inferometer.watch.why import find_why

OnChange = Callable[[Slowdown, Change, int], None]


class Session:
    """Hands steps to a watcher, and keeps account.

    Args:
        watcher: Judges them.
        on_change: Called with each change, the slowdown that it belongs to, and the start of the first step, ns.
    """

    def __init__(self, watcher: Watcher, on_change: OnChange | None = None) -> None:
        self._watcher, self._on_change = watcher, on_change
        self._account = Account()

    @property
    def account(self) -> Account:
        """What was seen until now."""
        return self._account

    def watch(self, steps: Iterable[WatchedStep]) -> None:
        """Judge steps, in order of time."""
        for step in steps:
            judged, change = self._watcher.add(step)
            slowdown = self._account.add(judged, change)
            if self._on_change and slowdown is not None and change is not None:
                self._on_change(slowdown, change, self._account.first_ns or 0)

    def explain(self, trace: Trace) -> None:
        """Find the cause of each slowdown, in a trace that holds it and the time before it."""
        self._account.explain(lambda begin, onset, end: find_why(trace, begin, onset, end))

    def result(self, source: str, losses: Losses, *, unit: str = "step") -> Watched:
        """All of it."""
        return self._account.result(self._watcher, source=source, unit=unit, losses=losses)


def is_growing(path: Path) -> bool:
    """Whether this is a store that a recorder is still writing, or left unfinished.

    Raises:
        InputError: It is a store that can't be read.
    """
    from inferometer.trace.store_writer import MANIFEST

    if not (path / MANIFEST).is_file():
        return False
    return read_store(path, ()).facts.recorded.get("finished", True) is False


def follow(path: Path, *, every_s: float = 1.0, until: Callable[[], bool]) -> Iterator[list[WatchedStep]]:
    """The new steps of a recording that is being written, each time it was looked at; ends when it does.

    Args:
        path: The store.
        every_s: Time between two looks.
        until: Asked before each look; True ends it.
    """
    last: dict[str | None, int] = {}
    while not until():
        trace = read_store(path, ("steps",))
        new = []
        for step in recorded_steps(trace, may_grow=True):
            if step.start_ns > last.get(step.owner, -1):
                last[step.owner] = step.start_ns
                new.append(step)
        yield new
        if trace.facts.recorded.get("finished", True):
            return
        time.sleep(every_s)


def require_steps(account: Account, source: str) -> None:
    """Raises `InputError` where nothing was seen."""
    if not account.steps:
        raise InputError(f"{source}: expected steps, found none until the watch ended")
