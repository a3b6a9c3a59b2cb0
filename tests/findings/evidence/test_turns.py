"""No more threads work at once than may, besides those that wait for what another makes."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock

import pytest

from inferometer.findings.evidence.locked_property import locked_cached_property
from inferometer.findings.evidence.turns import Turns, awaited, let_others, taken_turn

PATIENCE_S = 60


class Shared:
    def __init__(self) -> None:
        self.begun, self.may_end = Event(), Event()

    @locked_cached_property
    def number(self) -> int:
        self.begun.set()
        assert self.may_end.wait(PATIENCE_S)
        return 5


def test_threads_that_wait_for_a_property_let_others_work() -> None:
    shared, turns, others = Shared(), Turns(2), Event()

    def ask() -> int:
        turns.acquire()
        with taken_turn(turns):
            return shared.number

    def work() -> None:
        turns.acquire()
        with taken_turn(turns):
            others.set()

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask) for _ in range(3)]
        assert shared.begun.wait(PATIENCE_S)
        pool.submit(work)
        is_working = others.wait(PATIENCE_S)
        shared.may_end.set()
    assert is_working
    assert [each.result() for each in asking] == [5] * 3


def test_no_more_work_at_once_than_have_a_turn() -> None:
    turns, lock, working, most = Turns(2), Lock(), [0], [0]

    def work(_: int) -> None:
        turns.acquire()
        with taken_turn(turns):
            for change in (1, -1):
                with lock:
                    working[0] += change
                    most[0] = max(most[0], working[0])
            with let_others():
                pass

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(60)))
    assert 1 <= most[0] <= 2
    assert turns.free == 2


def test_a_turn_ends_with_an_error() -> None:
    turns = Turns(1)
    turns.acquire()
    with pytest.raises(KeyError), taken_turn(turns), let_others():
        raise KeyError
    assert turns.free == 1


def test_who_has_no_turn_gives_none_away() -> None:
    turns = Turns(1)
    turns.acquire()
    with taken_turn(turns):
        pass
    with let_others():
        assert turns.free == 1
    assert turns.free == 1


def test_who_is_awaited_has_the_next_turn() -> None:
    turns, order = Turns(1), list[str]()
    waits = [Event(), Event()]

    def work(name: str) -> None:
        turns.acquire()
        with taken_turn(turns):
            order.append(name)

    def make() -> None:
        turns.acquire()
        with taken_turn(turns), awaited():
            with let_others():
                waits[0].set()
                assert waits[1].wait(PATIENCE_S)
            order.append("awaited")

    with ThreadPoolExecutor(4) as pool:
        making = pool.submit(make)
        assert waits[0].wait(PATIENCE_S)
        turns.acquire()
        others = [pool.submit(work, name) for name in ("one", "other")]
        waits[1].set()
        while turns.awaited < 1:
            time.sleep(0.001)
        turns.release()
        for each in (making, *others):
            each.result(PATIENCE_S)
    assert order[0] == "awaited"
    assert turns.free == 1
