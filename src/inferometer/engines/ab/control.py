"""Completions in which either arm runs each operator's call, drawn anew: both arms' kernels in the same surroundings.

An operator that takes longer leaves other caches, another clock and threads that fell asleep to what follows, so in
an arm of its own every path may take another time. Here what ran before a call is as often of the one arm as of the
other, whoever runs the call. The second completion of a pair draws the opposite of the first: so each call ran once by
either.
"""

import random
from collections.abc import Mapping
from typing import Any

import polars as pl

from inferometer.analyses.ab.measurement import CONTROL
from inferometer.engines.ab.completion import Work, without_collector
from inferometer.engines.ab.rows import calls_of, paths_of, take_calls
from inferometer.engines.arms import Arm, Check, checking, run, using
from inferometer.engines.paths import PathRecorder


class _Drawn(Check):
    """Hands each call to one of two arms. `ran` says which of them, in the order in which the calls ended."""

    def __init__(self, arms: tuple[Arm, Arm], draw: random.Random) -> None:
        self._arms, self._draw = arms, draw
        self.ran: list[str] = []

    def __call__(self, operator: str, args: tuple[Any, ...], settings: Mapping[str, Any]) -> Any:
        """The answer of the arm that was drawn."""
        arm = self._arms[self._draw.random() < 0.5]
        answer, _ = run(arm, operator, args, settings)
        self.ran.append(arm.name)
        return answer


def run_pair(work: Work, base: Arm, candidate: Arm, number: int, recorder: PathRecorder, seed: int) -> pl.DataFrame:
    """Rows of the table `CONTROL`: two completions as `candidate` runs them, in which `base` has half of the calls."""
    halves = []
    for arms in ((base, candidate), (candidate, base)):
        drawn = _Drawn(arms, random.Random(f"{seed}, {candidate.name}, {number}"))
        with using(candidate), checking(drawn), without_collector(), recorder.entered():
            work.run()
        calls = calls_of(candidate.name, number, take_calls(recorder), paths_of(recorder))
        calls = calls.filter(pl.col("operator").is_not_null()).with_row_index("at")
        halves.append(calls.with_columns(pl.col("arm").alias("candidate"), pl.Series("arm", drawn.ran, pl.String)))
    return pl.concat(halves).sort("at", maintain_order=True).select(list(CONTROL))
