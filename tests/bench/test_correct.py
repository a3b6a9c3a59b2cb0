"""A candidate in its own process: right ones pass, and everything else ends as a reason in words."""

from pathlib import Path

import pytest

from inferometer.bench.correct import Correctness, check_correct
from inferometer.bench.isolation import Limits
from inferometer.bench.shapes import Asked, choose_shapes
from inferometer.errors import InputError
from inferometer.operators import require_operator

pytest.importorskip("torch", reason="torch isn't installed")
CANDIDATES = Path(__file__).parent / "candidates"


def check(candidate: Path, *names: str, cases: int = 2, seconds: float = 30.0) -> Correctness:
    asked = [choose_shapes(require_operator(name), "tiny") for name in names or ("rms_norm",)]
    return check_correct(asked, candidate, cases=cases, limits=Limits(seconds=seconds, threads=1))


def written(folder: Path, body: str) -> Path:
    path = folder / "candidate.py"
    path.write_text("import torch\n" + body)
    return path


def test_right_candidates_of_both_forms_are_right() -> None:
    found = check(CANDIDATES / "right.py", "rms_norm", "silu_and_mul", "moe_sum_reduce")
    assert found.is_right
    assert {each.operator for each in found.checks} == {"rms_norm", "silu_and_mul", "moe_sum_reduce"}
    assert check(CANDIDATES / "published_form.py").is_right


RMS = "def rms_norm(x, weight, *, eps):\n"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (RMS + "    return x", "out: the error is"),
        (RMS + "    x.zero_(); return x", "x: this input was changed"),
        (RMS + "    return torch.empty_like(x)", "where nan is"),
        (RMS + "    return x.missing", "has no attribute 'missing' (line 3 of candidate.py)"),
        (RMS + "    return torch.nn.Parameter(x.float())", "want plain tensors, found Parameter"),
        (RMS + "    import os; os._exit(3)", "its process ended with 3"),
        (RMS + "    import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "its process ended with -11"),
        ("def rms_norm(x): return x", "got an unexpected keyword argument 'eps'"),
        ("def other(): pass", "want a function rms_norm or a class Model in it, found neither"),
        ("raise SystemExit(0)", "SystemExit: 0 (line 2 of candidate.py)"),
        ("def rms_norm(", "SyntaxError"),
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
    assert not any(each.is_right for each in found.checks)
    assert words in (found.checks[0].failure or ""), found.checks[0].failure


def test_a_candidate_that_hangs_is_ended_and_the_next_shape_gets_a_new_process(tmp_path: Path) -> None:
    body = RMS + "    import time\n    time.sleep(100 if len(x) == 63 else 0)\n    return x"
    found = check(written(tmp_path, body), seconds=3.0, cases=1)
    failures = [each.failure or "" for each in found.checks]
    assert [failure.startswith("took longer than 3 s") for failure in failures] == [False, True, False]


def test_what_it_prints_is_no_answer(tmp_path: Path) -> None:
    body = "print('{}')\n" + RMS + "    print('hello'); return x.new_ones(1)"
    assert "want shape" in (check(written(tmp_path, body)).checks[0].failure or "")


def test_the_references_pass_their_own_check() -> None:
    asked: list[Asked] = [choose_shapes(require_operator("l2_norm"), "tiny")]
    found = check_correct(asked, None, cases=1, limits=Limits(threads=1))
    assert found.is_right
    assert found.as_json()["right"] is True


@pytest.mark.parametrize("words", ["x", "3-1", "", "0,", "9999", "-1", "1e3", "0;1"])
def test_other_words_for_shapes_are_refused(words: str) -> None:
    with pytest.raises(InputError):
        choose_shapes(require_operator("rms_norm"), words)


def test_shapes_are_chosen_by_index_and_range() -> None:
    asked = choose_shapes(require_operator("rms_norm"), "0,3-5,4")
    assert [label.split(":")[0] for label, _ in asked.shapes] == ["0", "3", "4", "5"]
    assert len(choose_shapes(require_operator("rms_norm"), "all").shapes) == 56
