"""Steps that the user's program marks: `step(phase="decode", batch=4)`.

A step is a row of `steps`, where what wasn't known is null, and a range of `spans` on the thread, named as SGLang names
its steps where it shows as much (`step[DECODE bs=4]`), so that it stands in call paths and viewers.
"""

import itertools
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple

from inferometer.analyses.timeline.recorder_pauses import UNOBSERVED_STEP
from inferometer.record.interception.every_nth import EveryNth
from inferometer.record.sink import Sink
from inferometer.trace.builder import Values

Fact = int | float | str | bool | None
_MODES = {"prefill": "EXTEND", "decode": "DECODE", "mixed": "MIXED"}
_TOLD = ("batch", "prefill_tokens", "decode_tokens", "context_len")
_BREAKS = re.compile(r"[\[\]\s]+")
_ANCHOR = "inferometer.step"
_clock = time.perf_counter_ns


class _Row(NamedTuple):
    """A step that is over."""

    step: int
    phase: str | None
    span: str
    thread: int
    source: str
    start_ns: int
    end_ns: int
    batch: int | None
    prefill_tokens: int | None
    decode_tokens: int | None
    context_len: int | None


def _nothing() -> None:
    pass


@dataclass(eq=False)
class Marks:
    """The steps of one recording. `waiting`: those not yet handed over.

    `cut`: ends ranges that would cross a step's begin or end on this thread. `nth`: leaves steps out,
    where it is given.
    """

    sink: Sink
    cut: Callable[[], None] = _nothing
    nth: EveryNth | None = None
    waiting: list[_Row] = field(default_factory=list)
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def begin(self) -> int:
        """A step begins on this thread; its number."""
        number = next(self.numbers)
        self.cut()
        if self.nth is not None:
            self.nth.begin(number)
        return number

    def end(self, number: int) -> None:
        """It is over."""
        self.cut()
        if self.nth is not None:
            self.nth.end(number)

    def source_of(self, number: int) -> str:
        """What `steps.source` says of a step."""
        return "recorded" if self.nth is None or self.nth.is_observed(number) else UNOBSERVED_STEP

    def flush(self) -> None:
        """Hand over the steps that are over."""
        n = len(self.waiting)
        rows = self.waiting[:n]
        del self.waiting[:n]
        if not rows:
            return
        process, origin_ns = os.getpid(), self.sink.clock.origin_ns
        times: dict[str, Values] = {
            "start_ns": [row.start_ns - origin_ns for row in rows],
            "dur_ns": [r.end_ns - r.start_ns for r in rows],
        }
        known: dict[str, Values] = {
            name: [getattr(row, name) for row in rows] for name in ("step", "phase", *_TOLD, "source")
        }
        self.sink.add("steps", n, {**known, "process": process, **times, "anchor": _ANCHOR})
        where: dict[str, Values] = {"process": process, "thread": [row.thread for row in rows]}
        self.sink.add("spans", n, {"span": [row.span for row in rows], "domain": "steps", **where, **times})


class MarkedStep:
    """A step that began when it was made. As a context manager it ends with the block, else with the next step."""

    def __init__(self, marks: list[Marks], phase: str | None, facts: Mapping[str, Fact]) -> None:
        self._phase = phase
        self._facts = facts
        self._thread = threading.get_native_id()
        self._numbers = [(each, each.begin()) for each in marks]
        self.is_block = False
        self._start_ns = _clock()

    def __enter__(self) -> "MarkedStep":
        self.is_block = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _end_from(self)

    def end(self, only: Marks | None = None) -> None:
        """The step is over; for one recording alone where `only` is given."""
        ending = [each for each in self._numbers if only is None or each[0] is only]
        for marks, number in ending:
            marks.end(number)
        end_ns = _clock()
        known = _known_values(self._phase, self._facts)
        for marks, number in ending:
            name = _name(number, self._phase, self._facts, known)
            where = (number, self._phase, name, self._thread, marks.source_of(number))
            marks.waiting.append(_Row(*where, self._start_ns, end_ns, *(known[k] for k in _TOLD)))
        self._numbers = [] if only is None else [each for each in self._numbers if each[0] is not only]


class _NoStep(MarkedStep):
    """What `step` gives while nothing records."""

    def __init__(self) -> None:
        self.is_block = False

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        pass


_NO_STEP = _NoStep()
_recordings: list[Marks] = []
_open: dict[int, list[MarkedStep]] = {}  # by thread


def step(phase: str | None = None, **facts: Fact) -> MarkedStep:
    """A new step of the program begins on this thread; in a `with` statement it ends with the block.

    Without a recording it does nothing. A step without `with` ends where the next begins, or the recording.

    Args:
        phase: `prefill`, `decode` or `mixed`; another name is kept.
        facts: `batch`, `tokens` (of the phase), `prefill_tokens`, `decode_tokens`, `context_len`; others stand in the
            name of the range.
    """
    if not _recordings:
        return _NO_STEP
    opened = _open.setdefault(threading.get_native_id(), [])
    if opened and not opened[-1].is_block:
        opened.pop().end()
    made = MarkedStep(list(_recordings), phase, facts)
    opened.append(made)
    return made


def begin_marks(marks: Marks) -> None:
    """Steps go to this recording, too, from the next one on."""
    _recordings.append(marks)


def end_marks(marks: Marks) -> None:
    """End this recording's open steps, on all threads, and hand over what waits."""
    _recordings[:] = [each for each in _recordings if each is not marks]
    for thread, opened in list(_open.items()):
        for each in list(opened):
            each.end(only=marks)
        if not _recordings:
            _open.pop(thread, None)
    marks.flush()


def drop_marks(marks: Marks) -> None:
    """No more steps to this recording; those that wait are dropped."""
    _recordings[:] = [each for each in _recordings if each is not marks]
    marks.waiting.clear()


def forget_marks() -> None:
    """In a forked child: steps and recordings are the parent's."""
    _recordings.clear()
    _open.clear()


def _end_from(first: MarkedStep) -> None:
    """End a block and what was begun in it and not ended."""
    opened = _open.get(threading.get_native_id(), [])
    while first in opened:
        opened.pop().end()
    first.end()


def _known_values(phase: str | None, facts: Mapping[str, Fact]) -> dict[str, int | None]:
    """The columns of `steps` that the facts say; by default, a decode step makes one token per sequence."""
    known = {name: _whole(facts.get(name)) for name in _TOLD}
    tokens = _whole(facts.get("tokens"))
    if phase == "prefill" and known["prefill_tokens"] is None:
        known["prefill_tokens"] = tokens
    if phase == "decode" and known["decode_tokens"] is None:
        known["decode_tokens"] = known["batch"] if tokens is None else tokens
    return known


def _whole(fact: Fact) -> int | None:
    return fact if isinstance(fact, int) and not isinstance(fact, bool) else None


def _name(number: int, phase: str | None, facts: Mapping[str, Fact], known: Mapping[str, int | None]) -> str:
    if phase is None and not facts:
        return f"ProfilerStep#{number}"
    mode = _MODES.get(phase or "", (phase or "step").upper())
    tokens = facts.get("tokens", known["prefill_tokens"])
    parts = [
        mode,
        None if known["batch"] is None else f"bs={known['batch']}",
        None if tokens is None else f"toks={tokens}",
    ]
    others = (f"{name}={fact}" for name, fact in facts.items() if name not in (*_TOLD, "tokens"))
    return f"step[{' '.join(_BREAKS.sub('_', part) for part in (*filter(None, parts), *others))}]"
