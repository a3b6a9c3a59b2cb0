"""Where both runs mark their steps, a step is a step: what is called more often is a change, and never normalised."""

from pathlib import Path
from typing import Any

import pytest
from tests.analyses.compare.run_traces import HEAD, LAYER, adds_up, kernel_run, some

from inferometer.analyses.compare.comparison import compare
from inferometer.commands.main import main

TWICE = ([*LAYER, *LAYER], [*HEAD, *HEAD])


@pytest.mark.parametrize(
    ("base", "candidate", "repeats", "words"),
    [
        ({}, {"layer": TWICE[0], "head": TWICE[1]}, None, "Every function is called 2.00 times as often per step."),
        (
            {},
            {"layers": 6},
            (4, 6),
            "5 of 6 functions are called 1.50 times as often per step: 6 in place of 4 times, or multiples",
        ),
        (
            {"layers": 6},
            {},
            (6, 4),
            "5 of 6 functions are called 0.67 times as often per step: 4 in place of 6 times, or multiples",
        ),
        ({"layers": 1}, {"layers": 2}, None, "5 of 6 functions are called 2.00 times as often per step."),
    ],
)
def test_a_common_ratio_of_calls_is_named_as_the_change(
    base: dict[str, Any], candidate: dict[str, Any], repeats: tuple[int, int] | None, words: str
) -> None:
    found = compare(kernel_run(seed=0, **base), kernel_run(seed=1, **candidate))
    work = some(found.changes.work)
    assert found.changes.repair is None
    assert work.repeats == repeats
    assert words in found.judged.why
    assert found.comparable.ok
    assert adds_up(found.changes)
    assert found.verdict == ("software change" if some(work.ratio) > 1 else "improvement")


def test_what_calls_add_is_their_number_times_what_one_took_before() -> None:
    """4 layers of 41 us and a head of 5 us; then 6 layers."""
    found = compare(kernel_run(seed=0, noise=0.0), kernel_run(seed=1, noise=0.0, layers=6))
    assert some(found.changes.work).delta_ns == 2 * 41_000
    assert found.as_json()["work"] == {"delta_ns": 82_000, "ratio": 1.5, "functions": 5, "shared": 6, "repeats": [4, 6]}


def test_a_new_kernel_is_named_though_calls_have_no_other_ratio() -> None:
    found = compare(kernel_run(seed=0), kernel_run([*LAYER, ("other_kernel", 12_000)], seed=1))
    assert found.verdict == "software change"
    assert "other kernel (triton) (new)" in found.judged.why
    assert some(found.changes.work).ratio is None


def test_steps_that_only_one_run_marks_are_repaired_as_before() -> None:
    found = compare(kernel_run(seed=0), kernel_run(seed=1, layers=8, marked=False))
    assert found.changes.work is None


@pytest.mark.parametrize("kernel", ["slower", "same"])
def test_kernels_that_are_slower_by_themselves_are_no_more_work(kernel: str) -> None:
    layer = [(name, dur_ns * (2 if kernel == "slower" else 1)) for name, dur_ns in LAYER]
    work = some(compare(kernel_run(seed=0), kernel_run(layer, seed=1)).changes.work)
    assert (work.delta_ns, work.ratio) == (0, None)


def test_check_refuses_a_program_that_does_each_step_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, run in (("base", kernel_run(seed=0)), ("twice", kernel_run(*TWICE, seed=1))):
        run.save(tmp_path / f"{name}.ifm")
    base, twice = str(tmp_path / "base.ifm"), str(tmp_path / "twice.ifm")
    for candidate, code in ((base, 0), (twice, 1)):
        with pytest.raises(SystemExit) as ended:
            main(["compare", base, candidate, "--check"])
        assert ended.value.code == code
    assert "called 2.00 times as often per step" in " ".join(capsys.readouterr().out.split())


def test_norms_once_more_than_layers_leave_the_number_of_layers_known() -> None:
    """A norm before each of two products of a layer and one at the end: 9 and 13 calls."""
    layer = [("norm_kernel", 3_000), ("qkv_kernel", 9_000), ("norm_kernel", 3_000), ("up_kernel", 9_000)]
    head = [("norm_kernel", 3_000), ("softmax_kernel", 5_000)]
    found = compare(kernel_run(layer, head, seed=0), kernel_run(layer, head, seed=1, layers=6))
    assert some(found.changes.work).repeats == (4, 6)
    assert "6 in place of 4 times, or multiples of that, as with more layers." in found.judged.why


def test_more_work_is_named_though_calls_are_slower_too() -> None:
    """As recorded: six layers in place of four read more memory, so that every call takes a little longer."""
    slower = [[(name, round(1.07 * dur_ns)) for name, dur_ns in part] for part in (LAYER, HEAD)]
    found = compare(kernel_run(seed=0), kernel_run(*slower, seed=1, layers=6))
    assert found.verdict == "software change"
    assert "as with more layers." in found.judged.why


def test_less_work_is_an_improvement_though_calls_are_slower() -> None:
    slower = [[(name, round(1.2 * dur_ns)) for name, dur_ns in part] for part in (LAYER, HEAD)]
    found = compare(kernel_run(*TWICE, seed=0), kernel_run(*slower, seed=1))
    assert found.verdict == "improvement"
    assert "Every function is called 0.50 times as often per step." in found.judged.why


@pytest.mark.parametrize(
    ("slower", "words"),
    [
        (3.0, "The step is slower: "),  # the calls explain a third of what the longer kernels add up to
        (0.5, "The step is as long as before, within noise: "),
    ],
)
def test_a_common_ratio_of_calls_is_certain_whatever_else_moved(slower: float, words: str) -> None:
    layer, head = ([(name, round(dur_ns * slower)) for name, dur_ns in part] for part in TWICE)
    found = compare(kernel_run(seed=0, gap_ns=1), kernel_run(layer, head, seed=1, gap_ns=1))
    assert found.verdict == "software change"
    assert found.judged.why.startswith(words)
    assert found.judged.why.endswith("Every function is called 2.00 times as often per step.")
