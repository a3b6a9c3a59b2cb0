"""What profiling costs: one request in each form of its submits, again and again, and the times side by side.

The forms take turns, so that what else the machine does falls on all of them. The first round isn't counted: what is
made at a form's first use (query sets, command lists) is in it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import Any, ClassVar

import polars as pl

from inferometer.analyses.result import Result
from inferometer.engines.webgpu.profile.profiled_run import step_phase
from inferometer.engines.webgpu.run.executor import TIMINGS, Request, Runner, Submission, Timing
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES

ROUNDS = 3
_SCHEMA = {
    "timing": pl.String,
    "rounds": pl.Int64,
    **dict.fromkeys(("prefill_ns", "token_ns", "min_token_ns", "max_token_ns", "ratio"), pl.Float64),
    "untimed": pl.Int64,
}


@dataclass(frozen=True)
class FormTimes:
    """One form of submits. Medians, minima and maxima are over rounds.

    Attributes:
        prefill_ns: Wall time of the submits that read the prompt.
        token_ns: Of a round, the wall time of its decode submits over the decode steps in them. None: there are none.
        ratio: `token_ns` over that of the single pass.
        untimed: Dispatches without usable times in all rounds; 0 where none was to be timed.
    """

    timing: Timing
    rounds: int
    prefill_ns: float
    token_ns: float | None
    min_token_ns: float | None
    max_token_ns: float | None
    ratio: float | None
    untimed: int


@dataclass(frozen=True)
class Overhead(Result):
    """The forms side by side. `same_tokens`: all of them gave the same answer, as they must."""

    view: ClassVar[str] = "webgpu.overhead"
    forms: Sequence[FormTimes]
    same_tokens: bool
    left_out: str | None = None
    losses: Losses = field(default_factory=lambda: Losses(ALL_TABLES))

    def to_polars(self) -> pl.DataFrame:
        """One row per form."""
        return pl.DataFrame([asdict(each) for each in self.forms], schema=_SCHEMA, orient="row")

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "forms": [asdict(each) for each in self.forms],
            "same_tokens": self.same_tokens,
            "left_out": self.left_out,
        }


def measure_overhead(runner: Runner, request: Request, *, rounds: int = ROUNDS) -> Overhead:
    """Run the request `rounds` times in each form that the adapter can, after one round that isn't counted.

    Raises:
        DeviceLost: The device failed.
    """
    timed = "timestamp-query" in runner.adapter.features
    timings = [each for each in TIMINGS if timed or each != "timestamps"]
    found: dict[Timing, list[list[Submission]]] = {timing: [] for timing in timings}
    for number in range(1 + rounds):
        for timing in timings:
            submissions = list(runner.run(replace(request, timing=timing), lambda submission: None))
            if number:
                found[timing].append(submissions)
    base = _token_ns(found["single_pass"])
    answers = {tuple(token for each in one for token in each.tokens) for runs in found.values() for one in runs}
    missing = f"{runner.adapter.name} has no timestamps: the profiled form is left out."
    return Overhead(
        forms=[_times_of(timing, runs, base) for timing, runs in found.items()],
        same_tokens=len(answers) == 1,
        left_out=None if timed else missing,
    )


def _times_of(timing: Timing, runs: Sequence[Sequence[Submission]], base: Sequence[float]) -> FormTimes:
    each = _token_ns(runs)
    return FormTimes(
        timing=timing,
        rounds=len(runs),
        prefill_ns=median(sum(one.wall_ns for one in run if step_phase(one) != "decode") for run in runs),
        token_ns=median(each) if each else None,
        min_token_ns=min(each, default=None),
        max_token_ns=max(each, default=None),
        ratio=median(each) / median(base) if each and base else None,
        untimed=sum(one.untimed for run in runs for one in run),
    )


def _token_ns(runs: Sequence[Sequence[Submission]]) -> list[float]:
    """Of each run with a decode step: wall time of the decode submits over the steps in them."""
    found = []
    for run in runs:
        decode = [one for one in run if step_phase(one) == "decode"]
        if steps := sum(len(one.passes) for one in decode):
            found.append(sum(one.wall_ns for one in decode) / steps)
    return found
