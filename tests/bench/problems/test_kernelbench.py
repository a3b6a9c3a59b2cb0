"""Problems of KernelBench run as a suite: the same weights, inputs of the problem's own, numbers among them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.bench.problems.datasets import write

from inferometer.bench.correct import Plan
from inferometer.bench.problems.kernelbench import make_operator, read_problem
from inferometer.bench.problems.running import SuiteOutcome, run_suite
from inferometer.bench.problems.suite import Preparation, find_problems
from inferometer.bench.session import ProcessLimits
from inferometer.errors import FormatError

LIMITS = ProcessLimits(seconds=120)
LINEAR = """import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width, out, scale=1.0):
        super().__init__()
        self.linear = nn.Linear(width, out)
        self.scale = scale

    def forward(self, x):
        return self.linear(x) * self.scale


def get_inputs():
    return [torch.rand(8, 32)]


def get_init_inputs():
    return [[32, 16], {"scale": 0.5}]
"""
REDUCED = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, dim):
        return x.sum(dim), x.mean(dim)


def get_inputs():
    return [torch.rand(8, 32), 1]


def get_init_inputs():
    return []
"""
BROKEN = REDUCED.replace("return [torch.rand(8, 32), 1]", "return [object()]")
FUSED = """import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, width, out, scale=1.0):
        super().__init__()
        self.linear = nn.Linear(width, out)
        self.scale = scale

    def forward(self, x):
        return torch.addmm(self.linear.bias * self.scale, x, self.linear.weight.T, alpha=self.scale)
"""
OTHER_WEIGHTS = FUSED.replace("self.linear = nn", "torch.rand(1)\n        self.linear = nn")
WRONG = REDUCED.replace("class Model(", "class ModelNew(").replace("x.mean(dim)", "x.mean(dim) * 1.01")


@pytest.fixture(scope="module")
def outcome(warm: None, tmp_path_factory: pytest.TempPathFactory) -> SuiteOutcome:
    folder = tmp_path_factory.mktemp("kernelbench")
    write(folder / "level1" / "10_Reduced.py", REDUCED)
    write(folder / "level1" / "2_Linear.py", LINEAR)
    write(folder / "level1" / "30_Broken.py", BROKEN)
    write(folder / "mine" / "2_fused.py", FUSED)
    write(folder / "mine" / "2_weights.py", OTHER_WEIGHTS)
    write(folder / "mine" / "level_1_problem_10_sample_0_kernel.py", WRONG)
    write(folder / "mine" / "10_nameless.py", "class Kernel: pass\n")
    preparation = Preparation(folder / "files", Plan(2, "cpu", LIMITS), candidate=folder / "mine")
    return run_suite(find_problems(folder / "level1"), preparation)


def failure(outcome: SuiteOutcome, candidate: str) -> str | None:
    (result,) = [each for each in outcome.evaluation.run.results if each.candidate == candidate]
    return result.failure


def test_problems_run_in_the_order_of_their_numbers(outcome: SuiteOutcome) -> None:
    assert list(dict.fromkeys(each.operator for each in outcome.evaluation.run.results)) == ["2_Linear", "10_Reduced"]


def test_a_model_made_as_the_problems_has_its_weights(outcome: SuiteOutcome) -> None:
    assert failure(outcome, "2_fused.py") is None
    assert "the error is" in (failure(outcome, "2_weights.py") or "")


def test_every_output_counts_and_numbers_are_passed_on(outcome: SuiteOutcome) -> None:
    words = failure(outcome, "level_1_problem_10_sample_0_kernel.py") or ""
    assert words.startswith("output1: the error is 0.01 of the answer")


def test_a_file_without_the_class_is_said(outcome: SuiteOutcome) -> None:
    assert "expected a class ModelNew in 10_nameless.py, found none" in (failure(outcome, "10_nameless.py") or "")


def test_a_problem_whose_code_fails_is_left_out_with_the_reason(outcome: SuiteOutcome) -> None:
    assert list(outcome.evaluation.refused) == ["30_Broken"]
    assert "get_inputs gives a object: expected tensors and numbers" in outcome.evaluation.refused["30_Broken"]


def test_memory_is_made_for_what_the_reference_gives(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed")

    class Asked:
        """A reference: the outer product of its inputs."""

        def ask(self, operator: Any, tensors: Mapping[str, Any], args: Mapping[str, Any]) -> tuple[Any, ...]:
            if args["want"] == "inputs":
                return torch.zeros(2, dtype=torch.int64), torch.ones(300, 1), torch.ones(1, 200)
            return (tensors["input0"] @ tensors["input1"],)

    operator, ((_, args),) = make_operator(tmp_path / "a.py", "a", tmp_path / "job", Asked(), "cpu")  # type: ignore[arg-type]
    assert operator.work(**args).written_bytes == 4 * 300 * 200


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def get_inputs(:\n", r"a\.py:1: expected Python"),
        (REDUCED.replace("class Model(", "class Net("), "expected Model, found none"),
        (REDUCED.replace("def get_init_inputs", "def get_other"), "expected get_init_inputs, found none"),
    ],
)
def test_what_is_no_problem_is_refused(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=words):
        read_problem(write(tmp_path / "a.py", text))
