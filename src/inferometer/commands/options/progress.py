"""What long work is at, on stderr: a bar on a terminal, elsewhere a line every few seconds, for whoever reads the log.

`INFEROMETER_PROGRESS=0` has no such lines. Where a program looks on instead, it is told (`listening`).
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from inferometer.errors import clean
from inferometer.formats.source import Progress
from inferometer.units import format_bytes

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inferometer.commands.options.so_far import SoFar

VARIABLE = "INFEROMETER_PROGRESS"
_PATIENCE_S = 0.7
_EARLY_S = 2.0  # before what is known so far is shown
_LINE_S = 5.0  # between two lines, and before the first
_FEW_BYTES = 10_000_000
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
def reading(name: str, so_far: "SoFar | None" = None) -> Iterator[Progress | None]:
    """A callback for bytes read and bytes in all; None where progress isn't shown.

    On a terminal the lines of `so_far` stand below the bar, once reading has taken a while.
    """
    if _LISTENER.get() is not None:
        yield _LISTENER.get()
        return
    if not sys.stderr.isatty():
        say = _line_sayer()
        yield None if say is None else lambda done, total: say(f"reading {clean(name)}{_part_of(done, total)}")
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    begun = time.monotonic()
    console = Console(stderr=True)

    class BarAndSums(Bar):
        def get_renderables(self) -> "Iterator[RenderableType]":
            yield from super().get_renderables()
            if so_far is not None and time.monotonic() - begun >= _EARLY_S:
                yield from map(Text, so_far.lines(console.width))

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bar = BarAndSums(*columns, console=console, transient=True)
    task = bar.add_task(f"reading {clean(name)}", total=None)

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
def counting(what: str) -> Iterator[Callable[[int, int, int, int], None]]:
    """A callback for things done and in all, and their bytes; shows the rate, and the time that is left at it."""
    begun = time.monotonic()

    def described(done: int, count: int, done_bytes: int, total: int) -> str:
        passed = max(time.monotonic() - begun, 1e-9)
        left = f", {(total - done_bytes) * passed / done_bytes:,.0f} s left" if done_bytes else ""
        return f"{what} {done:,} of {count:,}, {done_bytes / passed / 1e6:,.1f} MB/s{left}"

    if not sys.stderr.isatty():
        say = _line_sayer()
        yield lambda *at: None if say is None else say(described(*at))
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    bar = Bar(BarColumn(), TextColumn("{task.description}", markup=False), console=Console(stderr=True), transient=True)
    with bar:
        task = bar.add_task(f"{what} …", total=None)
        yield lambda *at: bar.update(task, description=described(*at), completed=at[2], total=at[3])


@contextmanager
def working(*, per_second: float = 12.5) -> Iterator[Callable[[str], None]]:
    """A function that is called with what is being made, and shows it until the next.

    `per_second` is how often it is drawn, which takes time from what this process measures meanwhile.
    """
    if not sys.stderr.isatty():
        say = _line_sayer()
        yield lambda what: None if say is None else say(f"making {what}")
        return
    from rich.console import Console

    with Console(stderr=True).status("", refresh_per_second=per_second) as status:
        yield lambda what: status.update(f"making {what}")


def _line_sayer() -> Callable[[str], None] | None:
    """Writes what it is told, unless it wrote a moment ago; None where lines aren't wanted."""
    if os.environ.get(VARIABLE) == "0":
        return None
    begun = shown_at = time.monotonic()

    def say(what: str) -> None:
        nonlocal shown_at
        now = time.monotonic()
        if now - shown_at >= _LINE_S:
            shown_at = now
            sys.stderr.write(f"inferometer: {what}, after {now - begun:.0f} s\n")
            sys.stderr.flush()

    return say


def _part_of(done: int, total: int | None) -> str:
    return f": {done / total:.0%} of {_size(total)}" if total else f": {_size(done)}"


def _size(size_bytes: int) -> str:
    """In whole MB, or smaller units where these are few."""
    return f"{size_bytes / 1e6:,.0f} MB" if size_bytes >= _FEW_BYTES else format_bytes(size_bytes)
