"""Two runs: what isn't alike about them, verdicts that noise doesn't make, and times that may not be compared."""

from typing import Any

import pytest
from tests.bench.ranking.ranked_runs import result, run_of, timing

from inferometer.bench.ranking.differences import Differences, ShapeDifference, find_differences
from inferometer.bench.results import CandidateRecord, Conditions, Run, ShapeResult
from inferometer.reports.terminal import render_terminal
from inferometer.reports.views.view import remarks_of, sections_of


def compare(base: Run, candidate: Run, **options: Any) -> Differences:
    return find_differences(("base.json", base), ("candidate.json", candidate), **options)


def only(found: Differences) -> ShapeDifference:
    (shape,) = found.shapes
    return shape


@pytest.mark.parametrize(
    ("candidate_ns", "half", "verdict"),
    [
        (10_000, 0.005, "same"),
        (10_100, 0.001, "unclear"),  # medians of two runs of one kernel may be so far apart
        (10_000, 0.05, "unclear"),  # nothing tells
        (10_290, 0.001, "unclear"),  # below the smallest effect, significant or not
        (10_500, 0.001, "slower"),
        (9_500, 0.001, "faster"),
        (10_500, 0.05, "unclear"),  # beyond the smallest effect, but that may be chance
        (20_000, 0.2, "slower"),
    ],
)
def test_verdicts_need_a_difference_beyond_the_smallest_effect_and_chance(
    candidate_ns: float, half: float, verdict: str
) -> None:
    found = compare(run_of(result("k", 0, 10_000, half=half)), run_of(result("k", 0, candidate_ns, half=half)))
    assert only(found).verdict == verdict
    assert found.regressed == (verdict == "slower")


@pytest.mark.parametrize(("smallest", "verdict"), [(0.03, "slower"), (0.06, "unclear"), (0.2, "same")])
def test_the_smallest_effect_is_the_reader_s(smallest: float, verdict: str) -> None:
    found = compare(run_of(result("k", 0, 10_000)), run_of(result("k", 0, 10_500)), smallest=smallest)
    assert (only(found).verdict, found.smallest) == (verdict, smallest)


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


def test_shapes_that_became_right_or_wrong_come_first_and_have_no_ratio() -> None:
    found = compare(
        run_of(result("k", 0), result("k", 1), result("k", 2, wrong="nan")),
        run_of(result("k", 0, 20_000), result("k", 1, wrong="row 4"), result("k", 2)),
    )
    assert [each.became for each in found.shapes] == [None, "wrong", "right"]
    frame = sections_of(found)[-1].frame
    assert frame["verdict"].to_list() == ["became wrong", "became right", "slower"]
    assert frame["why"][0] == "row 4"
    assert remarks_of(found)[0].startswith("Of 3 shapes in both runs 1 became wrong, 1 became right, 1 slower.")
    assert found.regressed


def test_what_differs_between_the_runs_is_listed_and_steady_clocks_aren_t() -> None:
    base = run_of(result("k"), candidates=(CandidateRecord(name="k", kind="file", sha256="aa"),))
    candidate = run_of(
        result("k"),
        candidates=(CandidateRecord(name="k", kind="file", sha256="bb", settings={"mode": "max"}),),
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
    assert sections_of(found)[-1].frame["verdict"].to_list() == ["became wrong"]


def test_one_candidate_each_is_compared_whatever_the_names() -> None:
    found = compare(run_of(result("torch", 0, 10_000)), run_of(result("mine", 0, 5_000)))
    assert only(found).verdict == "faster"
    assert sections_of(found)[-1].frame["contender"].to_list() == ["torch, then mine"]


def test_of_several_candidates_only_those_of_one_name_are_compared() -> None:
    found = compare(run_of(result("a"), result("b")), run_of(result("b"), result("c"), result("b", 1)))
    assert [(each.base_name, each.candidate_name) for each in found.shapes] == [("b", "b")]
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
                                           candidate="k", cases=3, timings=other))  # fmt: skip
    found = only(compare(events, graph))
    assert (found.verdict, found.why) == (None, "timed by cupti, then by graph")


def in_turns(index: int, ns: float, base_ns: float, **more: Any) -> tuple[ShapeResult, ShapeResult]:
    """A kernel and the base that it was timed in turns with."""
    return result("torch", index, base_ns, **more), result("k", index, ns, speedup=base_ns / ns, **more)


def shapes_of(count: int, ns: float, base_ns: float) -> list[ShapeResult]:
    return [each for i in range(count) for each in in_turns(i, ns, base_ns)]


def of_kernel(found: Differences) -> list[ShapeDifference]:
    return [each for each in found.shapes if each.candidate_name == "k"]


def test_what_slows_the_base_as_much_is_drift_and_both_figures_are_told() -> None:
    found = compare(run_of(*shapes_of(30, 5_000, 10_000)), run_of(*shapes_of(30, 5_500, 11_000)))
    assert {each.verdict for each in of_kernel(found)} <= {"same", "unclear"}
    assert not found.regressed
    (drift,), (whole,) = found.drifts, found.wholes
    assert (drift.base, drift.by, drift.base_shapes) == ("torch", "shape", 30)
    assert drift.base_change == pytest.approx(1.1)
    assert (whole.verdict, whole.shapes) == ("same", 30)
    assert whole.speedup.value == pytest.approx(1)
    assert "torch itself: 10.0 % longer, median of 30 shapes. That is taken for drift" in "\n".join(remarks_of(found))
    bases = [each for each in found.shapes if each.candidate_name == "torch"]
    assert {(each.verdict, each.why) for each in bases} == {(None, "the base, which others are compared by")}
    assert [each.ratio for each in bases] == pytest.approx([1 / 1.1] * 30)


@pytest.mark.parametrize("count", [1, 30, 100])
def test_a_slowdown_of_the_whole_kernel_is_no_drift_where_the_base_stands_still(count: int) -> None:
    found = compare(run_of(*shapes_of(count, 5_000, 10_000)), run_of(*shapes_of(count, 5_300, 10_000)))
    (whole,) = found.wholes
    assert (whole.verdict, found.regressed) == ("slower", True)
    assert whole.speedup.value == pytest.approx(5_000 / 5_300)


@pytest.mark.parametrize(("longer", "regressed"), [(1.05, True), (1.02, False), (0.95, False)])
def test_without_a_base_a_common_change_beyond_the_smallest_effect_is_no_drift(longer: float, regressed: bool) -> None:
    base, candidate = (run_of(*(result("k", i, ns) for i in range(100))) for ns in (5_000, 5_000 * longer))
    found = compare(base, candidate)
    assert found.regressed == regressed
    (drift,) = found.drifts
    assert drift.base is None
    said = "\n".join(remarks_of(found))
    assert "k: nothing was timed in turns with it in both runs, so nothing tells drift of the machine from a" in said
    if longer == 1.02:
        assert drift.common == pytest.approx(1.02)
        assert (
            "Its 100 shapes in the median: 2.0 % longer. That is within the smallest effect of 3.0 % and taken" in said
        )
    else:
        assert drift.common is None
        assert "Nothing is taken for drift. k, all 100 shapes together" in said


def test_a_shape_that_stood_still_is_not_slower_for_the_others_getting_faster() -> None:
    base = run_of(*(result("k", i, 5_000) for i in range(100)))
    candidate = run_of(*(result("k", i, 5_000 if i % 3 else 4_000) for i in range(100)))
    found = compare(base, candidate)
    assert "slower" not in found.verdicts
    quick = run_of(*(result("k", i, 4_000 if i % 3 else 5_000) for i in range(100)))
    assert "slower" not in compare(base, quick).verdicts


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"versions": {"torch": "2.14.0"}}, "torch was, but the version of torch isn't the same"),
        ({"inferometer": "0.6"}, "torch was, but the version of inferometer isn't the same"),
        (
            {"candidates": (CandidateRecord(name="torch", kind="file", sha256="bb"),)},
            "torch was, but its file isn't the same",
        ),
        (
            {"candidates": (CandidateRecord(name="torch", kind="file", settings={"mode": "max"}),)},
            "torch was, but its settings aren't the same",
        ),
    ],
)
def test_a_base_that_may_be_another_kernel_pairs_nothing(more: dict[str, Any], why: str) -> None:
    before, after = shapes_of(30, 5_000, 10_000), shapes_of(30, 5_500, 11_000)
    found = compare(run_of(*before), run_of(*after, **more))
    assert [(each.candidate, each.base, each.why) for each in found.drifts] == [
        ("torch", None, "nothing was timed in turns with it in both runs"),
        ("k", None, why),
    ]
    assert found.regressed


def test_the_base_that_both_runs_name_pairs_times_that_nothing_was_timed_against() -> None:
    settings = {"base": "torch"}
    runs = [
        run_of(*(result(name, i, ns * longer) for i in range(5) for name, ns in (("torch", 9e3), ("k", 5e3))),
               settings=settings) for longer in (1, 1.2)
    ]  # fmt: skip
    found = compare(*runs)
    assert [(each.candidate, each.base) for each in found.drifts] == [("k", "torch")]
    assert {each.verdict for each in of_kernel(found)} <= {"same", "unclear"}
    assert found.wholes[0].speedup.value == pytest.approx(1)


def test_an_operator_that_is_slower_over_all_its_shapes_is_named() -> None:
    def run(longer: float) -> Run:
        ops = [(f"op {i}", longer if i == 3 else 1.0) for i in range(10)]
        return run_of(
            *(result("k", i, 5_000 * by * (1 + 0.01 * (-1) ** i), operator=op) for op, by in ops for i in range(8))
        )

    found = compare(run(1), run(1.05))
    assert [each.operator for each in found.operators if each.verdict == "slower"] == ["op 3"]
    assert "Slower over all shapes of the operator: op 3 of k (5.0 % longer)." in remarks_of(found)
    table = sections_of(found)[1]
    assert (table.title, table.frame["operator"].to_list()[:2]) == ("Differences by operator", ["all", "op 3"])
    assert found.regressed
