"""Labelled pairs of runs as streams: a normal run, the faulty one, the normal one again; and toggled runs.

A pair is two recordings of one program, the second with a fault that is known. A toggled run is one recording in which
the fault came and went. Each is watched as `inferometer watch` does it: causes are asked for at the alarm and at the
end of the slow time, of the steps that came until then. What is right is what `truth.json` says, or, of pairs that came
without one, `TRUTHS`.

A recording counts by the state of its machine, whatever was made of it: where other programs used more than a quarter
of a core in its normal time, or in its fault where that runs none, they are a fault of their own. What they used is
what the recording's own counters say.

A recording that is labelled normal may have become slower by itself. So an alarm that belongs to no fault is looked at
by another way than the watcher's (`watch_shuffled.py`): whether its steps took longer than the other steps of that
recording, and not by chance.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import polars as pl
from benchmarks.watch_shuffled import Longer, find_longer

from inferometer.analyses.compare.causes.metric_roles import role_of_metric
from inferometer.errors import InputError
from inferometer.formats.opening import open_trace
from inferometer.trace.tables import TABLES
from inferometer.trace.trace import Trace
from inferometer.watch.cause import Why
from inferometer.watch.normal import FEWEST
from inferometer.watch.recorded import steps_of
from inferometer.watch.session import Event, Session, What
from inferometer.watch.steps import WatchedStep
from inferometer.watch.watched import Window
from inferometer.watch.watcher import Watcher
from inferometer.watch.why import find_why

SAMPLES: Final = Path(__file__).resolve().parents[1] / "samples"
NAMED: Final = "cause named"
STEPS, SHARE = 30, 0.9
PUBLISHED: Final = "GPU, published tables"
LONGER: Final = 1.1
"""A recorded fault counts where its steps take at least so many times as long."""

OTHERS: Final = 0.25
"""Cores that other programs may have used next to one that counts."""

_UNLIKE: Final = 0.5  # a fault makes no step so much faster

Judged = Literal["right", "unnamed", "wrong"]
TRUTHS: Final[dict[str, dict[str, Any]]] = {
    "gpu_contention": {"verdicts": [NAMED], "causes": ["gpu_contention"]},
    "pcie_traffic": {"verdicts": [NAMED], "causes": ["pcie_traffic"]},
    "cpu_frequency_reduction": {"verdicts": [NAMED], "causes": ["cpu_clock"]},
    "gpu_instability": {"verdicts": [NAMED], "causes": ["gpu_clock"]},
}


@dataclass(frozen=True)
class Labelled:
    """A stream: `trace` with its steps, slow between each two numbers of `slow`; `truth` as `truth.json` has it."""

    name: str
    kind: str
    trace: Trace
    steps: Sequence[WatchedStep]
    slow: Sequence[tuple[int, int]]
    truth: dict[str, Any]

    def times(self, slow: tuple[int, int]) -> float:
        """Mean time of slow steps over that of all normal ones."""
        took = np.array([step.dur_ns for step in self.steps], dtype=np.float64)
        is_normal = np.ones(len(took), dtype=bool)
        for first, end in self.slow:
            is_normal[first:end] = False
        return float(took[slice(*slow)].mean() / took[is_normal].mean())

    def counts(self, slow: tuple[int, int]) -> bool:
        """Whether the bars count it: not where the fault did little, steps are unlike, or other programs ran."""
        return self.times(slow) >= LONGER and is_quiet(self.others)

    @cached_property
    def others(self) -> float | None:
        """Cores that other programs used, the more of normal and slow time; where the fault is one, in normal time."""
        times = [*self._normal_ns()]
        parts = [times, [self._ns(slow) for slow in self.slow]] if self.truth.get("parallel") == "" else [times]
        used = [cores for part in parts if (cores := others_cores(self.trace, part)) is not None]
        return max(used, default=None)

    def _ns(self, steps: tuple[int, int]) -> tuple[int, int]:
        return self.steps[steps[0]].start_ns, self.steps[steps[1] - 1].end_ns

    def _normal_ns(self) -> Iterator[tuple[int, int]]:
        ends = [0, *(end for _, end in self.slow)]
        begins = [*(begin for begin, _ in self.slow), len(self.steps)]
        yield from (self._ns(each) for each in zip(ends, begins, strict=True) if each[0] < each[1])

    def normal_around(self, step: int) -> tuple[int, int]:
        """The stretch without a fault that a step lies in, or that ends before the fault that it lies in."""
        first = max((end for _, end in self.slow if end <= step), default=0)
        return first, min((begin for begin, _ in self.slow if begin > first), default=len(self.steps))


def is_quiet(others: float | None) -> bool:
    """Whether so many cores of other programs leave a recording its own fault; None: not sampled."""
    return (others or 0.0) <= OTHERS


def others_cores(trace: Trace, parts: Sequence[tuple[int, int]]) -> float | None:
    """Cores that programs other than the recorded one used in parts of the time, on average; None where not sampled.

    How many cores there are follows from the program's own use, which is sampled of one core and of all.
    """
    within = pl.any_horizontal([pl.col("time_ns").is_between(*part) for part in parts])
    means = trace.counters.filter(within).group_by("metric").agg(pl.col("value").mean()).collect()
    found = dict(means.iter_rows())
    host, others, own = (found.get(f"{name}_cpu_usage") for name in ("host", "others", "process"))
    if host is None or others is None or own is None or host <= others:
        return None
    return float(others / 100 * own / (host - others))


@dataclass(frozen=True)
class Row:
    """What a watch made of a fault in a stream, or `why_not` it could be watched.

    `others`: cores that other programs used. `steps`: from the onset to the first alarm or "worse" that is dated to
    within `STEPS` of it, the step of the alarm included; None: there was none. `dated`: by how many steps its onset
    lies off the true one, below 0: too early. `cause`: of the first answer after it that names one, the metric or the
    verdict, else the last answer's verdict; `said` in full. `outside`: of each alarm of the stream that belongs to no
    fault, how much longer its steps took.
    """

    name: str
    kind: str
    times: float | None
    counts: bool
    others: float | None = None
    steps: int | None = None
    dated: int | None = None
    ratio: float | None = None
    cause: str | None = None
    judged: Judged = "unnamed"
    said: str = ""
    outside: tuple[Longer, ...] = ()
    recovered: bool = False
    why_not: str = ""

    @property
    def is_soon(self) -> bool:
        """Whether it was noticed within the bar."""
        return self.steps is not None and self.steps <= STEPS


class _Asked(NamedTuple):
    number: int
    why: Why | None


@dataclass
class _AtOnce:
    """Answers as `Explainer` does, at once and in this process."""

    trace: Trace
    _answers: list[_Asked] = field(default_factory=list)

    @property
    def open_questions(self) -> int:
        return len(self._answers)

    def ask(self, number: int, window: Window) -> None:
        self._answers.append(_Asked(number, find_why(self.trace, *window)))

    def answers(self, wait_s: float = 0.0) -> list[_Asked]:
        del wait_s
        answers, self._answers = self._answers, []
        return answers


def watch_labelled(stream: Labelled) -> list[Row]:
    """What `inferometer watch` makes of a stream: a row per time that the fault came."""
    events: list[tuple[int, Event]] = []
    session = Session(
        Watcher(),
        explainer=_AtOnce(stream.trace),  # type: ignore[arg-type]  # of the explainer's shape
        on_event=lambda event: events.append((session.account.steps - 1, event)),
    )
    for step in stream.steps:
        session.watch([step])
    session.finish()
    outside = tuple(_outside(stream, events))
    return [_row(stream, slow, number, events, outside) for number, slow in enumerate(stream.slow)]


def _outside(stream: Labelled, events: list[tuple[int, Event]]) -> Iterator[Longer]:
    """Of each alarm that is dated to no fault, or was raised before it: its steps until they ended."""
    took = np.array([step.dur_ns for step in stream.steps], dtype=np.float64)
    ends = {one.number: one.change.step for _, one in events if one.what is What.RECOVERED and one.change}
    found = []
    for at, event in events:
        if event.what is not What.ALARM or event.change is None:
            continue
        since = event.change.step
        if not any(first - STEPS <= since < end and first <= at for first, end in stream.slow):
            _, end = stream.normal_around(since)
            found.append((since, min(ends.get(event.number, end), end)))
    for begin, stop in found:
        first, end = stream.normal_around(begin)
        others = np.ones(len(took), dtype=bool)
        for slow in found:
            others[slice(*slow)] = False
        yield find_longer(took[begin:stop], took[first:begin][others[first:begin]], took[stop:end][others[stop:end]])


def _row(
    stream: Labelled, slow: tuple[int, int], number: int, events: list[tuple[int, Event]], outside: tuple[Longer, ...]
) -> Row:
    first, end = slow
    name = f"{stream.name}, {number + 1}" if number else stream.name
    times, outside = stream.times(slow), () if number else outside
    row = Row(name, stream.kind, times, stream.counts(slow), stream.others, outside=outside)
    raised = [(at, one) for at, one in events if first <= at < end and one.what in (What.ALARM, What.WORSE)]
    dated = [(at, one) for at, one in raised if one.change and abs(one.change.step - first) <= STEPS]
    if not dated:
        return replace(row, why_not=_why_none(stream, slow))
    at, alarm = dated[0]
    assert alarm.change is not None
    after = [one for at_event, one in events if at_event >= at and one.number == alarm.number]
    answers = [one.slowdown.why for one in after if one.what is What.CAUSE and one.slowdown.why]
    why = next((why for why in answers if _names(why)), answers[-1] if answers else None)
    return replace(
        row,
        steps=at - first + 1,
        dated=alarm.change.step - first,
        ratio=after[-1].slowdown.ratio,
        cause=None if why is None else why.metric or why.verdict,
        judged=judge(stream.truth, why),
        said="" if why is None else f"{why.verdict}. {why.sentence}",
        recovered=any(one.what is What.RECOVERED for one in after),
    )


def _why_none(stream: Labelled, slow: tuple[int, int]) -> str:
    why = "no alarm"
    if slow[0] < FEWEST:
        why += f": {slow[0]} normal steps, and {FEWEST} are learned from before any is judged"
    anchors = stream.trace.steps.select(pl.col("anchor").drop_nulls().unique(maintain_order=True)).collect()
    names = anchors["anchor"].to_list()
    if stream.times(slow) < _UNLIKE and len(names) > 1:
        why += f"; a step is {names[0]} in the first run, {names[1]} in the second"
    return why


def _names(why: Why) -> bool:
    return why.verdict in (NAMED, "software change", "host time")


def judge(truth: dict[str, Any], why: Why | None) -> Judged:
    """Whether an answer is what was done: right, another thing, or neither a cause nor a change."""
    if why is None or not _names(why):
        return "unnamed"
    if why.metric is not None:
        return "right" if role_of_metric(why.metric).cause_class in truth.get("causes", ()) else "wrong"
    is_right = why.verdict in truth["verdicts"] and re.search(truth.get("names", ""), why.sentence)
    return "right" if is_right else "unnamed" if why.verdict == "host time" else "wrong"


def joined(*paths: Path) -> Trace:
    """Recordings of one program one after the other, as if one process had made them: what lies within their steps."""
    traces = [open_trace(str(path)) for path in paths]
    frames: dict[str, list[pl.LazyFrame]] = {}
    at_ns, first = 0, None
    for trace in traces:
        process, begin_ns, end_ns = _extent(trace)
        first = first or process
        for name, frame in trace.tables.items():
            time, schema = TABLES[name].time, TABLES[name].schema
            if time:
                within = frame.filter(pl.col(time).is_between(begin_ns, end_ns, closed="left"))
                frame = within.with_columns(pl.col(time) + (at_ns - begin_ns))
            if "process" in schema:
                is_main = pl.col("process") == process
                frame = frame.with_columns(
                    pl.when(is_main).then(first).otherwise("process").cast(schema["process"]).alias("process")
                )
            frames.setdefault(name, []).append(frame)
        at_ns += end_ns - begin_ns + 1_000_000
    tables = {name: pl.concat(parts) for name, parts in frames.items()}
    return Trace(traces[0].facts, tables, traces[0].losses, scope=traces[0].scope)


def _extent(trace: Trace) -> tuple[int, int, int]:
    """The process of its steps, when the first began, and when the last ended."""
    end_ns = (pl.col("start_ns") + pl.col("dur_ns")).max().alias("end_ns")
    found = trace.steps.select(pl.col("process").first(), pl.col("start_ns").min(), end_ns).collect().row(0)
    if None in found:
        raise InputError(f"{trace.facts.source}: expected steps with their times, found none")
    return found[0], found[1], found[2]


def of_pair(normal: Path, fault: Path, truth: dict[str, Any], name: str, kind: str) -> Labelled:
    """A pair as a stream.

    Raises:
        InputError: There are no steps with a time in one of them.
    """
    counts = [len(steps_of(open_trace(str(path)))) for path in (normal, fault)]
    trace = joined(normal, fault, normal)
    return Labelled(name, kind, trace, steps_of(trace), [(counts[0], sum(counts))], truth)


def of_toggled(run: Path, truth: dict[str, Any], name: str, kind: str) -> Labelled:
    """One recording in which a fault came and went: a step is slow that the fault was there in."""
    trace = open_trace(str(run))
    steps = steps_of(trace)
    starts, ends = ([getattr(step, at) for step in steps] for at in ("start_ns", "end_ns"))
    slow = [(int(np.searchsorted(ends, on)), int(np.searchsorted(starts, off))) for on, off in truth["slow_ns"]]
    return Labelled(name, kind, trace, steps, slow, truth)


def in_folder(folder: Path) -> Iterator[Labelled]:
    """Pairs and toggled runs of a folder, as `tools/record_faults.py` writes them."""
    for path in sorted(folder.glob("*/truth.json")):
        truth = json.loads(path.read_text("utf-8"))
        fault = truth["fault"]
        truth.setdefault("verdicts", [truth.get("verdict", NAMED)])
        truth.setdefault("causes", [truth.get("cause", fault)])
        if (run := path.parent / "run.ifm").exists():
            yield of_toggled(run, truth, fault, "CPU, one run")
        elif fault != "none":
            yield of_pair(path.parent / "normal.ifm", path.parent / "fault.ifm", truth, fault, "CPU, a pair")


def published(folder: Path) -> Iterator[Row]:
    """Pairs that were published as tables, one row per function and cycle: whether they can be watched."""
    for normal in sorted(folder.glob("*/*/normal")):
        name = normal.parent.name
        truth = TRUTHS[name]
        try:
            stream = of_pair(normal, normal.with_name("abnormal"), truth, name, PUBLISHED)
        except InputError as error:
            yield Row(name, PUBLISHED, None, counts=True, why_not=error.message)
            continue
        yield from watch_labelled(stream)


def rows(folder: Path | None, tables: Path | None) -> Iterator[Row]:
    """Of all labelled pairs: samples, those of a folder, and published tables, where they are given."""
    for place in (SAMPLES / "recorded", SAMPLES, *([folder] if folder else [])):
        for stream in in_folder(place):
            yield from watch_labelled(stream)
    for name in ("gpu_contention", "pcie_traffic"):
        h200 = SAMPLES / "h200"
        pair = of_pair(h200 / "normal.ifm", h200 / f"{name}.ifm", TRUTHS[name], name, "H200, a pair")
        yield from watch_labelled(pair)
    if tables:
        yield from published(tables)
