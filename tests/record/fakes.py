"""Parts of a recording that record nothing but what was done with them, and a journal in memory."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inferometer.record.clock import Clock
from inferometer.record.parts import Makers, Options
from inferometer.record.sink import Sink
from inferometer.trace.facts import Facts


@dataclass
class FakeJournal:
    path: Path
    clock: Clock
    rows: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    facts: Facts = field(default_factory=lambda: Facts("recording", "x"))
    lost: list[str] = field(default_factory=list)
    closed: int = 0

    def add(self, table: str, rows: int, columns: Mapping[str, Any]) -> None:
        assert rows > 0
        self.rows.append((table, columns))

    def change_facts(self, change: Callable[[Facts], Facts]) -> None:
        self.facts = change(self.facts)

    def lose(self, name: str, count: int = 1, *, example: str | None = None) -> None:
        self.lost.append(name)

    def close(self) -> None:
        self.closed += 1


@dataclass
class FakePart:
    """Writes a row when it starts, and another, which it held back, when it stops."""

    name: str
    sink: Sink
    said: list[str]
    fails: str = ""

    def start(self) -> None:
        if self.fails:
            raise OSError(self.fails)
        self.said.append(f"{self.name} starts")
        self.sink.add("spans", 1, {"span": f"{self.name} first"})

    def stop(self) -> None:
        self.said.append(f"{self.name} stops")
        self.sink.add("spans", 1, {"span": f"{self.name} last"})


class Fakes:
    """What was made, in order; `makers` for a recording. `fails`: the parts that can't start, and why."""

    def __init__(self, **fails: str) -> None:
        self.journals: list[FakeJournal] = []
        self.said: list[str] = []
        self._fails = fails

    @property
    def makers(self) -> Makers:
        return Makers(self._journal, self._part("counters"), self._part("ops"), self._part("profile"), times_ops=False)

    def _journal(self, path: Path, clock: Clock, *, force: bool) -> FakeJournal:
        self.journals.append(FakeJournal(path, clock))
        return self.journals[-1]

    def _part(self, name: str) -> Callable[[Sink, Options], FakePart]:
        return lambda sink, options: FakePart(name, sink, self.said, self._fails.get(name, ""))
