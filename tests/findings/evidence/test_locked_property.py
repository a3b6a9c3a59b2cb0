"""A property that several threads ask for is made once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from inferometer.findings.evidence.locked_property import locked_cached_property

ASKING = 4


class Kept:
    def __init__(self) -> None:
        self.made = 0

    @locked_cached_property
    def number(self) -> int:
        self.made += 1
        return self.made

    @locked_cached_property
    def double(self) -> int:
        return 2 * self.number


def test_threads_that_ask_at_once_get_what_the_first_made() -> None:
    kept, all_here = Kept(), Barrier(ASKING)

    def ask(turn: int) -> int:
        all_here.wait()
        return kept.double if turn % 2 else 2 * kept.number

    with ThreadPoolExecutor(ASKING) as pool:
        assert list(pool.map(ask, range(ASKING))) == [2] * ASKING
    assert kept.made == 1


def test_each_instance_has_its_own() -> None:
    first, second = Kept(), Kept()
    second.made = 5
    assert (first.double, second.double, first.number) == (2, 12, 1)
    assert Kept.number is vars(Kept)["number"]
