"""A running engine as a source: its metrics once a second, and counters of this machine, into a store of bounded size.

The store is the user's, or a temporary one that goes with the watch: what a cause is looked for in lies on disk, so
that a watch takes little memory however long it lasts.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Self

from inferometer.record.clock import Clock
from inferometer.record.journal.rolling import MOST_BYTES, RollingStore
from inferometer.record.server.http import Http
from inferometer.record.server.metrics import GROWING, EngineMetrics
from inferometer.record.server.place import is_this_machine
from inferometer.record.server.sampling import sampling
from inferometer.record.sink import Sink
from inferometer.trace.builder import Values
from inferometer.trace.facts import Facts
from inferometer.watch.intervals import Intervals, Rates
from inferometer.watch.steps import WatchedStep

ANCHOR = "output token"
"""What delimits an interval's time: it is the mean of so many."""

TEMPORARY_BYTES = 32_000_000
"""Of a store that wasn't asked for: enough for the normal time and the slow one."""


class Readings:
    """A sink that hands all on, and readings of the engine's metrics to `on_reading`, too, with their time.

    Where the engine `is_elsewhere`, counters of this machine are dropped: they would pass for a cause.
    """

    def __init__(
        self, onward: Sink, on_reading: Callable[[int, Mapping[str, float]], object], *, is_elsewhere: bool = False
    ) -> None:
        self._onward, self._on_reading, self._is_elsewhere = onward, on_reading, is_elsewhere

    @property
    def clock(self) -> Clock:
        """The clock that all rows are on."""
        return self._onward.clock

    def add(self, table: str, rows: int, columns: Mapping[str, Values]) -> None:
        """As `Sink.add`."""
        reading = _reading_of(columns) if table == "counters" else None
        if table == "counters" and self._is_elsewhere and reading is None:
            return
        self._onward.add(table, rows, columns)
        if reading:
            self._on_reading(*reading)

    def change_facts(self, change: Callable[[Facts], Facts]) -> None:
        """As `Sink.change_facts`."""
        self._onward.change_facts(change)

    def lose(self, name: str, count: int = 1, *, example: str | None = None) -> None:
        """As `Sink.lose`."""
        self._onward.lose(name, count, example=example)


class Engine:
    """The engine at `http`, asked once a second while the `with` block runs, with the counters of this machine.

    Args:
        http: The engine.
        hz: Samples of this machine's counters a second.
        output: The store to make or to go on with; None: a temporary one.
        on_trouble: Called once where the store can't be written.

    Raises:
        InputError: There is something else at `output`, or nothing can be made there.
    """

    def __init__(
        self,
        http: Http,
        *,
        hz: float = 1.0,
        output: Path | None = None,
        on_trouble: Callable[[str], object] | None = None,
    ) -> None:
        self._http, self._hz = http, hz
        self._steps: SimpleQueue[WatchedStep] = SimpleQueue()
        self._intervals = Intervals()
        self._running = ExitStack()
        self._metrics: EngineMetrics | None = None
        self.lacks: list[str] = []
        most = TEMPORARY_BYTES if output is None else MOST_BYTES
        self.store = RollingStore(output or self._temporary(), most_bytes=most, growing=GROWING, on_trouble=on_trouble)
        self._running.callback(self.store.close)

    def __enter__(self) -> Self:
        is_elsewhere = not is_this_machine(self._http.host)
        sink, hz = Readings(self.store, self._read, is_elsewhere=is_elsewhere), (self._hz, 1.0)
        samples = sampling(sink, self._http, counters=True, hz=hz, lack=self.lacks.append, patient=True)
        self._metrics = self._running.enter_context(samples)
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    @property
    def trouble(self) -> str | None:
        """Why there is nothing new, if there is a reason."""
        if self._metrics is not None and self._metrics.is_gone:
            return f"nothing answers at {self._http.url}"
        return self._metrics.missing if self._metrics else None

    @property
    def rates(self) -> Rates | None:
        """What the engine did in the last interval; None before the first."""
        return self._intervals.rates

    def steps(self, wait_s: float) -> Iterator[WatchedStep]:
        """Those that came since the last call, after `wait_s` at most for the first."""
        try:
            yield self._steps.get(timeout=wait_s)
            while True:
                yield self._steps.get_nowait()
        except Empty:
            return

    def place(self) -> Path:
        """The store, with all that was sampled so far."""
        self.store.flush()
        return self.store.path

    def _temporary(self) -> Path:
        folder = self._running.enter_context(tempfile.TemporaryDirectory(prefix="inferometer-watch-"))
        return Path(folder) / "run.ifm"

    def _read(self, at_ns: int, values: Mapping[str, float]) -> None:
        step = self._intervals.add(at_ns, values)
        if step is not None:
            columns: dict[str, Values] = {
                "start_ns": step.start_ns,
                "dur_ns": step.dur_ns,
                "anchor": ANCHOR,
                "source": "recorded",
            }
            self.store.add("steps", 1, columns)
            self._steps.put(step)


def _reading_of(columns: Mapping[str, Values]) -> tuple[int, dict[str, float]] | None:
    """The time and values where these are of an engine, which come as one reading at a time."""
    metrics, at_ns, values = columns["metric"], columns["time_ns"], columns["value"]
    if not isinstance(metrics, list) or not isinstance(values, list) or not isinstance(at_ns, int):
        return None
    if not str(metrics[0]).startswith("engine."):
        return None
    return at_ns, dict(zip(metrics, values, strict=True))
