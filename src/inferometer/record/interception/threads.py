"""New Python threads run under the dispatch modes of the interceptions that are on when they begin.

Threads that are made below Python's `threading` aren't seen here; neither are those that ran already (see `modules`).
"""

import threading
from collections.abc import Callable
from typing import Any, Protocol

OURS = "inferometer"  # how threads of the recording itself are called: they run no ops


class Joined(Protocol):
    """What wants to see a thread's beginning and end, on that thread."""

    def begin_thread(self) -> None:
        """The thread begins."""

    def end_thread(self) -> None:
        """The thread ends."""


_watching: list[Joined] = []
_lock = threading.Lock()
_original: list[Callable[..., Any]] = []  # while it is replaced


def watch(joined: Joined) -> None:
    """Tell this one of threads from now on."""
    with _lock:
        _watching.append(joined)
        if not _original:
            _original.append(threading.Thread._bootstrap_inner)  # type: ignore[attr-defined]
            threading.Thread._bootstrap_inner = _run_watched  # type: ignore[attr-defined]


def unwatch(joined: Joined) -> None:
    """No longer; the last one puts back what was there, unless another tool has put its own since."""
    with _lock:
        _watching[:] = [each for each in _watching if each is not joined]
        is_ours = threading.Thread._bootstrap_inner is _run_watched  # type: ignore[attr-defined]
        if not _watching and _original and is_ours:
            threading.Thread._bootstrap_inner = _original.pop()  # type: ignore[attr-defined]


def _run_watched(thread: threading.Thread) -> None:
    run = _original[0] if _original else threading.Thread._bootstrap_inner  # type: ignore[attr-defined]
    joined = [] if thread.name.startswith(OURS) else list(_watching)
    for each in joined:
        each.begin_thread()
    try:
        run(thread)
    finally:
        for each in reversed(joined):
            each.end_thread()
