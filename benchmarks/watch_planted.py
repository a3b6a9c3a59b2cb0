"""Slowdowns planted in recorded normal steps: the noise is as it was recorded, and how much slower steps are is known.

Of each recording that has a fault only the steps before it are taken, so that what a watcher finds here owes nothing to
the faults themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.watch_pairs import SAMPLES, in_folder, is_quiet

from inferometer.watch.steps import WatchedStep

TIMES: Final = (1.1, 1.2, 1.3, 1.5)
FEWEST: Final = 100
"""Normal steps of a recording."""

_NORMAL: Final = 2 / 3  # of the steps, before the slowdown


def normal_steps(folder: Path | None) -> Iterator[list[WatchedStep]]:
    """Of each labelled recording with enough of them, made on a quiet machine: the samples' and those of a folder."""
    for place in (SAMPLES / "recorded", SAMPLES, *([folder] if folder else [])):
        for stream in in_folder(place):
            steps = [*stream.steps[: stream.slow[0][0]]]
            if len(steps) >= FEWEST and is_quiet(stream.others):
                yield steps


def plant(steps: Sequence[WatchedStep], times: float) -> tuple[list[WatchedStep], int]:
    """The same steps one after the other, the last third of them slower, and the number of the first slow one."""
    first, at_ns, planted = round(len(steps) * _NORMAL), 0, []
    for number, step in enumerate(steps):
        took_ns = round(step.dur_ns * (times if number >= first else 1))
        planted.append(step._replace(start_ns=at_ns, dur_ns=took_ns))
        at_ns += took_ns
    return planted, first
