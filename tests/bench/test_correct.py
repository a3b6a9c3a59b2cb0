"""A candidate in its own process: right ones pass, and everything else ends as a reason in words."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from inferometer.bench.candidates import choose_candidates
from inferometer.bench.correct import Plan
from inferometer.bench.evaluation import Evaluation
from inferometer.bench.results import ShapeResult
from inferometer.bench.run import evaluate
from inferometer.bench.session import ProcessLimits
from inferometer.bench.shapes import ChosenShapes, choose_shapes
from inferometer.errors import InputError
from inferometer.operators import require_operator
from inferometer.reports.views.view import remarks_of

pytest.importorskip("torch", reason="torch isn't installed")
pytestmark = pytest.mark.usefixtures("warm")
CANDIDATES = Path(__file__).parent / "candidates"


def check(candidate: Path, *names: str, cases: int = 2, seconds: float = 30.0, strided: bool = False) -> Evaluation:
    asked = [choose_shapes(require_operator(name), "tiny") for name in names or ("rms_norm",)]
    plan = Plan(cases, "cpu", ProcessLimits(seconds=seconds, threads=1), strided)
    return evaluate(asked, choose_candidates((), candidate, "cpu"), plan)


def checks(found: Evaluation) -> tuple[ShapeResult, ...]:
    return found.run.results


def written(folder: Path, body: str) -> Path:
    path = folder / "candidate.py"
    path.write_text("import torch\n" + body)
    return path


def test_right_candidates_of_both_forms_are_right() -> None:
    found = check(CANDIDATES / "right.py", "rms_norm", "silu_and_mul", "moe_sum_reduce")
    assert found.is_right
    assert {each.operator for each in checks(found)} == {"rms_norm", "silu_and_mul", "moe_sum_reduce"}
    assert check(CANDIDATES / "published_form.py").is_right


RMS = "def rms_norm(x, weight, *, eps):\n"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (RMS + "    import os; os._exit(3)", "its process ended with 3"),
        (RMS + "    import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "its process ended with -11"),
        ("def rms_norm(x): return x", "got an unexpected keyword argument 'eps'"),
        ("def other(): pass", "expected a function rms_norm or a class Model or ModelNew in it, found other"),
        ("raise SystemExit(0)", "SystemExit: 0 (line 2 of candidate.py)"),
        ("def rms_norm(", "SyntaxError: '(' was never closed (candidate.py, line 2)"),
        (
            "import os\n"
            + RMS
            + "    [os.write(n, b'{\"ns\": 1}\\n') for n in range(3, 99) if os.path.exists(f'/proc/self/fd/{n}')"
            " and os.readlink(f'/proc/self/fd/{n}').startswith('pipe')]; os._exit(0)",
            "it wrote no outputs",
        ),
    ],
)
def test_what_is_wrong_is_a_reason_in_words(body: str, words: str, tmp_path: Path) -> None:
    found = check(written(tmp_path, body))
    assert not any(each.is_right for each in checks(found))
    assert words in (checks(found)[0].failure or ""), checks(found)[0].failure


def test_each_shape_has_its_own_reason(tmp_path: Path) -> None:
    """Of one process: how an answer is wrong depends on the number of tokens."""
    bodies = {
        1: ("x.clone()", "out: the error is"),
        2: ("x", "output 0 lies in the memory of the input x: expected a tensor of its own"),
        3: ("x.zero_() + 1", "x: this input was changed"),
        4: ("torch.empty_like(x)", "NaN in row 0, the reference has"),
        5: ("x.missing", "has no attribute 'missing' (line 7 of candidate.py)"),
        6: ("torch.nn.Parameter(x.float())", "expected plain tensors, found Parameter"),
    }
    lines = "".join(f"    if len(x) == {tokens}: return {body}\n" for tokens, (body, _) in bodies.items())
    operator = require_operator("rms_norm")
    shapes = tuple((str(tokens), {"token_count": tokens, "hidden_size": 64, "eps": 1e-6}) for tokens in bodies)
    plan = Plan(1, "cpu", ProcessLimits(threads=1))
    candidate = choose_candidates((), written(tmp_path, RMS + lines), "cpu")
    found = evaluate([ChosenShapes(operator, shapes)], candidate, plan)
    for result, (_, words) in zip(checks(found), bodies.values(), strict=True):
        assert words in (result.failure or "")


def test_a_candidate_that_hangs_is_ended_and_the_next_shape_gets_a_new_process(tmp_path: Path) -> None:
    body = RMS + "    import time\n    time.sleep(100 if len(x) == 63 else 0)\n    return x"
    found = check(written(tmp_path, body), seconds=3.0, cases=1)
    failures = [each.failure or "" for each in checks(found)]
    assert [failure.startswith("took longer than 3 s") for failure in failures] == [False, True, False]


def test_what_it_prints_is_no_answer(tmp_path: Path) -> None:
    body = "print('{}')\n" + RMS + "    print('hello'); return x.new_ones(1)"
    assert "expected shape" in (checks(check(written(tmp_path, body)))[0].failure or "")


def test_a_backend_is_checked_as_a_candidate_is() -> None:
    asked: list[ChosenShapes] = [choose_shapes(require_operator("l2_norm"), "tiny")]
    found = evaluate(asked, choose_candidates(("reference",), None, "cpu"), Plan(1, limits=ProcessLimits(threads=1)))
    assert found.is_right
    assert found.as_json()["right"] is True
    assert {each.candidate for each in checks(found)} == {"reference"}


DENSE_ONLY = (
    "    flat = torch.as_strided(x, x.shape, (x.shape[1], 1))\n"
    "    return torch.rms_norm(flat, flat.shape[-1:], weight, eps)"
)


def test_rows_that_lie_apart_are_told_beside_and_count_where_asked(tmp_path: Path) -> None:
    path = written(tmp_path, RMS + DENSE_ONLY)
    found = check(path)
    assert found.is_right
    assert [each.strided.partition(":")[0] for each in checks(found) if each.strided] == ["right", "wrong", "wrong"]
    assert any("where rows lie apart" in remark for remark in remarks_of(found))
    assert not check(path, strided=True).is_right


def test_a_candidate_may_refuse_rows_that_lie_apart(tmp_path: Path) -> None:
    body = "    assert x.is_contiguous()\n    return torch.rms_norm(x, x.shape[-1:], weight, eps)"
    found = check(written(tmp_path, RMS + body))
    assert found.is_right
    assert (checks(found)[1].strided or "").startswith("refused: AssertionError")


def test_a_candidate_that_takes_too_much_memory_is_refused(tmp_path: Path) -> None:
    body = RMS + "    torch.ones(1 << 28)\n    return torch.rms_norm(x, x.shape[-1:], weight, eps)"
    asked = [choose_shapes(require_operator("rms_norm"), "tiny")]
    limits = ProcessLimits(seconds=30, threads=1, memory_bytes=1 << 30)
    found = evaluate(asked, choose_candidates((), written(tmp_path, body), "cpu"), Plan(1, limits=limits))
    assert "can't allocate memory" in (checks(found)[0].failure or ""), checks(found)[0].failure


@pytest.mark.parametrize("words", ["x", "3-1", "", "0,", "9999", "-1", "1e3", "0;1"])
def test_other_words_for_shapes_are_refused(words: str) -> None:
    with pytest.raises(InputError):
        choose_shapes(require_operator("rms_norm"), words)


def test_shapes_are_chosen_by_index_and_range() -> None:
    asked = choose_shapes(require_operator("rms_norm"), "0,3-5,4")
    assert [label.split(":")[0] for label, _ in asked.shapes] == ["0", "3", "4", "5"]
    assert len(choose_shapes(require_operator("rms_norm"), "all").shapes) == 56


def test_published_shapes_of_an_operator_without_any_are_refused() -> None:
    own = replace(require_operator("rms_norm"), name="own")
    assert own.catalogue().status == "unpublished"
    with pytest.raises(InputError, match="own: expected published shapes, found none"):
        choose_shapes(own, "all")
    assert len(choose_shapes(own, "tiny").shapes) == len(own.tiny)
