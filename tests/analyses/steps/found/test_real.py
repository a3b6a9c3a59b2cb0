"""Real captures hold one or two steps each: too few to repeat, so none are found, and their marks are read."""

from pathlib import Path

import pytest

import inferometer
from inferometer.analyses.steps.found.finding import find_steps
from inferometer.analyses.steps.sources import NEEDED, read_steps


@pytest.mark.parametrize(
    ("name", "marks"),
    [
        ("a100_simple_add", None),
        ("h100_qwen1.5-0.5b", 1),
        ("mi300_qwen1.5-0.5b", 1),
        ("mi300_sglang_qwen3-8b_decode", 1),
        ("rank0_sampled", 2),
        ("rank1_sampled", 2),
    ],
)
def test_too_few_steps_are_not_guessed(shared_data: Path, name: str, marks: int | None) -> None:
    path = shared_data / "traces" / "kineto" / f"{name}.json.gz"
    with inferometer.open(path, NEEDED) as trace:
        found = find_steps(trace)
        assert found.steps.is_empty()
        assert found.notes[0].startswith("No steps were found in the order of kernels")
        if marks is not None:
            assert read_steps(trace).steps.height == marks
