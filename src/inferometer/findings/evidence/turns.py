"""Who may work: some of several threads at once, of which those that wait for what another makes don't count.

Who makes what others may wait for has the next turn: these would wait for it, too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Condition

_turns: ContextVar["Turns | None"] = ContextVar("turns", default=None)
_is_awaited: ContextVar[bool] = ContextVar("is_awaited", default=False)


class Turns:
    """So many turns to work, of which `free` can be taken; `awaited`: who wait for one, and are waited for."""

    def __init__(self, count: int) -> None:
        self.free, self.awaited = count, 0
        self._changed = Condition()

    def acquire(self, *, is_awaited: bool = False) -> None:
        """Wait for one and take it; who is awaited takes the next one."""
        with self._changed:
            self.awaited += is_awaited
            self._changed.wait_for(lambda: self.free > 0 and (is_awaited or not self.awaited))
            self.awaited -= is_awaited
            self.free -= 1
            self._changed.notify_all()  # others may take what is left

    def release(self) -> None:
        """Give one back."""
        with self._changed:
            self.free += 1
            self._changed.notify_all()


@contextmanager
def taken_turn(turns: Turns) -> Iterator[None]:
    """Work in a turn that was acquired for this thread, and give it back. Threads that this one starts have none."""
    before = _turns.set(turns)
    try:
        yield
    finally:
        _turns.reset(before)
        turns.release()


@contextmanager
def let_others() -> Iterator[None]:
    """Let another thread have this one's turn meanwhile; nothing where it has none."""
    turns = _turns.get()
    if turns is None:
        yield
        return
    turns.release()
    try:
        yield
    finally:
        turns.acquire(is_awaited=_is_awaited.get())


@contextmanager
def awaited() -> Iterator[None]:
    """Make what others may wait for."""
    before = _is_awaited.set(True)
    try:
        yield
    finally:
        _is_awaited.reset(before)
