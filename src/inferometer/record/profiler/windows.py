"""The windows of a profile on their way to the recording: read, joined and written while the next one records."""

import queue
import shutil
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

import polars as pl

from inferometer.errors import InferometerError
from inferometer.record.profiler.account import Account
from inferometer.record.profiler.clock_marks import Mark
from inferometer.record.profiler.window_reader import WindowReader
from inferometer.record.profiler.window_rows import WindowRows
from inferometer.record.profiler.window_tables import Joining, join_window
from inferometer.record.sink import Sink
from inferometer.trace.cpu_launches import CPU
from inferometer.trace.losses import KINDS
from inferometer.trace.tables import TABLES

_WAIT_S = 120.0  # for the rest at the end; then it is given up, and reported


@dataclass(frozen=True)
class Window:
    """One ended window: its number from 1, its file, and the marks of its clock, made by the thread `marking`.

    `threads`: the system's number of a thread by CUPTI's.
    """

    number: int
    path: Path
    marks: Sequence[Mark]
    marking: int | None = None
    threads: Mapping[int, int] = field(default_factory=dict)


class Windows:
    """Takes ended windows and writes their rows to the sink, on a thread of its own.

    Args:
        sink: Takes the rows.
        how: How windows are joined.
        account: What is reported of the profile in the end.
        apart: Read in another process.
    """

    def __init__(self, sink: Sink, how: Joining, account: Account, *, apart: bool = True) -> None:
        self._sink, self._how, self._account = sink, how, account
        self._folder = Path(mkdtemp(prefix="inferometer-windows-"))  # no finalizer: a forked child would run it, too
        self._reader = WindowReader(self._folder, apart=apart)
        self._waiting: queue.Queue[Window | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="inferometer-windows", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Windows that aren't written yet."""
        return self._waiting.unfinished_tasks

    def place(self, number: int) -> Path:
        """Where the file of this window shall be."""
        return self._folder / f"window-{number}.json"

    def take(self, window: Window) -> None:
        """Hand over a window; its file is dropped once it is read."""
        self._waiting.put(window)

    def settle(self) -> None:
        """Return when all windows so far are written."""
        with self._waiting.all_tasks_done:
            self._waiting.all_tasks_done.wait_for(lambda: not self._waiting.unfinished_tasks, _WAIT_S)

    def close(self) -> None:
        """Write the rest and end."""
        self._waiting.put(None)
        self._thread.join(_WAIT_S)
        if self._thread.is_alive():
            self._account.problem("the last windows were given up: reading them took too long")
        self._reader.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self) -> None:
        while (window := self._waiting.get()) is not None:
            try:
                self._write(window)
            except (InferometerError, OSError) as error:
                self._account.lose_window(str(error).partition("\n")[0])
            except Exception as error:  # noqa: BLE001  # the edge of a worker: the next window may go well
                self._account.lose_window(f"{type(error).__name__}: {error}")
            finally:
                window.path.unlink(missing_ok=True)
                self._waiting.task_done()
        self._waiting.task_done()

    def _write(self, window: Window) -> None:
        rows = self._reader.read(window.path)
        joined = join_window(
            rows, window.number, window.marks, self._how, marking=window.marking, threads=window.threads
        )
        if joined.alignment is None:
            self._account.lose_window("nothing in it tells its clock")
            return
        if _has_no_times(joined.tables.get("launches")):
            self._account.lose_window("PyTorch gave its device work no times")
            return
        for name, frame in joined.tables.items():
            write_rows(self._sink, name, frame)
        self._tell(rows)
        self._account.wrote(joined)

    def _tell(self, rows: WindowRows) -> None:
        for loss in rows.about.losses:
            if loss.name in KINDS:
                self._sink.lose(loss.name, loss.count, example=loss.example)
        self._account.found(rows.about)


def _has_no_times(launches: pl.DataFrame | None) -> bool:
    """Whether all take no time, as PyTorch writes them where it has lost its clock; an op of the CPU may take none."""
    if launches is None:
        return False
    taken = launches.filter(pl.col("device").ne_missing(CPU))["dur_ns"]
    return taken.len() > 0 and taken.max() == 0


def write_rows(sink: Sink, table: str, frame: pl.DataFrame) -> None:
    """The columns of `frame` that the table has and that hold anything."""
    schema = TABLES[table].schema
    columns = {name: frame[name] for name in frame.columns if name in schema and frame[name].null_count() < len(frame)}
    sink.add(table, frame.height, columns)
