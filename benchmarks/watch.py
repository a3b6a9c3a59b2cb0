"""`inferometer watch` on streams whose slow times are known, next to alert rules as Prometheus has them.

    python -m benchmarks.watch                       10 hours of normal load, planted slowdowns, recorded faults
    python -m benchmarks.watch --hours 0.2 --streams 4
    python -m benchmarks.watch --pairs FOLDER --published FOLDER

Normal load and planted slowdowns are simulated (`watch_load`); recorded faults are all labelled pairs (`watch_pairs`):
those of `samples`, of a folder that `tools/record_faults.py` filled, and published ones. Into the normal steps of the
recorded ones slowdowns are planted, too (`watch_planted`).

The rules are two that are widely used: the mean of a minute
above 1.5 times the mean of the hour before it, and the 95th percentile of five minutes above twice that of the hour,
each for a minute, evaluated every 15 seconds. JSON goes to stdout, the page to `--page FILE`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from benchmarks.machine import describe_machine, our_versions, use_cores
from benchmarks.watch_load import HOUR_S, Load
from benchmarks.watch_pairs import SHARE, STEPS, rows
from benchmarks.watch_pairs_page import of_all, pair_bars, pairs_table
from benchmarks.watch_planted import TIMES as RECORDED_TIMES
from benchmarks.watch_planted import normal_steps, plant

from inferometer.watch.steps import WatchedStep
from inferometer.watch.watcher import Kind, Watcher

TIMES: Final = (1.1, 1.2, 1.5, 2.0, 3.0)
_NORMAL_S: Final = 900.0
_SLOW_S: Final = 240.0
_AFTER_S: Final = 300.0
_EVERY_S: Final = 15.0
_FOR: Final = 4  # evaluations in a row


@dataclass(frozen=True)
class Outcome:
    """Of one stream. `delay_s` and `steps` are from the onset to the alarm, None where it came before, or never."""

    times: float
    false_alarms: int
    delay_s: float | None
    steps: int | None
    recovered: bool


@dataclass(frozen=True)
class Stream:
    """Steps, slow from the number `first` up to `end`, by about `times`; `name` says what they are."""

    name: str
    steps: Sequence[WatchedStep]
    first: int
    end: int
    times: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 where a bar doesn't hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=10.0, metavar="N", help="of normal load (%(default)s)")
    parser.add_argument("--streams", type=int, default=20, metavar="N", help="with a slowdown each (%(default)s)")
    parser.add_argument("--pairs", type=Path, metavar="FOLDER", help="recorded by tools/record_faults.py")
    parser.add_argument("--published", type=Path, metavar="FOLDER", help="of published tables: ENGINE/FAULT/normal")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write what was found as Markdown")
    given = parser.parse_args(arguments)
    found = measure(given.hours, given.streams, given.pairs, given.published)
    print(json.dumps(found, indent=1))
    if given.page:
        given.page.write_text(page_of(found), encoding="utf-8")
    return 0 if all(found["bars"].values()) else 1


def measure(hours: float, streams: int, pairs: Path | None = None, published: Path | None = None) -> dict[str, Any]:
    """All three, with the machine."""
    cores = use_cores(1)
    machine = describe_machine(cores)
    normal = of_normal_load(hours)
    planted = [planted_stream(number, TIMES[number % len(TIMES)]) for number in range(streams)]
    watched = [watch(each) for each in planted]
    rules = {name: [rule(each, name) for each in planted] for name in RULES}
    strong = [one for one in watched if one.times >= 1.5]
    soon = sum(one.steps is not None and one.steps <= STEPS for one in strong)
    labelled = [*rows(pairs, published)]
    recorded = [asdict(one) for one in of_recorded_steps(pairs)]
    return {
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine,
        "versions": our_versions(("polars", "scipy")),
        "normal": normal,
        "streams": [replace(each, steps=()).__dict__ for each in planted],
        "watch": [asdict(one) for one in watched],
        "pairs": [asdict(row) for row in labelled],
        "recorded": recorded,
        "rules": {name: [asdict(one) for one in some] for name, some in rules.items()},
        "bars": {
            "no alarm of normal load": normal["alarms"] == 0,
            f"planted slowdowns of 1.5 times or more: alarm within {STEPS} steps in 9 of 10 "
            f"({soon} of {len(strong)})": soon >= SHARE * len(strong),
            "planted slowdowns: no alarm before the onset": not any(one.false_alarms for one in watched)
            and not any(one["false_alarms"] for one in recorded),
            "planted slowdowns: each recovery seen": all(one.recovered for one in watched if one.steps),
            **pair_bars(labelled),
        },
    }


def of_recorded_steps(folder: Path | None) -> list[Outcome]:
    """Of each recording's normal steps, with each planted slowdown."""
    found = []
    for steps in normal_steps(folder):
        for times in RECORDED_TIMES:
            planted, first = plant(steps, times)
            found.append(watch(Stream("recorded", planted, first, len(planted), times)))
    return found


def of_normal_load(hours: float) -> dict[str, Any]:
    """Alarms of so many hours, and what the watcher costs."""
    watcher, alarms, steps, used_ns = Watcher(), 0, 0, 0
    for step in Load(seed=7).steps(hours * HOUR_S):
        began_ns = time.process_time_ns()
        _, change = watcher.add(step)
        used_ns += time.process_time_ns() - began_ns
        alarms += change is not None and change.kind is Kind.ALARM
        steps += 1
    return {"hours": hours, "steps": steps, "alarms": alarms, "us_per_step": used_ns / steps / 1e3}


def planted_stream(number: int, times: float) -> Stream:
    """Simulated: a quarter of an hour of normal load, some minutes of slow steps, some minutes of normal ones."""
    end_s = _NORMAL_S + _SLOW_S
    steps = [*Load(seed=100 + number, slow=((_NORMAL_S, end_s, times),)).steps(end_s + _AFTER_S)]
    starts = [step.start_ns / 1e9 for step in steps]
    first, end = (int(np.searchsorted(starts, at)) for at in (_NORMAL_S, end_s))
    return Stream(f"planted {number}", steps, first, end, times)


def watch(stream: Stream) -> Outcome:
    """What the watcher makes of a stream."""
    watcher, false_alarms, alarm, recovered = Watcher(), 0, None, False
    for number, step in enumerate(stream.steps):
        _, change = watcher.add(step)
        if change is None:
            continue
        if change.kind is Kind.ALARM:
            is_true = stream.first <= number < stream.end
            false_alarms += not is_true
            alarm = number if is_true and alarm is None else alarm
        recovered |= change.kind is Kind.RECOVERED and number >= stream.end
    return _outcome(stream, alarm, false_alarms, recovered)


def rule(stream: Stream, name: str) -> Outcome:
    """What an alert rule makes of it: the first evaluation at which it fires."""
    starts = np.array([step.start_ns for step in stream.steps]) / 1e9
    took = np.array([step.dur_ns for step in stream.steps]) / 1e9
    window_s, share, above = RULES[name]
    in_a_row, is_firing, false_alarms, alarm, recovered = 0, False, 0, None, False
    for at in np.arange(_EVERY_S, starts[-1], _EVERY_S):
        now, before = (took[slice(*np.searchsorted(starts, (low, at)))] for low in (at - window_s, at - HOUR_S))
        is_above = len(now) > 0 and at > window_s and _of(now, share) > above * _of(before, share)
        in_a_row = in_a_row + 1 if is_above else 0
        number = int(np.searchsorted(starts, at)) - 1
        if in_a_row >= _FOR and not is_firing:
            is_true = stream.first <= number < stream.end
            false_alarms += not is_true
            alarm = number if is_true and alarm is None else alarm
        recovered |= is_firing and not in_a_row and number >= stream.end
        is_firing = in_a_row >= _FOR
    return _outcome(stream, alarm, false_alarms, recovered)


RULES: Final = {"mean of 1 min": (60.0, None, 1.5), "95 % of 5 min": (300.0, 95.0, 2.0)}


def _of(times: np.ndarray[Any, Any], share: float | None) -> float:
    return float(times.mean() if share is None else np.percentile(times, share))


def _outcome(stream: Stream, alarm: int | None, false_alarms: int, recovered: bool) -> Outcome:
    if alarm is None:
        return Outcome(stream.times, false_alarms, None, None, recovered=False)
    end = stream.steps[alarm]
    delay_s = (end.end_ns - stream.steps[stream.first].start_ns) / 1e9
    return Outcome(stream.times, false_alarms, delay_s, alarm - stream.first + 1, recovered)


def page_of(found: dict[str, Any]) -> str:
    """The page of `benchmarks/results`."""
    normal, versions, date = found["normal"], found["versions"], found["date"]
    lines = [
        "# Watching steps",
        "",
        f"`python -m benchmarks.watch --hours {normal['hours']:g}`, {date}, inferometer {versions['inferometer']},",
        f"Python {versions['python']}.",
        "",
        f"Normal load, simulated: {normal['hours']:g} hours, {normal['steps']:,} steps, {normal['alarms']} alarms.",
        f"A step took {normal['us_per_step']:.0f} µs of the processor.",
        "",
        *pairs_table(found["pairs"]),
        "",
        of_all(found["pairs"]),
        "",
        *_recorded_lines(found["recorded"]),
        "",
        "Slowdowns of four minutes planted in simulated load, after a quarter of an hour:",
        "",
        "| Times as long | Streams | By | Found | Median delay | False alarms | Recovery seen |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for times in TIMES:
        for name, some in (("watch", found["watch"]), *found["rules"].items()):
            lines += [_planted_line(times, name, [one for one in some if one["times"] == times])]
    lines += ["", "| Bar | Holds |", "| --- | --- |"]
    return "\n".join([*lines, *(f"| {bar} | {_yes(holds)} |" for bar, holds in found["bars"].items())]) + "\n"


def _recorded_lines(found: list[dict[str, Any]]) -> list[str]:
    lines = [
        "Slowdowns planted in the last third of recorded normal steps, of each recording with enough of them:",
        "",
        f"| Times as long | Recordings | Alarm within {STEPS} steps | Alarm at all | Alarms before |",
        "| --- | --- | --- | --- | --- |",
    ]
    for times in RECORDED_TIMES:
        some = [one for one in found if one["times"] == times]
        steps = [one["steps"] for one in some if one["steps"] is not None]
        soon, early = sum(each <= STEPS for each in steps), sum(one["false_alarms"] for one in some)
        lines.append(f"| {times:g} | {len(some)} | {soon} | {len(steps)} | {early} |")
    return lines


def _planted_line(times: float, name: str, some: list[dict[str, Any]]) -> str:
    delays = [one["delay_s"] for one in some if one["delay_s"] is not None]
    delay = f"{median(delays):.1f} s" if delays else "-"
    false_alarms, recovered = sum(one["false_alarms"] for one in some), sum(one["recovered"] for one in some)
    return f"| {times:g} | {len(some)} | {name} | {len(delays)} | {delay} | {false_alarms} | {recovered} |"


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


if __name__ == "__main__":
    raise SystemExit(main())
