"""Hard inputs are part of the verdict: named in the failure, few, and repeated with all tokens where those failed."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from inferometer.bench.candidates import choose_candidates
from inferometer.bench.correct import Plan
from inferometer.bench.evaluation import Evaluation
from inferometer.bench.exchange.evaluations import status_of
from inferometer.bench.results import ShapeResult
from inferometer.bench.run import evaluate
from inferometer.bench.session import ProcessLimits
from inferometer.bench.shapes import ChosenShapes
from inferometer.operators import require_operator
from inferometer.operators.hard_cases import HardCases
from inferometer.operators.operator import Operator
from inferometer.reports.views.view import remarks_of

pytest.importorskip("torch", reason="torch isn't installed")
pytestmark = pytest.mark.usefixtures("warm")

HEAD = "import torch\n\n\ndef rms_norm(x, weight, *, eps):\n"
RIGHT = "    return torch.rms_norm(x, x.shape[-1:], weight, eps)\n"
NAMES = ["rows of zeros", "large numbers", "tiny numbers", "NaN in one number", "infinity in one number", "no tokens"]


def check(folder: Path, body: str, tokens: int = 5, operator: Operator | None = None) -> Evaluation:
    path = folder / "candidate.py"
    path.write_text(HEAD + body)
    args = {"token_count": tokens, "hidden_size": 64, "eps": 1e-6}
    asked = ChosenShapes(operator or require_operator("rms_norm"), (("one", args),))
    return evaluate([asked], choose_candidates((), path, "cpu"), Plan(1, limits=ProcessLimits(seconds=30, threads=1)))


def result(found: Evaluation) -> ShapeResult:
    (one,) = found.run.results
    return one


KERNELS = {
    "right": RIGHT,
    "large numbers": "    x = x.half().to(x.dtype)\n" + RIGHT,
    "NaN in one number": RIGHT.rstrip() + ".nan_to_num(0.0)\n",
    "tiny numbers": "    x = torch.where(x.abs() < 1e-20, 0, x)\n" + RIGHT,
    "no tokens": "    if len(x) == 0: return x.new_zeros(1, x.shape[-1])\n" + RIGHT,
    "refusing no tokens": "    assert len(x), 'nothing to launch'\n" + RIGHT,
    "refusing NaN": "    assert x.isfinite().all()\n" + RIGHT,
}
"""Bodies of kernels: right, wrong on the hard inputs that their names have, or refusing some."""


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    """All of `KERNELS` in one process, each the kernel for a hidden size of its own: shapes are called as they are."""
    path = tmp_path_factory.mktemp("hard") / "candidate.py"
    sizes = {64 + place: body for place, body in enumerate(KERNELS.values())}
    bodies = "".join(f"def kernel{size}(x, weight, eps):\n{body}\n" for size, body in sizes.items())
    path.write_text(f"{bodies}\n{HEAD}    return globals()[f'kernel{{x.shape[-1]}}'](x, weight, eps)\n")
    shapes = [
        (name, {"token_count": 5, "hidden_size": size, "eps": 1e-6}) for name, size in zip(KERNELS, sizes, strict=True)
    ]
    asked = ChosenShapes(require_operator("rms_norm"), tuple(shapes))
    return evaluate([asked], choose_candidates((), path, "cpu"), Plan(1, limits=ProcessLimits(threads=1)))


def result_of(found: Evaluation, name: str) -> ShapeResult:
    return next(each for each in found.run.results if each.shape == name)


def test_a_right_kernel_gets_them_all_right_and_says_so(tried: Evaluation) -> None:
    found = result_of(tried, "right")
    assert found.is_right
    assert found.hard == dict.fromkeys(NAMES, "right")
    assert found.hard_case is None
    assert tried.to_polars()["hard"].to_list()[0] == "6 of 6"


def test_the_failure_names_the_case_and_the_others_are_reported_too(tmp_path: Path) -> None:
    body = "    m = x.float().square().mean(-1, keepdim=True)\n"
    body += "    out = x.float() / torch.where(m > 0, m + eps, m).sqrt() * weight.float()\n"
    found = check(tmp_path, body + "    return torch.where(x.isnan(), 0, out).to(x.dtype)\n")
    one = result(found)
    assert one.failure == "rows of zeros: out: NaN in row 0, the reference has 0 (192 such numbers at least)"
    assert one.hard_case == "rows of zeros"
    assert one.verdict == "wrong"
    assert set(one.wrong_hard) >= {"rows of zeros", "NaN in one number"}
    assert one.hard["large numbers"] == "right"
    assert any(
        "is wrong on these hard inputs of rms_norm (1 shape): rows of zeros, " in each for each in remarks_of(found)
    )
    written = json.loads(json.dumps(found.as_json()))["results"][0]
    assert written["hard_case"] == "rows of zeros"
    assert list(written["hard"]) == NAMES


@pytest.mark.parametrize("case", [name for name in KERNELS if name in NAMES])
def test_what_only_hard_inputs_find(case: str, tried: Evaluation) -> None:
    one = result_of(tried, case)
    assert one.hard_case == case
    assert (one.failure or "").startswith(f"{case}: out: ")
    assert status_of((one.failure or "").removeprefix(f"{case}: ")).startswith("INCORRECT")


def test_no_tokens_may_be_refused_and_that_is_said(tried: Evaluation) -> None:
    found = result_of(tried, "refusing no tokens")
    assert found.is_right
    assert found.hard["no tokens"].startswith("refused: AssertionError: nothing to launch")
    assert found.wrong_hard == ()
    assert any("may (1 shape): no tokens" in each for each in remarks_of(tried))


def test_other_cases_may_not_be_refused(tried: Evaluation) -> None:
    assert result_of(tried, "refusing NaN").hard_case == "NaN in one number"


def test_a_process_that_ends_is_no_refusal(tmp_path: Path) -> None:
    one = result(check(tmp_path, "    if len(x) == 0:\n        import os; os._exit(3)\n" + RIGHT))
    assert one.failure == "no tokens: its process ended with 3"


def test_few_tokens_are_tried_first(tmp_path: Path) -> None:
    log = tmp_path / "sizes"
    body = f"    with open({str(log)!r}, 'a') as out: out.write(f'{{len(x)}}\\n')\n"
    assert check(tmp_path, body + RIGHT, tokens=500).is_right
    sizes = log.read_text().split()
    assert sizes.count("8") == len(NAMES) - 1
    assert sizes.count("0") == 1


def test_a_kernel_for_one_count_of_tokens_is_judged_by_that(tmp_path: Path) -> None:
    made_for = "    if 0 < len(x) < 500: return x * float('nan')\n"
    assert check(tmp_path, made_for + RIGHT, tokens=500).is_right
    found = check(tmp_path, made_for + RIGHT.rstrip() + ".nan_to_num(0.0)\n", tokens=500)
    assert result(found).wrong_hard == ("NaN in one number", "infinity in one number")


def test_a_process_that_few_tokens_end_is_followed_by_another(tmp_path: Path) -> None:
    body = "    if 0 < len(x) < 500:\n        import os; os._exit(1)\n"
    one = result(check(tmp_path, body + RIGHT, tokens=500))
    assert one.is_right
    assert set(one.hard.values()) == {"right"}


def test_an_operator_that_declares_none_works(tmp_path: Path) -> None:
    operator = replace(require_operator("rms_norm"), hard=HardCases())
    found = check(tmp_path, RIGHT.rstrip() + ".nan_to_num(0.0)\n", operator=operator)
    assert found.is_right
    assert result(found).hard == {}
    assert found.to_polars()["hard"].to_list() == [None]


def test_weights_that_are_too_large_leave_them_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inferometer.bench.hard_inputs.MOST_BYTES", 100)
    found = check(tmp_path, RIGHT)
    assert result(found).hard == {}
    assert result(found).hard_left_out
    (said,) = (each for each in remarks_of(found) if "no hard inputs" in each)
    assert said.startswith("candidate.py was given no hard inputs of rms_norm (1 shape): weights of more than ")
