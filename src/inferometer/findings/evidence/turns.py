"""Who may work: some of several threads at once, of which those that wait for what another makes don't count."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Semaphore

_turns: ContextVar[Semaphore | None] = ContextVar("turns", default=None)


@contextmanager
def taken_turn(turns: Semaphore) -> Iterator[None]:
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
        turns.acquire()
