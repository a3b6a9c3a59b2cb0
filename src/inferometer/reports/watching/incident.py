"""The page about a slowdown: its normal time and its slow time as two runs, as `inferometer report` shows them.

While a watch goes on, a page is made in a process of its own, as causes are found. It is made when a cause was looked
for, and again when the slowdown is over.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from inferometer.errors import InferometerError
from inferometer.formats.opening import open_trace
from inferometer.guarded import Guarded
from inferometer.new_files import NewFile, begins_with
from inferometer.trace.trace import Trace
from inferometer.watch.following import store_of
from inferometer.watch.watched import Window
from inferometer.watch.why import windows_of

_BYTES = 4 << 30
_SECONDS = 300.0
_CLOSE_S = 120.0
_KIND = begins_with("HTML page", b"<!doctype html")


def page_in(folder: Path, number: int) -> Path:
    """Where the page of slowdown `number`, from 0, is."""
    return folder / f"slowdown-{number + 1}.html"


def write_incident(trace: Trace, window: Window, place: Path, title: str) -> None:
    """Write the page, in the place of an older one.

    Raises:
        InputError: One of the two times holds nothing that could be shown, or nothing can be written there.
    """
    from inferometer.reports.page.document import TEXT_BYTES_OF_TWO, render_page
    from inferometer.reports.page.look import PageData
    from inferometer.reports.page.section import build_blocks

    normal, slow = windows_of(trace, *window)
    source = trace.facts.source
    look = PageData(normal.under_name(f"{source}, normal"), slow.under_name(f"{source}, slow"))
    blocks = build_blocks(look, is_beside=True)
    page = render_page(blocks, title=title, text_bytes=TEXT_BYTES_OF_TWO)
    with NewFile(place, force=True, kind=_KIND) as file:
        file.write_text(page.html, encoding="utf-8")


class Incidents:
    """Makes pages while a watch goes on, one after the other.

    Args:
        folder: That pages are made in; it is made where it isn't there.
        place: Brings what was recorded so far to disk, and gives the store or the folder of stores.
        on_done: Called, from another thread, with what was made, or why it couldn't be.

    Raises:
        InputError: There can be no such folder.
    """

    def __init__(self, folder: Path, place: Callable[[], Path], on_done: Callable[[str], object]) -> None:
        self._folder, self._place, self._on_done = made_folder(folder), place, on_done
        self._asked: SimpleQueue[tuple[int, Window, str] | None] = SimpleQueue()
        self._process = Guarded(__name__, memory_bytes=_BYTES, seconds=_SECONDS, bounded="data")
        self._thread = threading.Thread(target=self._run, name="inferometer-incidents", daemon=True)
        self._thread.start()

    def ask(self, number: int, window: Window, title: str) -> None:
        """A page about slowdown `number`."""
        self._asked.put((number, window, title))

    def close(self) -> None:
        """Make what was asked for, for two minutes at most."""
        self._asked.put(None)
        self._thread.join(_CLOSE_S)
        self._process.close()

    def _run(self) -> None:
        while (asked := self._asked.get()) is not None:
            number, window, title = asked
            page = page_in(self._folder, number)
            try:
                self._process.call("page", str(self._place()), [*window], str(page), title)
                self._on_done(f"Written: {page}")
            except InferometerError as error:
                self._on_done(f"No page about slowdown {number + 1}: {error.message}")
            finally:
                self._process.close()


def made_folder(folder: Path) -> Path:
    """The folder, made if it isn't there. Raises `InputError` where it can't be."""
    from inferometer.errors import InputError

    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder}: expected a folder for pages: {error.strerror}", hint="Give another name."
        ) from error
    return folder


def _page(path: str, window: list[int], page: str, title: str) -> None:
    with (
        TemporaryDirectory(prefix="inferometer-watch-") as scratch,
        open_trace(store_of(Path(path), Path(scratch))) as t,
    ):
        write_incident(t, Window(*window), Path(page), title)


SERVED = {"page": _page}
