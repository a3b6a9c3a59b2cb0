"""Two runs: what isn't alike about them, verdicts that noise doesn't make, and times that may not be compared."""

import math
from typing import Any

import pytest
from tests.bench.ranking.ranked_runs import result, run_of, timing

from inferometer.bench.ranking.differences import SAME, Differences, ShapeDifference, find_differences, ratio_of
from inferometer.bench.results import Conditions, Contender, Run
from inferometer.reports.terminal import render_terminal
from inferometer.reports.views.view import remarks_of, sections_of


def compare(base: Run, candidate: Run) -> Differences:
    return find_differences(("base.json", base), ("candidate.json", candidate))


def only(found: Differences) -> ShapeDifference:
    (shape,) = found.shapes
    return shape


@pytest.mark.parametrize(
    ("candidate_ns", "half", "verdict"),
    [
        (10_000, 0.005, "same"),
        (10_100, 0.005, "same"),
        (10_000, 0.05, "unclear"),  # nothing tells
        (10_150, 0.001, "same"),
        (10_250, 0.001, "slower"),
        (9_700, 0.001, "faster"),
        (10_250, 0.03, "unclear"),  # beyond the threshold, but the interval holds 1
        (10_150, 0.01, "unclear"),  # within the threshold, but the interval isn't
        (10_150, 0.006, "unclear"),  # the interval leaves 1 out, but the ratio is within the threshold
        (9_850, 0.006, "unclear"),
        (20_000, 0.2, "slower"),
    ],
)
def test_verdicts_need_a_difference_beyond_the_threshold_and_the_interval(
    candidate_ns: float, half: float, verdict: str
) -> None:
    found = compare(run_of(result("k", 0, 10_000, half=half)), run_of(result("k", 0, candidate_ns, half=half)))
    assert only(found).verdict == verdict
    assert found.regressed == (verdict == "slower")


def test_a_run_is_the_same_as_itself_and_nothing_differs() -> None:
    run = run_of(*(result("k", i, 5_000 + i) for i in range(5)))
    found = compare(run, run)
    assert (found.verdicts, found.changes, found.speedup) == ({"same": 5}, (), 1.0)
    assert not found.regressed


def test_faster_and_slower_change_places_with_the_runs() -> None:
    one, other = run_of(result("k", 0, 10_000)), run_of(result("k", 0, 8_000))
    there, back = only(compare(one, other)), only(compare(other, one))
    assert (there.verdict, back.verdict) == ("faster", "slower")
    assert there.speedup is not None
    assert back.speedup is not None
    assert there.speedup.value * back.speedup.value == pytest.approx(1)
    assert there.speedup.low * back.speedup.high == pytest.approx(1)


def test_halves_of_independent_intervals_add_up_as_squares() -> None:
    found = ratio_of(timing(10_000, half=0.03), timing(10_000, half=0.04))
    assert found.low == pytest.approx(math.exp(-math.hypot(math.log(1 / 0.97), math.log(1.04))))
    assert found.high == pytest.approx(math.exp(math.hypot(math.log(1.03), math.log(1 / 0.96))))
    exact = ratio_of(timing(10_000, half=0), timing(10_000, half=0.04))
    assert exact.low == pytest.approx(1 / 1.04)


def test_shapes_that_became_right_or_wrong_come_first_and_have_no_ratio() -> None:
    found = compare(
        run_of(result("k", 0), result("k", 1), result("k", 2, wrong="nan")),
        run_of(result("k", 0, 20_000), result("k", 1, wrong="row 4"), result("k", 2)),
    )
    assert [each.became for each in found.shapes] == [None, "wrong", "right"]
    frame = sections_of(found)[1].frame
    assert frame["verdict"].to_list() == ["became wrong", "became right", "slower"]
    assert frame["why"][0] == "row 4"
    assert remarks_of(found)[0].startswith("Of 3 shapes in both runs 1 became wrong, 1 became right, 1 slower.")
    assert found.regressed


def test_what_differs_between_the_runs_is_listed_and_steady_clocks_aren_t() -> None:
    base = run_of(result("k"), contenders=(Contender(name="k", kind="file", sha256="aa"),))
    candidate = run_of(
        result("k"),
        contenders=(Contender(name="k", kind="file", sha256="bb", settings={"mode": "max"}),),
        versions={"torch": "2.14.0", "triton": "3.8"},
        settings={"cases": 5},
        conditions=Conditions(metrics={"sm_clock_hz": (1.0e9, 1.2e9, 1.3e9)}, throttled={"power cap": 0.25}),
    )
    changes = {each.what: (each.base, each.candidate) for each in compare(base, candidate).changes}
    assert changes == {
        "file of k": ("aa", "bb"),
        "setting of k: mode": (None, "max"),
        "version of torch": ("2.13.0", "2.14.0"),
        "version of triton": (None, "3.8"),
        "setting: cases": ("3", "5"),
        "median of sm_clock": ("1,755 MHz", "1,200 MHz"),
        "throttled: power cap": (None, "25.0 %"),
    }
    near = run_of(result("k"), conditions=Conditions(metrics={"sm_clock_hz": (1.0e9, 1.76e9, 1.9e9)}))
    assert compare(run_of(result("k")), near).changes == ()


@pytest.mark.parametrize(
    ("base", "candidate", "why", "regressed"),
    [
        ({}, {"device": "NVIDIA B200"}, "different devices: NVIDIA H200, and NVIDIA B200", True),
        ({}, {"functional_only": True}, "times of a CPU", True),
        ({"functional_only": True}, {"functional_only": True}, "times of a CPU", False),
        ({}, {"stage": "correct"}, "only one of the runs timed", True),
        ({"stage": "correct"}, {"stage": "correct"}, "neither run has times", False),
    ],
)
def test_times_that_may_not_be_compared_have_no_ratio(
    base: dict[str, Any], candidate: dict[str, Any], why: str, regressed: bool
) -> None:
    found = compare(run_of(result("k"), **base), run_of(result("k", 0, 99_000), **candidate))
    assert why in (found.incomparable or "")
    assert (only(found).speedup, only(found).verdict, found.speedup) == (None, None, None)
    assert found.regressed == regressed
    assert "0.1" not in render_terminal(found, is_terminal=False)  # the ratio would be 0.101


def test_a_shape_that_became_wrong_counts_where_times_don_t() -> None:
    cpu: dict[str, Any] = {"functional_only": True, "device": "CPU"}
    found = compare(run_of(result("k"), **cpu), run_of(result("k", wrong="x"), **cpu))
    assert found.regressed
    assert sections_of(found)[1].frame["verdict"].to_list() == ["became wrong"]


def test_one_contender_each_is_compared_whatever_the_names() -> None:
    found = compare(run_of(result("torch", 0, 10_000)), run_of(result("mine", 0, 5_000)))
    assert only(found).verdict == "faster"
    assert sections_of(found)[1].frame["contender"].to_list() == ["torch, then mine"]


def test_of_several_contenders_only_those_of_one_name_are_compared() -> None:
    found = compare(run_of(result("a"), result("b")), run_of(result("b"), result("c"), result("b", 1)))
    assert [(each.base.contender, each.candidate.contender) for each in found.shapes] == [("b", "b")]
    assert (found.unpaired, found.only_base, found.only_candidate) == (("a", "c"), 0, 1)
    assert "In one run alone, and not compared: a, c." in remarks_of(found)


def test_nothing_in_common_is_no_success() -> None:
    found = compare(run_of(result("a"), result("b")), run_of(result("c")))
    assert (found.shapes, found.regressed) == ((), True)
    assert "nothing is compared" in remarks_of(found)[0]


def test_times_of_different_timers_are_not_compared() -> None:
    events = run_of(result("k"))
    other = (timing(5_000, timer="graph"),)
    graph = run_of(type(events.results[0])(operator="rms_norm", shape="0: 0 tokens", index=0, args={"T": 0},
                                           contender="k", cases=3, timings=other))  # fmt: skip
    found = only(compare(events, graph))
    assert (found.verdict, found.why) == (None, "timed by cupti, then by graph")


def test_the_threshold_is_told_as_a_factor() -> None:
    assert 1 < SAME < 1.1
