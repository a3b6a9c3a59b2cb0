"""Groups of tests that run in one process, and their order."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.scheduling import LONGEST, group_of, sort_longest_first

ROOT = Path(__file__).resolve().parents[1]


def test_a_group_is_a_file_or_a_capture() -> None:
    assert group_of("tests/names/test_a.py::TestA::test_b[x]") == "tests/names/test_a.py"
    assert group_of("tests/bench/builds/test_gate.py::test_a") == "tests/bench/builds"
    assert group_of("tests/truth/test_examined.py::test_a[a100_nccl]") == "a100_nccl"
    assert group_of("tests/truth/test_raw.py::test_a") == "tests/truth/test_raw.py"


def test_the_longest_groups_come_first_then_those_of_the_most_cpu_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.scheduling.slow_tests", lambda: {"tests/c.py::1": 0.5, "tests/d.py::1": 9.0})
    tests = ["tests/a.py::1", "tests/b.py::1", "tests/b.py::2", "tests/c.py::1[x]", "tests/d.py::1"]
    items: list[Any] = [SimpleNamespace(nodeid=test) for test in (*tests, f"{LONGEST[1]}::1", f"{LONGEST[0]}::1")]
    sort_longest_first(items)
    assert [item.nodeid for item in items] == [
        *(f"{LONGEST[0]}::1", f"{LONGEST[1]}::1"),
        *("tests/d.py::1", "tests/c.py::1[x]", "tests/b.py::1", "tests/b.py::2", "tests/a.py::1"),
    ]


def test_the_longest_groups_are_there() -> None:
    assert [group for group in LONGEST if not (ROOT / group).exists()] == []
