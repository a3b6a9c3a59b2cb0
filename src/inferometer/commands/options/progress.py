"""A progress bar on stderr, for people: only on a terminal, and only when the work takes longer than a moment.

Where a program looks on in their place, it is told (`listening`).
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from inferometer.errors import clean
from inferometer.formats.source import Progress

_PATIENCE_S = 0.7
_LISTENER: ContextVar[Progress | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Progress) -> Iterator[None]:
    """Tell `listener` of all that is read meanwhile in this context, and draw no bar."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


@contextmanager
def reading(name: str) -> Iterator[Progress | None]:
    """A callback for bytes read and bytes in all; None where nobody looks on."""
    if not sys.stderr.isatty() or _LISTENER.get() is not None:
        yield _LISTENER.get()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(f"reading {clean(name)}", total=None)
    begun = time.monotonic()

    def report(done: int, total: int | None) -> None:
        if not bar.live.is_started:
            if time.monotonic() - begun < _PATIENCE_S:
                return
            bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield report
    finally:
        bar.stop()


@contextmanager
def working(*, per_second: float = 12.5) -> Iterator[Callable[[str], None]]:
    """A function that is called with what is being made, and shows it until the next.

    `per_second` is how often it is drawn, which takes time from what this process measures meanwhile.
    """
    if not sys.stderr.isatty():
        yield lambda what: None
        return
    from rich.console import Console

    with Console(stderr=True).status("", refresh_per_second=per_second) as status:
        yield lambda what: status.update(f"making {what}")
