"""On synthetic serving traces, whose steps are known launch by launch, nearly every step is found exactly."""

from dataclasses import replace

import pytest
from benchmarks.steps_truth import Case, run_case
from tools.kineto_maker import Options

BARE = Options(steps=12, layers=2, prefill_every=5, marks="none", lean=True)


@pytest.mark.parametrize(
    "options",
    [
        BARE,
        replace(BARE, mode="graph"),
        replace(BARE, batches=(1, 8, 32, 128), steps=20),
        replace(BARE, mode="graph", batches=(1, 8, 32, 128), steps=20),
        replace(BARE, threads=2),
        replace(BARE, world=2),
        replace(BARE, world=2, rank=1, threads=2, mode="graph"),
        replace(BARE, fault="host-late"),
        replace(BARE, prefill_every=0),
        replace(BARE, compiled=True),
        replace(BARE, mode="graph", drop_kernels=0.02),
        replace(BARE, layers=1),
        replace(BARE, fault="warm-up"),
        replace(BARE, fault="serial-stream"),
    ],
    ids=lambda options: f"{options.mode}-{len(options.batch_sizes)}-{options.threads}-{options.world}-{options.fault}",
)
def test_steps_of_made_up_traces_are_exact(options: Options) -> None:
    score = run_case(Case("one", options))
    assert (score.exact, score.verdicts["right"]) == (options.steps, options.steps), score.misses
    assert score.extra == 0
