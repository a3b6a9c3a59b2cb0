"""The score: published figures follow from published times, and nothing that was asked for is left out in silence."""

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
from msgspec.structs import replace
from tests.bench.ranking.ranked_runs import result

from inferometer.analyses.operators.published import DEPLOYED, upper_median
from inferometer.bench.ranking.aggregates import WAYS, Aggregates
from inferometer.bench.ranking.score import Score, score
from inferometer.bench.ranking.shape_figures import Figure, why_no_fraction
from inferometer.bench.results import Bound, ShapeResult, Timing
from inferometer.operators import operators


def published(floor_ns: float = 0.0) -> list[ShapeResult]:
    """The deployed kernels as a candidate, with the published bounds: none of them is the launch."""
    return [
        ShapeResult(
            operator=name,
            shape=shape.label,
            index=shape.index,
            args=shape.args,
            candidate="deployed",
            cases=1,
            timings=(exact(shape.published.t_prod_ns[DEPLOYED]),),
            bound=Bound(device=DEPLOYED, bound_ns=max(floor_ns, shape.published.t_sol_ns[DEPLOYED]), binding="memory"),
        )
        for name, operator in operators().items()
        for shape in operator.catalogue().shapes
    ]


def exact(ns: float) -> Timing:
    return Timing(
        mode="cold", timer="events", median_ns=ns, p10_ns=ns, p90_ns=ns, low_ns=ns, high_ns=ns, samples=1, steady=True
    )


@pytest.fixture(scope="module")
def deployed() -> Score:
    return score(published(), operators())


def value(figure: Figure | None) -> float:
    assert figure is not None
    return figure.value


@pytest.mark.parametrize(
    ("way", "wanted"), [("median", 0.130), ("geometric_mean", 0.100), ("mean", 0.126), ("time_weighted", 0.140)]
)
def test_published_times_give_the_published_aggregates(deployed: Score, way: str, wanted: float) -> None:
    assert round(value(getattr(deployed.over_right, way)), 3) == wanted


def test_the_published_median_is_of_upper_middles_without_normalising() -> None:
    """14.4 %, and 13.2 % normalised, as importance adds up to 109.5 %; with true medians, as here, 13.0 %."""
    known = [operator.catalogue() for operator in operators().values()]
    total = sum(each.importance for each in known)
    assert round(total, 5) == 1.09478
    fractions = [[shape.published.sol_fraction(DEPLOYED) or 0.0 for shape in each.shapes] for each in known]
    upper = sum(each.importance * upper_median(own) for each, own in zip(known, fractions, strict=True))
    assert (round(upper, 3), round(upper / total, 3)) == (0.144, 0.132)


def test_a_launch_floor_in_the_bound_raises_the_time_weighted_figure() -> None:
    assert round(value(score(published(7_400), operators()).over_right.time_weighted), 3) == 0.214


def test_all_published_shapes_are_covered_and_strict_is_the_same_where_all_are_right(deployed: Score) -> None:
    assert (deployed.asked, deployed.right, deployed.with_fraction, deployed.above_one) == (440, 440, 440, 0)
    assert (deployed.importance_asked, deployed.importance_covered) == (1.0, 1.0)
    assert deployed.strict.median == deployed.over_right.median
    assert (deployed.strict.geometric_mean, deployed.strict.time_weighted) == (None, None)


def test_a_wrong_or_untimed_shape_counts_as_zero_in_the_strict_figures_and_in_no_other() -> None:
    good = [result("mine", i, 10_000) for i in range(2)]
    failed = [result("mine", 2, wrong="row 3"), result("mine", 3, None)]
    found = score([*good, *failed], operators())
    assert (found.asked, found.right, found.timed, found.with_fraction) == (4, 3, 2, 2)
    assert value(found.over_right.mean) == pytest.approx(0.4)
    assert value(found.strict.mean) == pytest.approx(0.2)
    assert value(found.strict.median) == pytest.approx(0.2)  # of 0, 0, 0.4 and 0.4
    assert value(score([good[0], *failed], operators()).strict.median) == 0
    assert not found.is_right


def test_times_and_comparisons_of_a_wrong_shape_count_nowhere() -> None:
    """A file may hold them all the same."""
    wrong = replace(result("mine", 0, 1_000, speedup=10.0), failure="row 3")
    found = score([wrong, result("mine", 1, 10_000, speedup=2.0)], operators(), base="torch")
    assert (found.with_fraction, found.compared, found.fast) == (1, 1, {"1": 0.5, "1.5": 0.5, "2": 0.0})
    assert value(found.over_right.mean) == pytest.approx(0.4)
    assert value(found.strict.mean) == pytest.approx(0.2)
    assert value(found.pooled) == pytest.approx(0.4)


def test_an_operator_that_is_wrong_throughout_weighs_as_zero_and_isn_t_covered() -> None:
    right, wrong = result("mine", 0, 10_000), result("mine", 0, operator="layer_norm", wrong="all of it", bound_ns=None)
    found = score([right, wrong], operators())
    weights = {name: operators()[name].catalogue().importance for name in ("rms_norm", "layer_norm")}
    share = weights["rms_norm"] / sum(weights.values())
    assert value(found.over_right.median) == pytest.approx(0.4)
    assert value(found.strict.median) == pytest.approx(0.4 * share)
    assert found.importance_covered == pytest.approx(share)


def test_shapes_below_a_launch_are_counted_and_in_every_figure() -> None:
    launch: dict[str, Any] = {"bound_ns": 1_000.0, "launch_ns": 2_000.0}
    found = score(
        [
            result("mine", 0, 10_000, speedup=2.0, launch_ns=2_000.0),  # its bound of 4 μs is above
            result("mine", 1, 4_000, speedup=4.0, **launch),
            result("mine", 2, 5_000, speedup=3.0, **launch),
            result("mine", 3, wrong="late", **launch),
        ],
        operators(),
        base="torch",
    )
    assert (found.below_launch, found.with_fraction) == (3, 3)
    assert value(found.strict.mean) == pytest.approx((0.4 + 0.25 + 0.2 + 0) / 4)
    assert value(found.speedup) == pytest.approx((2 * 4 * 3) ** (1 / 3))


def test_a_launch_that_an_older_file_has_for_a_bound_is_none() -> None:
    older: dict[str, Any] = {"bound_ns": 2_000.0, "binding": "launch"}
    shapes = [result("mine", 0), result("mine", 1, 3_000, **older), result("mine", 2, wrong="late", **older)]
    found = score(shapes, operators())
    assert (found.with_fraction, found.below_launch, found.right) == (1, 0, 2)
    assert value(found.strict.median) == value(found.over_right.median) == pytest.approx(0.4)
    assert [why_no_fraction(each) for each in shapes] == [None, "no bound (older file)", "wrong"]


@pytest.mark.parametrize(
    ("times", "median"), [([10, 20], 0.3), ([10, 20, 40], 0.2), ([10, 20, 40, 80], 0.15), ([10], 0.4)]
)
def test_a_median_is_the_middle_one_or_the_mean_of_two_middles(times: list[float], median: float) -> None:
    found = score([result("mine", i, 1_000 * us) for i, us in enumerate(times)], operators())
    assert value(found.strict.median) == value(found.over_right.median) == pytest.approx(median)


def test_an_s_above_one_is_counted_and_not_clipped() -> None:
    found = score([result("mine", 0, 2_000)], operators())
    assert found.above_one == 1
    assert value(found.over_right.median) == pytest.approx(2.0)


def test_speedup_is_a_geometric_mean_and_fast_p_is_of_all_that_was_asked_for() -> None:
    shapes = [
        result("mine", 0, speedup=4.0),
        result("mine", 1, speedup=1.6),
        result("mine", 2, speedup=1.005),  # its interval holds 1: no verdict of faster
        result("mine", 3, speedup=0.5),
        result("mine", 4, wrong="no", speedup=9.0),
    ]
    found = score(shapes, operators(), base="torch")
    assert value(found.speedup) == pytest.approx((4 * 1.6 * 1.005 * 0.5) ** (1 / 4))
    assert found.compared == 4
    assert found.fast == {"1": 2 / 5, "1.5": 2 / 5, "2": 1 / 5}
    assert score(shapes, operators()).speedup is None


def test_the_base_itself_has_a_speedup_of_one_and_no_fast_p() -> None:
    found = score([result("torch", 0), result("torch", 1)], operators(), base="torch")
    assert (found.speedup, found.fast) == (Figure(1.0, 1.0, 1.0), None)


def test_an_interval_is_from_all_slow_to_all_quick() -> None:
    found = score([result("mine", 0, 10_000, half=0.1), result("mine", 1, 8_000, half=0.1)], operators())
    for way in WAYS:
        figure = getattr(found.over_right, way)
        assert (figure.low, figure.high) == (pytest.approx(figure.value / 1.1), pytest.approx(figure.value / 0.9))


def test_functional_only_counts_right_and_tells_nothing_else() -> None:
    found = score([result("mine", 0, speedup=2.0), result("mine", 1, wrong="x")], operators(), base="torch",
                  functional_only=True)  # fmt: skip
    assert (found.asked, found.right, found.timed) == (2, 1, 0)
    assert (found.over_right, found.strict) == (Aggregates(), Aggregates())
    assert (found.pooled, found.speedup, found.fast, found.below_launch) == (None, None, None, 0)


def test_without_any_bound_there_is_no_score_and_nothing_counts_as_zero() -> None:
    found = score([result("mine", 0, bound_ns=None), result("mine", 1, wrong="x", bound_ns=None)], operators())
    assert (found.strict.median, found.over_right.median, found.timed) == (None, None, 1)


def test_an_operator_that_the_catalogue_lacks_has_no_weight() -> None:
    found = score([result("mine", 0, operator="frobnicate")], operators())
    assert (found.over_right.median, found.importance_covered) == (None, None)
    assert value(found.pooled) == pytest.approx(0.4)


def test_nothing_has_a_score_without_figures() -> None:
    found = score([], operators(), base="torch")
    assert (found.asked, found.strict.median, found.fast) == (0, None, None)


@pytest.mark.parametrize("change", [lambda shapes: shapes[::-1], lambda shapes: [*shapes[3:], *shapes[:3]]])
def test_the_order_of_results_changes_nothing(change: Callable[[list[ShapeResult]], list[ShapeResult]]) -> None:
    shapes = [result("mine", i, 7_000 + 900 * i, speedup=1 + i / 7) for i in range(9)]
    assert score(change(shapes), operators(), base="torch") == score(shapes, operators(), base="torch")


def test_every_aggregate_is_defined_where_it_is_made() -> None:
    words = score.__doc__ or ""
    for name in (
        *WAYS,
        "pooled",
        "speedup",
        "fast",
        "importance_asked",
        "importance_covered",
        "below_launch",
        "strict",
    ):
        assert name in words
    assert {each.name for each in fields(Aggregates)} == set(WAYS)


def test_aggregates_lie_between_the_least_and_the_greatest_s(deployed: Score) -> None:
    for way in WAYS:
        assert 0 < value(getattr(deployed.over_right, way)) < 0.77
    assert math.isclose(value(deployed.pooled), 0.2479, abs_tol=1e-4)
