"""The waits by which a GPU lets the host go ahead: how long, how often, and which were too short."""

from itertools import count

import pytest

from inferometer.engines.device_hold import STRETCH, DeviceHold

MS = 1_000_000


class Cuda:
    def __init__(self) -> None:
        self.slept_ns = list[float]()

    def _sleep(self, cycles: int) -> None:
        self.slept_ns.append(cycles / 2)


class Event:
    def __init__(self, is_done: bool) -> None:
        self.is_done = is_done

    def query(self) -> bool:
        return self.is_done


def run(hold: DeviceHold, scopes: int, *, is_done: bool = False) -> None:
    """One pass of so many scopes; the host's clock goes on by 1 ms with every look at it."""
    hold.begin()
    for _ in range(scopes):
        if hold.is_due():
            hold.wait(Event(is_done))
    hold.end_stretch(Event(is_done))


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count()
    monkeypatch.setattr("inferometer.engines.device_hold._clock", lambda: next(ticks) * MS)


def test_a_stretch_waits_twice_what_the_host_took_for_it_in_the_pass_before() -> None:
    hold = DeviceHold(cuda := Cuda())
    run(hold, 2 * STRETCH + 1)
    assert (hold.waits, hold.short) == (3, 0)
    assert cuda.slept_ns == [10 * MS] * 3  # nothing is known yet
    cuda.slept_ns.clear()
    run(hold, 2 * STRETCH + 1)
    assert cuda.slept_ns == [2 * MS] * 3


def test_a_wait_that_was_too_short_is_twice_as_long_from_then_on_and_counted() -> None:
    hold = DeviceHold(cuda := Cuda())
    run(hold, STRETCH)
    run(hold, STRETCH, is_done=True)
    assert (hold.waits, hold.short) == (1, 1)
    run(hold, STRETCH)
    assert hold.short == 0
    assert cuda.slept_ns == [10 * MS, 2 * MS, 4 * MS]


def test_after_the_host_has_waited_for_the_device_the_next_scope_is_held() -> None:
    """And that the device is done by then says nothing of the host."""
    hold = DeviceHold(cuda := Cuda())
    run(hold, STRETCH)
    hold.begin()
    assert hold.is_due()
    hold.wait(None)
    assert not hold.is_due()
    hold.end_stretch(Event(is_done=False))  # then the host waits
    hold.end_stretch(Event(is_done=True))
    assert hold.is_due()
    hold.wait(Event(is_done=True))
    assert (hold.waits, hold.short) == (2, 0)
    assert not hold.is_due()
    assert len(cuda.slept_ns) == 3


def test_a_wait_has_a_least_and_a_most(monkeypatch: pytest.MonkeyPatch) -> None:
    for tick_ns, wait_ns in ((10, 50_000), (10**9, 20 * MS)):
        ticks = count()
        monkeypatch.setattr("inferometer.engines.device_hold._clock", lambda each=tick_ns, n=ticks: next(n) * each)
        hold = DeviceHold(cuda := Cuda())
        run(hold, 1)
        run(hold, 1)
        assert cuda.slept_ns[-1] == wait_ns


def test_a_pass_without_scopes_waits_for_nothing() -> None:
    hold = DeviceHold(cuda := Cuda())
    run(hold, 0)
    assert (hold.waits, cuda.slept_ns) == (0, [])
