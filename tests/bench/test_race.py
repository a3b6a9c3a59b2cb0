"""Calls in turns: how many, for how long, in which order, and which of them are looked at. With a pretended process."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from inferometer.bench.failures import CandidateFailed
from inferometer.bench.lineup import Round
from inferometer.bench.race import Caught, Pace, Race
from inferometer.operators import require_operator

torch = pytest.importorskip("torch", reason="torch isn't installed")
RMS = require_operator("rms_norm")
ARGS = {"token_count": 3, "hidden_size": 16, "eps": 1e-6}


class Pretended:
    """Two candidates on a clock of their own; the second is twice as fast, both vary by `noise`."""

    def __init__(self, noise: float = 0.0, wrong_after: int = 10**9) -> None:
        self.now_ns, self.asked = 0, list[Mapping[str, Any]]()
        self.noise, self.wrong_after, self.calls = noise, wrong_after, 0
        self.draw = np.random.default_rng(7)
        self.last: tuple[Mapping[str, Any], list[int]] = ({}, [])

    def time(self, request: Mapping[str, Any], *, expected_s: float, profile: bool = False) -> Round:
        sent, rows, order = self.now_ns, [], [lane for turn in request["orders"] for lane in turn]
        for lane in order:
            begin = self.now_ns = self.now_ns + 50_000
            ns = (2_000_000 if lane == 0 else 1_000_000) * self.draw.lognormal(0, self.noise)
            self.now_ns += int(ns) + 1
            rows.append([float(lane), float(begin), float(self.now_ns), ns, 0.0])
        self.asked.append(request)
        self.last = (request, order)
        self.calls += len(order)
        return Round(rows, sent, self.now_ns, self.now_ns - sent)

    def show(self, call: int) -> "tuple[Any, ...]":
        request, order = self.last
        seed = request["seeds"][call // len(set(order))]
        answer = RMS.answer(RMS.inputs(**ARGS, seed=seed), ARGS)["out"]
        return (answer * 2 if self.calls > self.wrong_after and order[call] == 1 else answer,)


def race(process: Pretended, seconds: float = 5.0, **facts: Any) -> Race:
    found = Race(process, RMS, "x", ARGS, 2, "cpu", Pace("host", seconds), 96, lambda path: ())  # type: ignore[arg-type]
    found.clock = lambda: process.now_ns * 1e-9
    for name, value in facts.items():
        setattr(found, name, value)
    return found


def test_steady_times_end_it_early() -> None:
    process = Pretended()
    times = race(process).run("cold")
    assert [np.median(ns) for ns in times.ns] == [2_000_000, 1_000_000]
    assert process.now_ns < 2e9
    assert min(times.checked) >= 1


def test_times_that_never_stand_still_end_when_the_time_is_over() -> None:
    process = Pretended(noise=1.0)
    times = race(process, seconds=2.0).run("cold")
    assert 2e9 < process.now_ns < 5e9
    assert len(times.ns[0]) == len(times.ns[1])


def test_every_turn_has_inputs_of_its_own_and_another_order_than_the_one_before() -> None:
    process = Pretended(noise=0.3)
    race(process, seconds=1.0).run("warm")
    seeds = [seed for request in process.asked for seed in request["seeds"]]
    assert len(set(seeds)) == len(seeds)
    orders = [order for request in process.asked if len(request["orders"]) > 1 for order in request["orders"]]
    assert {tuple(order) for order in orders} == {(0, 1), (1, 0)}
    assert all(request["mode"] == "warm" for request in process.asked)


def test_a_candidate_that_turns_wrong_while_it_is_timed_is_named() -> None:
    process = Pretended(noise=0.5, wrong_after=20)
    with pytest.raises(Caught, match="a timed call was wrong: out: the error is") as caught:
        race(process).run("cold")
    assert caught.value.lane == 1


def test_a_round_leaves_no_more_outputs_than_there_is_room_for() -> None:
    process = Pretended()
    race(process, outputs_bytes=1 << 30).run("cold")
    assert max(len(request["seeds"]) for request in process.asked) == 1


def test_times_come_from_the_profile_where_that_is_the_timer(tmp_path: Any) -> None:
    process = Pretended()
    told = process.time

    def profiled(request: Mapping[str, Any], *, expected_s: float, profile: bool = False) -> Round:
        assert profile
        return replace(told(request, expected_s=expected_s), traces={0: tmp_path / "0", 1: tmp_path / "1"})

    process.time = profiled  # type: ignore[method-assign]
    found = race(process, pace=Pace("cupti", 1.0))
    found.of_profile = lambda path: [300.0 + int(path.name)] * (len(process.last[1]) // 2)
    times = found.run("cold")
    assert [set(ns) for ns in times.ns] == [{300.0}, {301.0}]


def test_cpu_time_of_several_threads_may_be_longer_than_their_call() -> None:
    process = Pretended()
    told = process.time

    def counted(request: Mapping[str, Any], *, expected_s: float, profile: bool = False) -> Round:
        found = told(request, expected_s=expected_s)
        return replace(found, rows=[[lane, begin, end, 2 * ns, late] for lane, begin, end, ns, late in found.rows])

    process.time = counted  # type: ignore[method-assign]
    assert [np.median(ns) for ns in race(process).run("warm").ns] == [4_000_000, 2_000_000]
    with pytest.raises(CandidateFailed, match="took longer than from its begin to its end"):
        race(process, device="cuda:0").run("warm")


def test_what_can_t_be_timed_says_why() -> None:
    process = Pretended()
    process.time = lambda *_, **__: Round((), 0, 1, cannot="no graph")  # type: ignore[method-assign]
    assert race(process).run("cold").cannot == "no graph"
