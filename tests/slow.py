"""Tests that take long, as measured: `make test` leaves them out, and CI draws some of each folder's.

`slow_tests.tsv` has the CPU seconds of each such test, of its dearest parameters, with all extras on one core. To
measure again: `CI=1 python -m pytest -p tools.cpu_of_tests --note-slow PATH...`; lines of tests that didn't run stay.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

FILE: Final = Path(__file__).with_name("slow_tests.tsv")
SLOW_S: Final = 0.3
"""CPU seconds above which a test is in the file."""

DEAR_S: Final = 4.0
"""CPU seconds from which on a test is drawn from the dear ones of all folders, not from those of its own."""

COLLECTED: Final = pytest.StashKey[frozenset[str]]()
"""All tests that pytest found, by node id, before any was left out."""

_ONE_IN: Final = 6


@cache
def slow_tests(file: Path = FILE) -> Mapping[str, float]:
    """CPU seconds by test, without parameters."""
    lines = (line.split("\t") for line in file.read_text("utf-8").splitlines())
    return {test: float(seconds) for seconds, test in lines}


def write_slow(spent: Mapping[str, float], file: Path = FILE) -> None:
    """Put the tests that took long into the file, and take out those that no longer do.

    Args:
        spent: CPU seconds by node id.
        file: It need not be there.
    """
    dearest: dict[str, float] = defaultdict(float)
    for test, seconds in spent.items():
        dearest[function_of(test)] = max(dearest[function_of(test)], seconds)
    found = dict(slow_tests(file)) if file.exists() else {}
    for test, seconds in dearest.items():
        found.pop(test, None)
        if seconds > SLOW_S:
            found[test] = seconds
    file.write_text("".join(f"{found[test]:.1f}\t{test}\n" for test in sorted(found)), "utf-8")
    slow_tests.cache_clear()


def slow_of(tests: Iterable[str]) -> set[str]:
    """Those of all tests, by node id, that are in the file, but of a test file of slow ones alone the fastest."""
    slow = slow_tests()
    by_file = defaultdict(list)
    for test in tests:
        by_file[test.partition("::")[0]].append(test)
    found = set()
    for alike in by_file.values():
        seconds = {test: slow[function_of(test)] for test in alike if function_of(test) in slow}
        fastest = min(map(function_of, seconds), key=slow.__getitem__) if len(seconds) == len(alike) else None
        found |= {test for test in seconds if function_of(test) != fastest}
    return found


def drawn_out(tests: Iterable[str], turn: int) -> set[str]:
    """Which of these, by node id, CI leaves out in this turn: of a folder's slow ones it runs one in six.

    Of fewer it runs one; of the dear ones of all folders together it runs one in six. Which of them is drawn first
    differs from folder to folder, so that each turn takes about as long.
    """
    slow = slow_tests()
    pools = defaultdict(list)
    for test in sorted(tests):
        if seconds := slow.get(function_of(test)):
            pools["" if seconds >= DEAR_S else test.partition("::")[0].rpartition("/")[0]].append(test)
    return {
        test
        for number, (folder, alike) in enumerate(sorted(pools.items()))
        for place, test in enumerate(alike)
        if (place + number + turn) % (min(_ONE_IN, len(alike)) if folder else _ONE_IN)
    }


def function_of(test: str) -> str:
    """The node id without parameters."""
    return test.partition("[")[0]
