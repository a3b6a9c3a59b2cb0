"""Answers are looked at while they are timed: faults now and then are found, named, and cost the paths no time."""

import gc
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl
import pytest

torch = pytest.importorskip("torch")

from tests.engines.toy_engine import FakeClock, ToyEngine, arm  # noqa: E402

from inferometer.analyses.ab.comparison import compare_paths  # noqa: E402
from inferometer.engines.ab import Plan, measure_ab  # noqa: E402
from inferometer.engines.ab.marks import Mark, mark_of, read_marks  # noqa: E402
from inferometer.engines.arms import TORCH_ONLY, Arm  # noqa: E402
from inferometer.engines.paths import PathRecorder, scope  # noqa: E402

PLAN = Plan(prompt_tokens=5, new_tokens=3, batch=2, repetitions=4)
CALLS = 2 * PLAN.new_tokens  # of silu_mul in a completion


@pytest.fixture(autouse=True, scope="module")
def frozen() -> Iterator[None]:
    """What the test run holds isn't looked at by every collection: that takes longer than the toy."""
    gc.freeze()
    yield
    gc.unfreeze()


def every(nth: int, spoil: Callable[[Any], Any], operator: str = "silu_mul") -> Arm:
    """Wrong on each Nth call."""
    calls = 0

    def change(call: Callable[..., Any], *args: Any, **settings: Any) -> Any:
        nonlocal calls
        calls += 1
        right = call(*args, **settings)
        return spoil(right) if calls % nth == 0 else right

    return arm("faulty", [operator], change)


@pytest.mark.parametrize("nth", [2, 7, CALLS * 2, 37])
@pytest.mark.parametrize("factor", [float("nan"), 1.5])
def test_a_fault_now_and_then_is_wrong_at_the_root_and_the_operator_is_named(nth: int, factor: float) -> None:
    found = compare_paths(measure_ab(ToyEngine(), [TORCH_ONLY, every(nth, lambda y: y * factor)], PLAN, record=False))
    assert found.rows[0].versus["faulty"].error.failure is not None
    assert not found.is_good
    wrong = {row.operator for row in found.rows if row.versus["faulty"].error.failure is not None}
    assert wrong == {None, "silu_mul"}


def test_one_value_that_reaches_no_logits_is_found_in_the_timed_passes() -> None:
    def spoil(answer: Any) -> Any:
        answer[0, 0, 0] = float("nan")
        return answer

    class Deaf(ToyEngine):
        """Its logits forget what isn't a number."""

        def forward(self, cache: Any, tokens_BT: Any) -> Any:
            logits_BV = super().forward(cache, tokens_BT)
            cache["sum"] = cache["sum"].nan_to_num(0.0)
            return logits_BV.nan_to_num(0.0)

    late = every(5 * CALLS + 1, spoil)  # not before the first repetition
    found = compare_paths(measure_ab(Deaf(), [TORCH_ONLY, late], PLAN, record=False))
    fault = found.faults["faulty"]
    assert fault.kind == "not finite"
    assert fault.path is not None
    assert fault.path.endswith(".layers.0.mlp.silu_mul")


def test_what_only_passes_without_scopes_have_is_searched_for_afterwards() -> None:
    """The fault is in the pass without scopes of the third repetition, and a while after all of them."""
    before = 3 + 2 * 2  # completions: check, logits, warm-up, two repetitions
    probe = 2 * CALLS // PLAN.new_tokens  # two passes over the prompt
    places = {probe + before * CALLS + 2, probe + (3 + 2 * PLAN.repetitions + 3) * CALLS + 4}
    calls = 0

    def change(call: Callable[..., Any], *args: Any) -> Any:
        nonlocal calls
        calls += 1
        return call(*args) * (float("nan") if calls in places else 1)

    measured = measure_ab(ToyEngine(), [TORCH_ONLY, arm("rare", ["silu_mul"], change)], PLAN, record=False)
    assert measured.searched.select("arm", "repetition").unique().height == 4
    fault = compare_paths(measured).faults["rare"]
    assert fault.path == "completion.generate.decode.forward.layers.1.mlp.silu_mul"
    assert fault.failure.startswith("NaN in its answer, first in a search after the repetitions (4) at completion.")


def test_honest_arms_are_right_and_nothing_is_searched_for() -> None:
    measured = measure_ab(ToyEngine(), [TORCH_ONLY, every(10**9, lambda y: y)], PLAN, record=False)
    assert compare_paths(measured).faults == {}
    assert measured.searched.is_empty()
    answers = measured.calls.filter(pl.col("operator").is_not_null())
    assert answers["sum"].null_count() == 0
    assert answers.filter(pl.col("abs_sum").is_null())["operator"].unique().to_list() == ["argmax"]
    assert measured.logits.height == 2 * 2 * PLAN.repetitions * PLAN.new_tokens


def test_a_base_that_answers_otherwise_when_asked_again_is_told() -> None:
    base = every(2, lambda y: y * 1.5)
    measured = measure_ab(ToyEngine(), [base, TORCH_ONLY], Plan(5, 3, 2, repetitions=8), record=False)
    found = compare_paths(measured)
    assert "faulty" in found.faults or measured.errors.filter(pl.col("arm") == "faulty").height
    assert not found.is_good


def test_looking_at_answers_is_in_the_time_of_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(monkeypatch)

    def watch(*asked: Any) -> Mark:
        clock.now_ns += 1_000_000
        return Mark(1.0, 2.0)

    recorder = PathRecorder(watch=watch)
    with recorder.entered(), scope("outer"), scope("op", "silu_mul") as here:
        here.answered("silu_mul", (), {}, None)
    assert max(end - start for start, end in zip(recorder.start_ns, recorder.end_ns, strict=True)) < 100
    assert recorder.marks == [Mark(1.0, 2.0), None]
    assert recorder.aside_ns > 1_000_000


def test_marks_are_sums_in_float64_of_all_tensors_and_integers_have_no_size() -> None:
    large = torch.full((4,), 3e38)
    both = mark_of((large, torch.tensor([-1.0, 2.0])))
    assert both.sum == pytest.approx(1.2e39)
    assert both.abs_sum == pytest.approx(1.2e39)
    assert mark_of(torch.tensor([3, -1])) == Mark(2, None)
    assert mark_of(torch.tensor([float("inf"), float("nan")])).abs_sum != mark_of(large).abs_sum
    assert read_marks([None, Mark(1.0, 1.0), (torch.tensor([1.0, 2.0, 3.0, 4.0]), 2)]) == [
        *(Mark(), Mark(1.0, 1.0), Mark(3.0, 7.0))
    ]


def test_spans_are_without_what_was_done_aside() -> None:
    class Event:
        def __init__(self, at_ms: float) -> None:
            self.at_ms = at_ms

        def elapsed_time(self, later: "Event") -> float:
            return later.at_ms - self.at_ms

    from inferometer.engines.paths import _spans

    asides = [(Event(2), Event(5)), (Event(7), Event(8))]
    assert _spans([(Event(0), Event(10), 0, 2), (Event(1), Event(6), 0, 1), (Event(9), Event(10), 2, 2)], asides) == [
        *(6_000_000, 2_000_000, 1_000_000)
    ]
