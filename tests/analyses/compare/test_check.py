"""What a check of CI fails, passes and leaves open, on steps made by hand and on tests of a benchmark."""

from collections.abc import Sequence

import pytest
from tests.analyses.compare.run_traces import kernel_run
from tests.analyses.compare.test_tests import BASE, bench, welch
from tests.traces import trace_of

from inferometer import Trace
from inferometer.analyses.compare.check import check_steps, check_tests
from inferometer.analyses.compare.comparison import compare
from inferometer.analyses.compare.tests import compare_tests


def steps_of(durs_us: Sequence[int]) -> Trace:
    """One kernel fills each step."""
    starts = [sum(durs_us[:i]) for i in range(len(durs_us))]
    rows = [
        {"kernel": "gemm", "start_ns": 1000 * start, "dur_ns": 1000 * dur}
        for start, dur in zip(starts, durs_us, strict=True)
    ]
    spans = [
        {"span": f"ProfilerStep#{i}", "start_ns": row["start_ns"], "dur_ns": row["dur_ns"]}
        for i, row in enumerate(rows)
    ]
    return trace_of(rows, spans=spans)


def test_equal_runs_pass_and_nothing_is_open() -> None:
    checked = check_steps(compare(kernel_run(seed=1), kernel_run(seed=2)), 0.0)
    assert (checked.failed, checked.open) == (False, "")


def test_a_step_that_varies_by_more_than_ten_percent_leaves_a_regression_possible() -> None:
    found = compare(steps_of([100, 180, 90, 210, 110, 160]), steps_of([95, 200, 120, 190, 105, 170]))
    interval = found.comparable.step_ratio_interval
    assert interval is not None
    assert interval[0] < 1 < 1.1 < interval[1]
    checked = check_steps(found, 0.0)
    assert not checked.failed
    assert checked.open == (
        f"A step may take {interval[1]:.3f} times as long as before (95 %). Longer runs narrow that."
    )
    assert check_steps(found, interval[1]).open == "", "what is accepted is excluded"


def test_one_step_of_each_run_has_no_noise_to_judge_by() -> None:
    found = compare(steps_of([100]), steps_of([104]))
    assert found.comparable.step_ratio_interval is None
    checked = check_steps(found, 0.0)
    assert not checked.failed
    assert "what is less than 10.0 % longer passes" in checked.open
    assert check_steps(compare(steps_of([100]), steps_of([111])), 0.0).failed


@pytest.mark.parametrize(
    ("candidate", "failed", "said"),
    [
        ([100.4, 101.2, 99.6, 100.9, 100.2], False, ""),
        ([each * 1.2 for each in BASE], True, ""),
        ([50.0, 150.0, 100.0], False, "pp may take "),
        ([104.0], False, "The noise of pp isn't known."),
        ([200.0], True, ""),
    ],
)
def test_tests_are_checked_by_their_repetitions(candidate: list[float], failed: bool, said: str) -> None:
    checked = check_tests(compare_tests(bench(pp=BASE), bench(pp=candidate)), 0.0)
    assert checked.failed == failed
    assert bool(checked.open) == bool(said)
    assert said in checked.open
    if said.startswith("pp may"):
        assert f"pp may take {welch(BASE, candidate)[1]:.3f} times as long" in checked.open


def test_a_test_of_unknown_noise_may_be_as_much_longer_as_is_accepted() -> None:
    found = compare_tests(bench(pp=BASE), bench(pp=[200.0], tg=BASE))
    assert check_tests(found, 0.0).failed
    assert not check_tests(found, 1.0).failed
