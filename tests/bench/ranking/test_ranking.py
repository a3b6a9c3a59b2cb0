"""The order of candidates: right first, ties reported, only what is comparable, and nothing dropped in silence."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from tests.bench.ranking.ranked_runs import result, run_of, timing, versus

from inferometer.bench.ranking.ranking import DeviceRanking, Ranking, rank_runs
from inferometer.bench.results import Run, ShapeResult
from inferometer.errors import FormatError, UnknownName
from inferometer.reports.terminal import render_terminal
from inferometer.reports.views.view import remarks_of, sections_of, table_of


def order(device: DeviceRanking) -> list[tuple[str, int | None, bool]]:
    return [(each.name, each.rank, each.is_tied) for each in device.candidates]


def rank(*runs: Run, **options: Any) -> Ranking:
    return rank_runs([(f"run{i}.json", run) for i, run in enumerate(runs)], **options)


def shapes(name: str, ns: float | None, count: int = 3, **more: Any) -> list[ShapeResult]:
    return [result(name, i, ns, **more) for i in range(count)]


def remarks(ranking: Ranking) -> str:
    return "\n".join(remarks_of(ranking))


def test_right_stands_before_wrong_and_then_the_score_decides() -> None:
    wrong = [*shapes("quick but wrong", 5_000, 2), result("quick but wrong", 2, wrong="row 7")]
    found = rank(run_of(*shapes("slow", 20_000), *wrong, *shapes("quick", 6_000)))
    (device,) = found.devices
    assert device.by == "score"
    assert order(device) == [("quick", 1, False), ("slow", 2, False), ("quick but wrong", 3, False)]


def test_overlapping_intervals_are_a_tie_and_the_next_rank_is_left_out() -> None:
    found = rank(
        run_of(*shapes("a", 10_000), *shapes("b", 10_050), *shapes("c", 12_000), *shapes("d", 9_000)),
    )
    assert order(found.devices[0]) == [("d", 1, False), ("a", 2, True), ("b", 2, True), ("c", 4, False)]
    assert sections_of(found)[0].frame["rank"].to_list() == ["1", "2=", "2=", "4"]


def test_a_wrong_shape_stands_behind_also_where_no_s_is_lost() -> None:
    """An older file, whose bound was a launch: the shape has no S, right or wrong."""
    launch: dict[str, Any] = {"operator": "fused_qkv_rope", "bound_ns": 2_000.0, "binding": "launch"}
    wrong = [result("a wrong one", 0), result("a wrong one", 0, wrong="late", **launch)]
    found = rank(run_of(*wrong, result("b", 0), result("b", 0, 3_000, **launch)))
    assert order(found.devices[0]) == [("b", 1, False), ("a wrong one", 2, False)]
    older = "1 shape with what a launch takes in place of a bound, as older versions had it: these have no S."
    assert older in remarks(found)


def test_a_tie_is_with_the_first_of_the_rank_so_that_chains_end() -> None:
    """a overlaps b and b overlaps c, but a doesn't overlap c."""
    found = rank(run_of(*shapes("a", 10_000), *shapes("b", 10_080), *shapes("c", 10_160)))
    assert order(found.devices[0]) == [("a", 1, True), ("b", 1, True), ("c", 3, False)]


def test_without_bounds_the_speedup_over_a_base_decides() -> None:
    none: dict[str, Any] = {"bound_ns": None}
    found = rank(
        run_of(*shapes("torch", 10_000, **none), *shapes("mine", 5_000, speedup=2.0, **none),
               *shapes("other", 20_000, speedup=0.5, **none), *shapes("alone", 1_000, **none))
    )  # fmt: skip
    (device,) = found.devices
    assert (device.by, device.base) == ("speedup", "torch")
    assert order(device) == [("mine", 1, False), ("torch", 2, False), ("other", 3, False), ("alone", None, False)]


def test_the_base_can_be_named_and_must_be_known() -> None:
    two = ShapeResult(
        operator="rms_norm", shape="0", args={}, candidate="mine", cases=1, timings=(timing(5_000),),
        versus=(versus(2.0), versus(3.0, base="b2")),
    )  # fmt: skip
    for base, speedup in (("torch", 2.0), ("b2", 3.0)):
        figure = rank(run_of(two), base=base).devices[0].candidates[0].score.speedup
        assert figure is not None
        assert figure.value == pytest.approx(speedup)
    with pytest.raises(UnknownName, match='unknown base "tourch"'):
        rank(run_of(two), base="tourch")


def test_a_base_that_a_device_lacks_is_not_replaced_there() -> None:
    other = msgspec.structs.replace(result("mine", 0), versus=(versus(3.0, base="b2"),))
    found = rank(run_of(result("mine", 0, speedup=2.0)), run_of(other, device="NVIDIA B200"), base="torch")
    assert [(each.base, each.candidates[0].score.speedup is None) for each in found.devices] == [
        ("torch", False),
        (None, True),
    ]


def test_only_shapes_that_all_ran_count_and_the_rest_is_counted() -> None:
    found = rank(run_of(*shapes("all", 10_000, 5), *shapes("few", 8_000, 2)))
    (device,) = found.devices
    assert (device.shapes, device.left_out) == (2, 3)
    assert [each.score.asked for each in device.candidates] == [2, 2]
    assert "Only the 2 shapes that all candidates ran count for the order; 3 that only some ran" in remarks(found)


def test_no_shape_in_common_means_no_order() -> None:
    found = rank(run_of(*shapes("a", 10_000), *shapes("b", 8_000, operator="silu_and_mul")))
    assert [row[1] for row in order(found.devices[0])] == [None, None]
    assert "No shape was run by all candidates" in remarks(found)
    assert [name for name, _ in found.devices[0].operators] == ["rms_norm", "silu_and_mul"]


def test_devices_are_never_put_into_one_order() -> None:
    found = rank(run_of(*shapes("a", 10_000)), run_of(*shapes("a", 5_000), *shapes("b", 4_000), device="NVIDIA B200"))
    assert [(each.device, order(each)) for each in found.devices] == [
        ("NVIDIA H200", [("a", 1, False)]),
        ("NVIDIA B200", [("b", 1, False), ("a", 2, False)]),
    ]
    assert "Devices are ranked apart" in remarks(found)


def test_the_newest_run_of_an_operator_stands_and_the_older_is_listed() -> None:
    old = run_of(*shapes("mine", 10_000), *shapes("mine", 9_000, operator="silu_and_mul"), date="2026-11-01T00:00:00Z")
    new = run_of(*shapes("mine", 5_000, 2), date="2026-11-02T00:00:00+00:00", versions={"torch": "2.14"})
    for runs in ((old, new), (new, old)):
        found = rank(*runs)
        (mine,) = found.devices[0].candidates
        assert sorted((each.operator, each.timings[0].median_ns) for each in mine.standing.results) == [
            *[("rms_norm", 5_000)] * 2,
            *[("silu_and_mul", 9_000)] * 3,
        ]
        assert "not ranked, as another run has them newer: 3 shapes of mine" in remarks(found)
        assert "mine is put together from 2 runs with different versions of torch (2.13.0, 2.14)" in remarks(found)


def test_of_equal_dates_the_file_named_last_stands_and_untimed_runs_yield() -> None:
    found = rank(run_of(*shapes("mine", 10_000)), run_of(*shapes("mine", 5_000)))
    assert found.devices[0].candidates[0].standing.results[0].timings[0].median_ns == 5_000
    untimed = run_of(*shapes("mine", None), date="2026-12-01T00:00:00Z", stage="correct")
    found = rank(run_of(*shapes("mine", 10_000)), untimed)
    assert found.devices[0].candidates[0].score.timed == 3


def test_a_shape_that_failed_has_the_bound_of_the_others() -> None:
    good = [result("good", 0, 10_000), result("good", 1, 3_000, bound_ns=1_500.0, launch_ns=2_000.0)]
    bad = [result("bad", 0, 10_000), result("bad", 1, wrong="x", bound_ns=None)]
    found = rank(run_of(*good, *bad))
    assert [each.score.below_launch for each in found.devices[0].candidates] == [1, 1]
    notes = sections_of(found)[0].notes
    assert "Below launch: the bound is below what a launch takes; these shapes count as all others do." in notes


def test_time_in_kernels_of_others_makes_a_library_weighed_by_time() -> None:
    mixed = [result("mixed", 0, 90_000, own=0.2), result("mixed", 1, 10_000, own=1.0)]
    found = rank(run_of(*mixed, *shapes("own", 20_000, 2, own=0.9), *shapes("silent", 30_000, 2)))
    mine = {each.name: each for each in found.devices[0].candidates}
    assert {name: each.is_library for name, each in mine.items()} == {"mixed": True, "own": False, "silent": False}
    assert mine["mixed"].own == pytest.approx(0.28)
    assert mine["silent"].own is None
    assert "mixed: marked library, as 28.0 % of its device time is in kernels of its own." in remarks(found)


def test_concerns_and_an_s_above_one_are_told() -> None:
    found = rank(run_of(result("mine", 0, 2_000, concerns=("too good",)), result("mine", 1, concerns=("too good",))))
    assert "mine, 2 shapes: too good" in remarks(found)
    assert "1 shape with S above 100 %" in remarks(found)
    assert sections_of(found)[0].frame["mark"].to_list() == ["S above 100 %"]


def test_times_that_did_not_settle_are_told() -> None:
    restless = msgspec.structs.replace(timing(8_000), steady=False)
    found = rank(run_of(result("mine", 0), msgspec.structs.replace(result("mine", 1), timings=(restless,))))
    assert "mine, 1 shape: times didn't settle" in remarks(found)


def test_bounds_that_differ_between_runs_are_told() -> None:
    found = rank(run_of(*shapes("a", 10_000)), run_of(*shapes("b", 10_000, bound_ns=5_000.0)))
    assert "3 shapes with a bound that isn't the same in all runs" in remarks(found)


def test_a_run_on_a_cpu_says_functional_only_in_place_of_numbers() -> None:
    run = run_of(*shapes("a", 10_000, speedup=2.0), result("b", 0, wrong="x"), functional_only=True, device="CPU")
    found = rank(run)
    (device,) = found.devices
    assert (device.by, [each.rank for each in device.candidates]) == ("nothing", [None, None])
    text = render_terminal(found, is_terminal=False)
    assert "functional only" in text
    for number in ("40.0 %", "10.000", "4.000"):
        assert number not in text


def test_shapes_of_older_files_with_a_launch_for_a_bound_say_so_in_place_of_s() -> None:
    found = rank(run_of(result("mine", 0, 3_000, bound_ns=2_000.0, binding="launch"), result("mine", 1, 10_000)))
    text = render_terminal(found, is_terminal=False)
    (row,) = (line for line in text.splitlines() if line.startswith("rms_norm 0:"))
    assert "no bound (older file)" in row
    assert "3.000 μs" in row


def test_a_wrong_shape_is_shown_first_with_its_reason() -> None:
    found = rank(run_of(*shapes("a", 10_000), *[result("b", i, wrong="row 3" if i == 2 else None) for i in range(3)]))
    section = next(each for each in sections_of(found) if each.title.startswith("Shapes"))
    assert section.frame["shape"][0] == "rms_norm 2: 2 tokens"
    assert (section.frame["sol_fraction"][0], section.frame["note"][0]) == ("wrong", "row 3")


def test_json_has_every_result_and_csv_has_numbers() -> None:
    found = rank(run_of(*shapes("a", 10_000, 60), *shapes("b", 8_000, 60)))
    data = json.loads(msgspec.json.encode(found.as_json()))
    candidates = data["devices"][0]["contenders"]
    assert [len(each["shapes"]) for each in candidates] == [60, 60]
    assert candidates[0]["shapes"][0]["sol_fraction"] == pytest.approx(0.5)
    frame = table_of(found).frame
    assert frame.height == 120
    assert frame["sol_fraction"].mean() == pytest.approx(0.45)
    shown = next(each for each in sections_of(found) if each.title.startswith("Shapes"))
    assert (shown.frame.height, shown.notes[-1]) == (40, "80 more rows: --json has all, -o makes a page.")


@pytest.mark.parametrize(
    ("results", "more", "message"),
    [
        ([result("a", 0, 0.0)], {}, r"results\[0\].timings\[0\].median_ns: expected a number above 0, found 0"),
        ([result("a", 0), result("a", 1, -5.0)], {}, r"results\[1\].timings\[0\].median_ns"),
        ([result("a", 0, bound_ns=0.0)], {}, r"results\[0\].bound.bound_ns: expected a number above 0"),
        ([result("a", 0, 1e300)], {}, r"results\[0\].timings\[0\].median_ns: .* found 1e\+300"),
        ([result("a", 0, speedup=-1.0)], {}, r"results\[0\].versus\[0\].speedup"),
        ([result("a", 0), result("a", 0)], {}, r"results\[1\]: a has rms_norm, 0: 0 tokens twice"),
        ([result("a", 0)], {"date": "yesterday"}, r"date: expected a time such as .* found \"yesterday\""),
    ],
)
def test_what_no_run_holds_is_refused_with_its_place(
    results: Sequence[ShapeResult], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(FormatError, match=f"^run0.json: {message}"):
        rank(run_of(*results, **more))


def test_an_empty_run_has_no_order() -> None:
    found = rank(run_of())
    assert found.devices[0].candidates == ()
    assert "Ranking on NVIDIA H200: none" in render_terminal(found, is_terminal=False)
    assert rank_runs([]).devices == ()


def test_files_of_one_name_stay_apart() -> None:
    found = rank_runs([("a.json", run_of(*shapes("x", 10_000))), ("a.json", run_of(*shapes("y", 10_000)))])
    assert [name for name, _ in found.runs] == ["a.json", "a.json (2)"]
