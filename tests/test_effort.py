"""What `make test` leaves out is there, and what CI doesn't run twice has passed and asks for no extra."""

from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.effort import (
    ASK_FOR_EXTRAS,
    ASK_FOR_NONE,
    EXHAUSTIVE,
    LONG,
    SAMPLED,
    SAMPLED_GROUPS,
    Passed,
    exhaustive_of,
    leave_out,
    turn_of,
)
from tests.slow import COLLECTED


@pytest.fixture(scope="module")
def tests(pytestconfig: pytest.Config) -> frozenset[str]:
    """All that there are, whatever this run leaves out."""
    if pytestconfig.getoption("--quick") or pytestconfig.args != pytestconfig.getini("testpaths"):
        pytest.skip("needs all tests to be collected")
    return pytestconfig.stash[COLLECTED]


def test_each_pattern_stands_for_tests(tests: frozenset[str]) -> None:
    patterns = (*LONG, *ASK_FOR_EXTRAS, *ASK_FOR_NONE, *EXHAUSTIVE)
    assert [pattern for pattern in patterns if not any(fnmatchcase(test, pattern) for test in tests)] == []


def test_ci_runs_one_in_so_many_and_all_of_them_in_as_many_turns() -> None:
    slices = [f"tests/fuzz/test_campaign.py::test_a_slice_has_no_defect[{part}]" for part in range(4)]
    run = [sorted({*slices} - exhaustive_of(slices, turn)) for turn in range(4)]
    assert sorted(run) == [[each] for each in slices]


def test_ci_reads_one_in_so_many_captures_and_asks_all_of_it() -> None:
    captures = ("h100_vit", "mi300_resnet_ddp", "mi300_vit")
    truth = [[f"tests/truth/{file}.py::test_a[{name}]" for file in ("test_a", "test_b")] for name in captures]
    run = [sorted({*chain(*truth)} - exhaustive_of(chain(*truth), turn)) for turn in range(len(captures))]
    assert run == [truth[0], truth[2], truth[1]]


def test_ci_leaves_out_what_is_exhaustive_in_any_turn_and_nothing_else() -> None:
    test = "tests/commands/test_killed.py::test_a_killed_command_leaves_the_old_or_the_new_output_whole[{}]".format
    tests = [test("record"), test("import"), "tests/test_units.py::test_a"]
    left_out = [exhaustive_of(tests, turn) for turn in range(3)]
    assert all(test("record") in each for each in left_out)
    assert sorted(map(len, left_out)) == [1, 2, 2], "import is sampled"


def test_a_turn_is_the_beginning_of_a_commit_s_name() -> None:
    assert [turn_of(given) for given in ({}, {"TURN": ""}, {"TURN": "387a5b0"})] == [0, 0, 0x387A5B0]


def test_of_each_kind_that_ci_samples_some_tests_are_in_it_and_some_are_not(tests: frozenset[str]) -> None:
    exhaustive = exhaustive_of(tests, 0)
    for pattern in (*SAMPLED, *SAMPLED_GROUPS):
        assert {test in exhaustive for test in tests if fnmatchcase(test, pattern)} == {True, False}, pattern


def test_only_what_passed_and_asks_for_no_extra_is_left_out(tmp_path: Path) -> None:
    outcomes = [
        ("tests/names/test_a.py::test_b[\n]", "call", "passed"),
        ("tests/names/test_a.py::test_failed", "call", "failed"),
        ("tests/names/test_a.py::test_skipped", "setup", "skipped"),
        ("tests/names/test_a.py::test_left_a_mess", "call", "passed"),
        ("tests/names/test_a.py::test_left_a_mess", "teardown", "failed"),
        ("tests/bench/test_a.py::test_of_torch", "call", "passed"),
        ("tests/bench/ranking/test_a.py::test_of_numbers", "call", "passed"),
    ]
    (tmp_path / "passed.txt").write_text("'tests/of_an_earlier_run.py::test_a'\n")
    noted = Passed(tmp_path / "passed.txt")
    for test, when, outcome in outcomes:
        noted.pytest_runtest_logreport(_report(test, when, outcome))
    noted.pytest_sessionfinish()

    assert "'tests/of_an_earlier_run.py::test_a'" in (tmp_path / "passed.txt").read_text().splitlines()
    items: list[Any] = [SimpleNamespace(nodeid=test) for test in dict.fromkeys(test for test, _, _ in outcomes)]
    left_out = ["tests/names/test_a.py::test_b[\n]", "tests/bench/ranking/test_a.py::test_of_numbers"]
    assert [item.nodeid for item in leave_out(items, tmp_path / "passed.txt")] == left_out
    assert len(items) == 4


def _report(test: str, when: str, outcome: str) -> Any:
    return SimpleNamespace(nodeid=test, when=when, failed=outcome == "failed", passed=outcome == "passed")
