"""Steps whose slow times are known: recorded faults as one engine's steps, and made ones."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from inferometer.commands.main import main
from inferometer.watch.steps import WatchedStep
from inferometer.watch.watcher import Change, Watcher

RECORDED = Path(__file__).resolve().parents[2] / "samples" / "recorded"


def made(count: int, *, ms: float = 10.0, seed: int = 0, owner: str | None = None) -> list[WatchedStep]:
    """Steps of one phase with 2 % of noise."""
    random, at, steps = np.random.default_rng(seed), 0, []
    for noise in random.normal(0, 0.02, count):
        took = round(ms * 1e6 * np.exp(noise))
        steps.append(WatchedStep(at, took, "decode", owner))
        at += took
    return steps


def one_after_another(*parts: Sequence[WatchedStep]) -> Iterator[WatchedStep]:
    """Each begins when the one before has ended."""
    at = 0
    for step in (step for part in parts for step in part):
        yield step._replace(start_ns=at)
        at += step.dur_ns


def changes_of(steps: Iterable[WatchedStep], watcher: Watcher | None = None) -> list[Change]:
    """What a watcher says of them."""
    watcher = watcher or Watcher()
    return [change for _, change in map(watcher.add, steps) if change]


def run_watch(*words: object) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `inferometer watch`."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stopped:
        main(["watch", *map(str, words)])
    assert "Traceback" not in out.getvalue() + err.getvalue()
    return int(stopped.value.code or 0), out.getvalue(), err.getvalue()
