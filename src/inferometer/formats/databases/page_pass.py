"""One pass over a table's pages by threads of the library in C++, which gives batches in the file's order.

SQLite's own lock for readers is held meanwhile, so that no program that keeps to it changes a page.
"""

import sqlite3
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from itertools import islice
from pathlib import Path
from typing import Self

from inferometer.formats.databases.native.table import NativeTable, Place, Rows, UnusualTable
from inferometer.formats.native.library import find_library, reading_threads

_AHEAD = 2  # blocks a thread


class PagePass:
    """The rows of `table` as far as they are usual; `is_whole` once they all were."""

    def __init__(self, table: NativeTable, columns: Mapping[str, Place], lock: sqlite3.Connection) -> None:
        self.is_whole = False
        self._table, self._columns, self._lock = table, dict(columns), lock
        self._threads = reading_threads()
        self._pool = ThreadPoolExecutor(self._threads)

    def run(self) -> Iterator[Rows]:
        """Batches, up to the first block that isn't usual."""
        waiting: deque[Future[Rows]] = deque()
        blocks = iter(self._table.blocks())
        with suppress(UnusualTable):
            while True:
                room = 1 + _AHEAD * self._threads - len(waiting)
                waiting.extend(
                    self._pool.submit(self._table.read, each, self._columns) for each in islice(blocks, room)
                )
                if not waiting:
                    break
                yield waiting.popleft().result()
            self.is_whole = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._table.close()
        self._lock.close()


def start_page_pass(path: Path, uri: str, table: str, columns: Mapping[str, Place]) -> PagePass | None:
    """None where the library isn't there, or SQLite itself must read the table."""
    library = find_library()
    if library is None or not columns:
        return None
    with suppress(sqlite3.Error, UnusualTable, TypeError):  # SQLite says what is wrong
        with ExitStack() as opened:
            lock = opened.enter_context(closing(sqlite3.connect(uri, uri=True, isolation_level=None)))
            lock.execute("BEGIN")
            named = "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ?"
            (root,) = lock.execute(named, (table,)).fetchone()  # what it reads takes the lock
            found = PagePass(NativeTable(library, path, root), columns, lock)
            opened.pop_all()
        return found
    return None
