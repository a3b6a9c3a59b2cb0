"""While columns are shared, each is read once; the answers are those without."""

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Barrier
from typing import Any

import pytest
from tests.traces import trace_of

from inferometer.trace import lean, shared_columns
from inferometer.trace.shared_columns import made_once, read_columns, sharing
from inferometer.trace.trace import Trace

NAMES = ("kernel", "stream", "rank", "start_ns")


@pytest.fixture
def trace() -> Trace:
    return trace_of([{"kernel": f"k{n % 2}", "stream": 7, "start_ns": n} for n in range(5)])


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What is read, of tables that count as long."""
    found: list[tuple[str, ...]] = []

    def collect(table: Any, names: Any) -> Any:
        found.append(tuple(names))
        return lean.collect_lean(table, names)

    monkeypatch.setattr(shared_columns, "LARGE", 0)
    monkeypatch.setattr(shared_columns, "collect_lean", collect)
    return found


def test_columns_are_read_once_and_only_while_they_are_shared(trace: Trace, reads: list[tuple[str, ...]]) -> None:
    alone = read_columns(trace, "launches", NAMES)
    assert reads == [NAMES]
    reads.clear()
    with sharing(trace):
        found = read_columns(trace, "launches", NAMES)
        some = read_columns(trace, "launches", NAMES[1:3])
        with sharing(trace):  # another that shares, too, ends nothing
            pass
        assert read_columns(trace, "launches", NAMES).equals(found)
    assert reads == [(name,) for name in NAMES]
    assert found.equals(alone)
    assert found.schema == alone.schema
    assert some.equals(alone.select(NAMES[1:3]))
    read_columns(trace, "launches", NAMES)
    assert reads[len(NAMES) :] == [NAMES]


def test_threads_that_ask_at_once_have_what_the_first_made(trace: Trace) -> None:
    numbers, all_here = count(1), Barrier(4)

    def ask(_: int) -> int:
        all_here.wait()
        return made_once(trace, "key", lambda: next(numbers))

    with sharing(trace), ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == [1] * 4
    assert made_once(trace, "key", lambda: 5) == 5


def test_what_one_made_is_there_until_the_last_that_shares_ends(trace: Trace) -> None:
    first, second = sharing(trace), sharing(trace)
    first.__enter__()
    second.__enter__()
    made_once(trace, "key", lambda: 1)
    first.__exit__(None, None, None)
    assert made_once(trace, "key", lambda: 2) == 1
    second.__exit__(None, None, None)
    assert trace.shared is None
    assert made_once(trace, "key", lambda: 3) == 3


def test_sharing_ends_with_an_error(trace: Trace) -> None:
    with pytest.raises(KeyError), sharing(trace):
        raise KeyError
    assert trace.shared is None
