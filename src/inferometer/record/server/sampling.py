"""Counters next to a server's profile: of this machine, of the server's processes, and what the engine counts itself.

Which load is the server's own and which is others' can be known only when its processes are seen; where they aren't,
metrics that tell the two apart are left out, since the server's own work would pass for load by others.
"""

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import compress
from typing import TYPE_CHECKING

from inferometer.record.clock import Clock
from inferometer.record.server.http import Http
from inferometer.record.server.metrics import EngineMetrics
from inferometer.record.server.place import is_this_machine
from inferometer.record.server.process import find_processes
from inferometer.record.sink import Sink
from inferometer.registry import collect
from inferometer.trace.facts import Facts
from inferometer.trace.series import Values

if TYPE_CHECKING:
    from inferometer.record.counters.metric import CounterSource

_OF_PROCESSES = ("process_", "others_")


@contextmanager
def sampling(
    sink: Sink,
    http: Http,
    *,
    counters: bool,
    hz: tuple[float, float],
    lack: Callable[[str], None],
    patient: bool = False,
) -> Iterator[EngineMetrics]:
    """Samples while the block runs; without `counters`, it is only watched whether the server lives.

    Args:
        sink: Takes the rows.
        http: The server.
        counters: Whether to sample.
        hz: Samples a second: of the machine's counters, and of the engine's metrics.
        lack: Called with what can't be had.
        patient: Ask the engine on where an answer has no metrics.
    """
    is_here = is_this_machine(http.host)
    host = socket.gethostname() if is_here else http.host
    metrics = EngineMetrics(sink, http, host, hz=hz[1], sample=counters, patient=patient)
    with ExitStack() as running:
        if counters:
            from inferometer.record.counters.sampler import CounterSampler

            processes = find_processes(http.port) if is_here else ()
            if not is_here:
                lack(f"counters of {host}: those of device and host are of this machine, not of the server's")
            elif not processes:
                lack("counters of the server's processes, and load by others: its processes can't be seen from here")
            takes = sink if processes else WithoutProcesses(sink)
            sampler = CounterSampler(takes, hz=hz[0], processes=processes or None)
            running.callback(sampler.stop)
            sampler.start()
        running.callback(metrics.stop)
        metrics.start()
        yield metrics
    if metrics.missing and counters:
        lack(metrics.missing)


class WithoutProcesses:
    """A sink that drops counters of single processes, which are ours, and of what is left when these are taken off."""

    def __init__(self, sink: Sink) -> None:
        sources: Mapping[str, CounterSource] = collect("inferometer.record.counters", "SOURCE")
        self._own = {metric.name for source in sources.values() for metric in source.metrics if metric.own}
        self._sink = sink

    @property
    def clock(self) -> Clock:
        """The recording's."""
        return self._sink.clock

    def add(self, table: str, rows: int, columns: Mapping[str, Values]) -> None:
        """Rows of one table, as `Sink.add`."""
        metric = columns.get("metric")
        if table != "counters" or metric is None or isinstance(metric, int | float):
            self._sink.add(table, rows, columns)
            return
        metrics = [metric] * rows if isinstance(metric, str) else metric
        kept = [name not in self._own and not str(name).startswith(_OF_PROCESSES) for name in metrics]
        if any(kept):
            self._sink.add(table, sum(kept), {name: _compressed(values, kept) for name, values in columns.items()})

    def change_facts(self, change: Callable[[Facts], Facts]) -> None:
        """As `Sink.change_facts`."""
        self._sink.change_facts(change)

    def lose(self, name: str, count: int = 1, *, example: str | None = None) -> None:
        """As `Sink.lose`."""
        self._sink.lose(name, count, example=example)


def _compressed(values: Values, kept: list[bool]) -> Values:
    """Of a column only the rows that are kept; a single value is that of all rows."""
    return values if values is None or isinstance(values, str | int | float) else list(compress(values, kept))
