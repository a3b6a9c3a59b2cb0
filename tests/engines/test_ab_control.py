"""The control of an A/B: each call once by either arm's kernel, what ran before it drawn, only where there is doubt."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

pytest.importorskip("torch")

from tests.engines.toy_engine import FakeClock, ToyEngine, arm

from inferometer.analyses.ab.comparison import compare_paths
from inferometer.analyses.ab.measurement import CONTROL
from inferometer.engines.ab import Plan, measure_ab
from inferometer.engines.ab.completion import Work
from inferometer.engines.ab.control import run_pair
from inferometer.engines.ab.progress import Progress
from inferometer.engines.arms import Arm
from inferometer.engines.paths import PathRecorder

PLAN = Plan(prompt_tokens=5, new_tokens=3, batch=2, repetitions=10)
OPERATORS = ("linear", "silu_mul")


class Machine:
    """Where a silu_mul of `slow_ns` makes the next linear take `left_ns` longer, whoever runs that."""

    def __init__(self, clock: FakeClock, left_ns: int) -> None:
        self._clock, self._left_ns = clock, left_ns
        self._is_cold = False

    def arm(self, name: str, slow_ns: int = 0) -> Arm:
        def change(call: Callable[..., Any], *args: Any, **settings: Any) -> Any:
            is_linear = len(args) == 3
            self._clock.now_ns += 1_000 + (self._left_ns if is_linear and self._is_cold else 0)
            self._clock.now_ns += 0 if is_linear else slow_ns
            self._is_cold = not is_linear and slow_ns > 0
            return call(*args, **settings)

        return arm(name, OPERATORS, change)


def test_what_a_slow_operator_leaves_behind_is_carried_over_though_all_kernels_are_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(FakeClock(monkeypatch), left_ns=400)
    arms = [machine.arm("base"), machine.arm("late", slow_ns=20_000)]
    measured = measure_ab(ToyEngine(), arms, PLAN, record=False)
    assert dict(measured.control.schema) == CONTROL
    found = compare_paths(measured)
    verdicts = {row.path: row.versus["late"].verdict for row in found.rows if row.operator in OPERATORS}
    assert {verdict for path, verdict in verdicts.items() if path.endswith("silu_mul")} == {"slower"}
    assert verdicts["completion.generate.decode.forward.layers.*.mlp.gate"] == "carried over"
    assert "slower" not in {verdict for path, verdict in verdicts.items() if not path.endswith("silu_mul")}
    assert {each.path.rsplit(".", 1)[1] for each in found.differences["late"]} == {"silu_mul"}
    assert found.control_pairs("late") == PLAN.repetitions
    alone = compare_paths(replace(measured, control=measured.control.clear()))
    assert any(row.versus["late"].verdict == "slower" for row in alone.rows if row.operator == "linear")


def test_nothing_is_controlled_where_nothing_differs_or_one_operator_alone_is_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = FakeClock(monkeypatch)
    machine = Machine(clock, left_ns=0)
    assert measure_ab(ToyEngine(), [machine.arm("a"), machine.arm("b")], PLAN, record=False).control.is_empty()
    late = arm("late", ["silu_mul"], clock.late(20_000))
    measured = measure_ab(ToyEngine(), [arm("base", [], clock.late(0)), late], PLAN, record=False)
    assert compare_paths(measured).differences["late"]
    assert measured.control.is_empty()


def test_interpreted_kernels_whose_times_say_nothing_have_no_control(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(FakeClock(monkeypatch), left_ns=400)
    slow = machine.arm("triton", slow_ns=20_000)
    backends = {operator: replace(backend, interpreted=True) for operator, backend in slow.backends.items()}
    arms = [machine.arm("base"), Arm("triton", backends)]
    measured = measure_ab(ToyEngine(), arms, PLAN, record=False)
    assert compare_paths(measured).is_in_doubt("triton")
    assert measured.control.is_empty()


def test_each_call_of_a_pair_runs_once_by_either_arm_and_pairs_are_drawn_anew() -> None:
    import torch

    ran: list[str] = []

    def noting(name: str) -> Arm:
        def change(call: Callable[..., Any], *args: Any, **settings: Any) -> Any:
            ran.append(name)
            return call(*args, **settings)

        return arm(name, OPERATORS, change)

    base, candidate = noting("base"), noting("candidate")
    tokens_BM = torch.zeros((2, 3), dtype=torch.int64)
    work = Work(ToyEngine(), torch.zeros((2, 5), dtype=torch.int64), tokens_BM)
    recorder = PathRecorder()
    pairs = [run_pair(work, base, candidate, number, recorder, 0) for number in range(2)]
    calls = len(ran) // 4  # of both operators, in each of four completions
    halves = [ran[at : at + calls] for at in range(0, 4 * calls, calls)]
    for first, second in (halves[:2], halves[2:]):
        assert all({one, other} == {"base", "candidate"} for one, other in zip(first, second, strict=True))
    assert halves[0] not in halves[2:]
    for number, pair in enumerate(pairs):
        assert pair["repetition"].unique().to_list() == [number]
        assert pair["candidate"].unique().to_list() == ["candidate"]
        twins = zip(pair["arm"].gather_every(2), pair["arm"].gather_every(2, 1), strict=True)
        assert all({one, other} == {"base", "candidate"} for one, other in twins)
    noted = pairs[0].filter(pl.col("path").str.contains("silu_mul|gate|up|lm_head"))
    assert noted.gather_every(2)["arm"].to_list() == halves[0]


def test_what_a_kernel_raises_in_the_control_ends_it_and_keeps_the_repetitions(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(FakeClock(monkeypatch), left_ns=400)
    said: list[str] = []

    def hear(doing: Progress) -> None:
        said.append(str(doing))
        if said[-1] == "late, control 2 of 10":
            raise RuntimeError("out of luck")

    arms = [machine.arm("base"), machine.arm("late", slow_ns=20_000)]
    measured = measure_ab(ToyEngine(), arms, PLAN, record=False, on_progress=hear)
    assert measured.control["repetition"].unique().to_list() == [0]
    assert measured.ended is not None
    assert "late, control 2 of 10" in measured.ended
    found = compare_paths(measured)
    assert found.repetitions == PLAN.repetitions
    assert said[-1] == "late, control 2 of 10"
