"""Alarms and recoveries of steps whose slow times are known."""

import json

import numpy as np
import pytest
from benchmarks.watch_pairs import joined
from tests.watch.streams import RECORDED, changes_of, made, one_after_another

from inferometer.formats.opening import open_trace
from inferometer.watch.normal import FEWEST, LATE
from inferometer.watch.recorded import steps_of
from inferometer.watch.steps import WatchedStep
from inferometer.watch.watched import Account
from inferometer.watch.watcher import Kind, State, Watcher
from inferometer.watch.why import find_why

FAULTS = {
    "cpu_contention": "others_cpu_usage",
    "cpu_quota": "cpu_limited_share",
    "cpu_stop": "cpu_stopped",
    "disk": "others_disk_write",
}


def test_nothing_is_said_of_steps_that_stay_as_they_are() -> None:
    watcher = Watcher()
    assert changes_of(made(5000), watcher) == []
    assert watcher.state is State.NORMAL


def test_a_slowdown_is_found_dated_and_its_end_seen() -> None:
    steps = [*one_after_another(made(400), made(200, ms=13, seed=1), made(300, seed=2))]
    alarm, recovered = changes_of(steps)
    assert (alarm.kind, recovered.kind) == (Kind.ALARM, Kind.RECOVERED)
    assert abs(alarm.step - 400) <= 1
    assert alarm.first_ns <= steps[400].start_ns <= alarm.last_ns + steps[400].dur_ns
    assert alarm.steps <= 30
    assert abs(recovered.step - 600) <= 1
    assert recovered.slowdowns[0].ratio == pytest.approx(1.3, abs=0.02)
    assert recovered.slowdowns[0].low <= 1.3 <= recovered.slowdowns[0].high  # type: ignore[operator]


def test_less_than_what_is_looked_for_is_none() -> None:
    steps = [*one_after_another(made(400), made(2000, ms=10.3, seed=1))]
    assert changes_of(steps) == []
    assert changes_of(steps, Watcher(least=0.01)) != []


def test_it_gets_worse_once() -> None:
    steps = one_after_another(made(400), made(200, ms=13, seed=1), made(200, ms=26, seed=2), made(200, seed=3))
    kinds = [change.kind for change in changes_of(steps)]
    assert kinds == [Kind.ALARM, Kind.WORSE, Kind.RECOVERED]


def test_slow_steps_are_never_learned() -> None:
    watcher = Watcher()
    changes = changes_of(one_after_another(made(400), made(6000, ms=20, seed=1)), watcher)
    assert [change.kind for change in changes] == [Kind.ALARM]
    assert watcher.state is State.SLOW


def test_the_baseline_follows_a_slow_drift_and_says_so() -> None:
    steps = [step for i in range(60) for step in made(200, ms=10 * 1.003**i, seed=i)]
    watcher = Watcher()
    assert changes_of(one_after_another(steps), watcher) == []
    assert next(drift for _, _, drift in watcher.drifts()) > 0.1


def test_one_slow_rank_is_named() -> None:
    fast, slow = (
        made(600, owner="rank 0"),
        [*made(400, seed=1, owner="rank 1"), *made(200, ms=15, seed=2, owner="rank 1")],
    )
    steps = [step for pair in zip(fast, slow, strict=True) for step in pair]
    assert [change.owner for change in changes_of(steps)] == ["rank 1"]


def test_of_many_ranks_each_needs_more_evidence() -> None:
    def steps_to_alarm(ranks: int) -> int:
        fast = [made(600, seed=rank, owner=f"rank {rank}") for rank in range(1, ranks)]
        slow = [*made(400, owner="rank 0"), *made(200, ms=11.5, seed=99, owner="rank 0")]
        (alarm,) = changes_of(step for together in zip(slow, *fast, strict=True) for step in together)
        return alarm.steps

    assert steps_to_alarm(16) > steps_to_alarm(1)


def test_the_slow_phase_is_named() -> None:
    def mixed(ms: float, seed: int) -> list[WatchedStep]:
        prefill = [step._replace(phase="prefill") for step in made(300, ms=ms, seed=seed)]
        return [step for pair in zip(prefill, made(300, seed=seed + 1), strict=True) for step in pair]

    change = changes_of(one_after_another(mixed(30, 0), mixed(60, 2)))[0]
    assert change.slowdowns[0].phase == "prefill"
    assert change.slowdowns[0].ratio == pytest.approx(2, rel=0.05)


def test_longer_work_is_not_slower() -> None:
    def of(tokens: float, count: int, seed: int) -> list[WatchedStep]:
        return [replace_work(step, tokens) for step in made(count, ms=5 + tokens / 100, seed=seed)]

    def replace_work(step: WatchedStep, tokens: float) -> WatchedStep:
        return step._replace(work=(tokens,))

    learned = [step for i in range(20) for step in of(100.0 * i, 20, i)]
    assert changes_of(one_after_another(learned, of(1900, 500, 50))) == []
    assert changes_of(one_after_another(learned, of(9000, 100, 50))) == []  # far beyond what is known: not judged


def test_few_steps_are_not_judged() -> None:
    watcher = Watcher()
    for step in made(FEWEST):
        judged, _ = watcher.add(step)
        assert judged.log_ratio is None
    assert watcher.add(made(1)[0])[0].log_ratio is not None
    assert LATE > FEWEST


@pytest.mark.parametrize(("fault", "metric"), FAULTS.items())
def test_a_recorded_fault_is_noticed_within_thirty_steps_with_its_cause(fault: str, metric: str) -> None:
    normal, slow = RECORDED / fault / "normal.ifm", RECORDED / fault / "fault.ifm"
    trace = joined(normal, slow, normal)
    watcher, account = Watcher(), Account()
    first = len(steps_of(joined(normal)))
    for step in steps_of(trace):
        account.add(*watcher.add(step))
    at = next(number for number, slow in enumerate(account.slowdowns) if slow.recovered and slow.recovered.step > first)
    found = account.slowdowns[at]
    account.explain(at, find_why(trace, *account.window(at)))
    raised = [change.step + change.steps - first for change in (found.alarm, *found.worse)]
    assert any(0 < steps <= 30 for steps in raised)
    why = account.slowdowns[at].why
    assert why is not None
    assert (why.verdict, why.metric) == ("cause named", metric)


def test_a_fault_that_came_and_went_is_found_each_time_and_seen_to_end() -> None:
    folder = RECORDED.parent / "on_and_off"
    slow_ns = json.loads((folder / "truth.json").read_text())["slow_ns"]
    changes = changes_of(steps_of(open_trace(str(folder / "run.ifm"))))
    assert [change.kind for change in changes] == [Kind.ALARM, Kind.RECOVERED] * len(slow_ns)
    for (begin_ns, end_ns), alarm, recovered in zip(slow_ns, changes[::2], changes[1::2], strict=True):
        assert alarm.first_ns < begin_ns < alarm.last_ns + 5e8
        assert abs(alarm.since_ns - begin_ns) < 5e8
        assert alarm.steps <= 30
        assert abs(recovered.since_ns - end_ns) < 5e8


def test_of_two_ranks_each_is_compared_with_its_own_normal_time() -> None:
    ranks = [
        [*one_after_another(made(400, seed=rank, owner=f"rank {rank}"), made(300, ms=20, seed=9, owner=f"rank {rank}"))]
        for rank in (0, 1)
    ]
    watcher, account = Watcher(), Account()
    for step in sorted((step for rank in ranks for step in rank), key=lambda step: step.start_ns):
        account.add(*watcher.add(step))
    assert [account.window(number).begin_ns for number in (0, 1)] == [0, 0]


def test_a_recording_without_a_fault_has_no_alarm() -> None:
    trace = joined(*(RECORDED / "none" / f"{name}.ifm" for name in ("normal", "fault", "normal")))
    assert changes_of(steps_of(trace)) == []


@pytest.mark.parametrize("times", [1.3, 1.45, 2.0])
def test_slow_steps_that_stay_alike_are_no_worse(times: float) -> None:
    changes = changes_of(one_after_another(made(400), made(400, ms=10 * times, seed=1), made(200, seed=2)))
    assert [change.kind for change in changes] == [Kind.ALARM, Kind.RECOVERED]


@pytest.mark.parametrize("after", [15, 100, 1000])
def test_much_slower_steps_are_dated_apart_from_a_small_slowdown_before_them(after: int) -> None:
    steps = one_after_another(made(400), made(after, ms=11, seed=1), made(60, ms=20, seed=2), made(200, seed=3))
    changes = changes_of(steps)
    assert [change.kind for change in changes if change.kind is not Kind.WORSE] == [Kind.ALARM, Kind.RECOVERED]
    (found,) = [change for change in changes if change.slowdowns[0].ratio > 1.5 and change.kind is not Kind.RECOVERED]
    assert abs(found.step - 400 - after) <= 1
    assert found.steps <= 10


@pytest.mark.parametrize("times", [1.2, 1.5])
def test_slow_steps_that_become_slower_by_less_than_a_quarter_are_dated_apart(times: float) -> None:
    parts = made(400), made(200, ms=10 * times, seed=1), made(200, ms=12 * times, seed=2), made(200, seed=3)
    changes = changes_of(one_after_another(*parts))
    assert [change.kind for change in changes] == [Kind.ALARM, Kind.WORSE, Kind.RECOVERED]
    assert abs(changes[1].step - 600) <= 1
    assert changes[1].steps <= 30


@pytest.mark.parametrize("few", [7, 9])
def test_a_small_slowdown_that_soon_becomes_a_large_one_is_said_to_be_worse(few: int) -> None:
    """Before there are enough slow steps to learn their level from."""
    steps = [*one_after_another(made(200), made(few, ms=12, seed=1), made(30, ms=40, seed=2), made(60, seed=3))]
    changes = changes_of(steps)
    assert [change.kind for change in changes] == [Kind.ALARM, Kind.WORSE, Kind.RECOVERED]
    alarm, worse, _ = changes
    assert alarm.slowdowns[0].ratio == pytest.approx(1.2, rel=0.02)
    assert (alarm.step, worse.step) == (200, 200 + few)
    assert worse.steps <= 5
    assert worse.slowdowns[0].ratio == pytest.approx(4, rel=0.02)


def test_of_slow_steps_that_vary_no_more_than_before_none_is_worse() -> None:
    slow = [step for seed in range(10) for step in made(400, ms=15, seed=seed)]
    assert [change.kind for change in changes_of(one_after_another(made(400, seed=99), slow))] == [Kind.ALARM]


@pytest.mark.parametrize("alike", [0.0, 0.5])
def test_heavy_tails_and_alike_neighbours_are_no_alarm(alike: float) -> None:
    for seed in range(4):
        random, last, steps = np.random.default_rng(seed), 0.0, []
        for noise in random.standard_t(4, 2000) * 0.06:
            last = alike * last + noise
            steps.append(WatchedStep(0, max(1, round(1e7 * np.exp(last))), "decode"))
        assert changes_of(one_after_another(steps)) == []


def test_a_shift_within_the_spread_of_heavy_tails_is_found() -> None:
    random = np.random.default_rng(4)
    noise = random.standard_t(3, 900) * 0.05
    noise[600:] += np.log(1.2)
    steps = [WatchedStep(0, max(1, round(1e7 * np.exp(one))), "decode") for one in noise]
    (alarm,) = changes_of(one_after_another(steps))
    assert abs(alarm.step - 600) <= 10
    assert alarm.steps <= 40


def test_steps_that_look_slow_by_chance_are_learned_from_once_those_after_them_are_normal() -> None:
    steps = [*one_after_another(made(200), made(5, ms=11.2, seed=1), made(400, seed=2))]
    watcher = Watcher()
    assert changes_of(steps, watcher) == []
    (lane,) = watcher.kept()
    ((_, normal),) = lane.normals
    assert set(steps[200:205]) <= set(normal.steps)


def test_a_short_normal_time_between_slowdowns_is_not_what_slow_steps_are_compared_with() -> None:
    def account_of(between: int) -> Account:
        parts = made(400), made(100, ms=15, seed=1), made(between, seed=2), made(100, ms=15, seed=3)
        watcher, account = Watcher(), Account()
        for step in one_after_another(*parts):
            account.add(*watcher.add(step))
        return account

    short, long = account_of(25), account_of(200)
    assert len(short.slowdowns) == len(long.slowdowns) == 2
    assert short.window(1)[:2] == short.window(0)[:2]
    assert short.window(1).last_ns == short.slowdowns[1].alarm.last_ns
    assert long.window(1).begin_ns == long.slowdowns[0].recovered.since_ns  # type: ignore[union-attr]
    assert long.window(1).first_ns == long.slowdowns[1].alarm.first_ns
