"""How long an A/B takes: estimated from its probe, counted down, and replaced by what repetitions took."""

from importlib.util import find_spec

import pytest

from inferometer.engines.ab.plan import Plan
from inferometer.engines.ab.progress import Probe, Progress, TimeLeft, estimate

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch isn't installed")
PLAN = Plan(prompt_tokens=4, new_tokens=3, repetitions=5, warmup=1)


def test_the_estimate_is_all_completions_at_the_pace_of_the_probe() -> None:
    probes = {"torch": Probe(30, 10), "slow": Probe(140, 40)}  # completions of 10 + 90 and of 4 times as much
    completions = 2 * 5 + 1 + 1  # repetitions twice, warm-up, comparison of logits
    check = 100 + 400
    least = completions * (100 + 400) + check
    most = 2 * (least + (30 - 10) + (140 - 40) + 5 * (100 + 400))  # compiled once, and a control
    assert estimate(PLAN, probes, 90, is_recorded=False) == (least, most)
    assert estimate(PLAN, probes, 90, is_recorded=True)[0] == least + 500


def test_one_arm_alone_has_nobody_to_be_compared_with() -> None:
    assert estimate(PLAN, {"torch": Probe(10, 10)}, 90, is_recorded=False) == (11 * 100, 2 * 11 * 100)


def test_an_estimate_counts_down_and_repetitions_replace_it() -> None:
    now = [0]
    left = TimeLeft(lambda: now[0])
    assert left.now() is None
    left.expect(100, 300)
    now[0] = 40
    assert left.now() == (60, 260)
    left.repeat(1, 4)
    now[0] = 50
    left.repeat(2, 4)
    assert left.now() == (30, 30)
    now[0] = 55
    left.repeat(2, 4)  # another arm, or with scopes
    assert left.now() == (25, 25)
    now[0] = 500
    assert left.now() == (0, 0)
    left.stop()
    assert left.now() is None


@needs_torch
def test_an_estimate_is_there_before_the_check_and_in_every_later_part() -> None:
    from tests.engines.toy_engine import ToyEngine, arm

    from inferometer.engines.ab import measure_ab
    from inferometer.engines.arms import TORCH_ONLY

    arms = [TORCH_ONLY, arm("other", ["argmax"], lambda call, *args, **settings: call(*args, **settings))]
    heard: list[Progress] = []
    measure_ab(ToyEngine(), arms, PLAN, record=False, on_progress=heard.append)
    parts = list(dict.fromkeys(each.part for each in heard))
    assert parts[:3] == ["choice of the tokens", "probe of the time", "check of the operators"]
    told = {each.part for each in heard if each.left_ns is not None}
    assert told == {"check of the operators", "comparison of logits", "warm-up", "repetition"}
    at_first = next(each.left_ns for each in heard if each.part == "check of the operators")
    assert at_first is not None
    assert 0 < at_first[0] < at_first[1]
    repetitions = [each for each in heard if each.part == "repetition"]
    assert {(each.number, each.count) for each in repetitions} == {(n, 5) for n in range(1, 6)}
    assert all(each.left_ns is not None and each.left_ns[0] == each.left_ns[1] for each in repetitions[4:])


@needs_torch
def test_an_arm_that_cant_be_probed_leaves_the_time_unknown() -> None:
    from tests.engines.toy_engine import ToyEngine, arm

    from inferometer.engines.ab import measure_ab
    from inferometer.engines.arms import TORCH_ONLY

    def raises(*_: object) -> object:
        raise RuntimeError("no")

    heard: list[Progress] = []
    with pytest.raises(Exception, match="no"):
        measure_ab(
            ToyEngine(), [TORCH_ONLY, arm("bad", ["argmax"], raises)], PLAN, record=False, on_progress=heard.append
        )
    assert {each.left_ns for each in heard} == {None}
