"""What `make test` leaves out is there, and what CI doesn't run twice has passed and asks for no extra."""

import os
from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.effort import ASK_FOR_EXTRAS, EXHAUSTIVE, LONG, SAMPLED, Passed, is_exhaustive, leave_out


@pytest.fixture(scope="module")
def tests(request: pytest.FixtureRequest) -> list[str]:
    return [item.nodeid for item in request.session.items]


def test_each_pattern_stands_for_tests(tests: list[str], pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--quick") or pytestconfig.args != pytestconfig.getini("testpaths"):
        pytest.skip("needs all tests to be collected")
    patterns = (*LONG, *ASK_FOR_EXTRAS, *(() if os.environ.get("CI") else EXHAUSTIVE))
    assert [pattern for pattern in patterns if not any(fnmatchcase(test, pattern) for test in tests)] == []


def test_what_ci_leaves_out_is_a_part_of_what_it_runs() -> None:
    test = "tests/fuzz/test_campaign.py::test_a_slice_has_no_defect[{}]".format
    assert [part for part in range(4) if is_exhaustive(test(part))] == [2, 3]


def test_of_each_kind_that_ci_samples_some_tests_are_in_it_and_some_are_not(
    tests: list[str], pytestconfig: pytest.Config
) -> None:
    if os.environ.get("CI") or pytestconfig.getoption("--quick"):
        pytest.skip("needs all tests to be collected")
    if pytestconfig.args != pytestconfig.getini("testpaths"):
        pytest.skip("needs all tests to be collected")
    for pattern in SAMPLED:
        assert {is_exhaustive(test) for test in tests if fnmatchcase(test, pattern)} == {True, False}, pattern


def test_only_what_passed_and_asks_for_no_extra_is_left_out(tmp_path: Path) -> None:
    outcomes = [
        ("tests/names/test_a.py::test_b[\n]", "call", "passed"),
        ("tests/names/test_a.py::test_failed", "call", "failed"),
        ("tests/names/test_a.py::test_skipped", "setup", "skipped"),
        ("tests/names/test_a.py::test_left_a_mess", "call", "passed"),
        ("tests/names/test_a.py::test_left_a_mess", "teardown", "failed"),
        ("tests/bench/test_a.py::test_of_torch", "call", "passed"),
    ]
    (tmp_path / "passed.txt").write_text("'tests/of_an_earlier_run.py::test_a'\n")
    noted = Passed(tmp_path / "passed.txt")
    for test, when, outcome in outcomes:
        noted.pytest_runtest_logreport(_report(test, when, outcome))
    noted.pytest_sessionfinish()

    assert "'tests/of_an_earlier_run.py::test_a'" in (tmp_path / "passed.txt").read_text().splitlines()
    items: list[Any] = [SimpleNamespace(nodeid=test) for test in dict.fromkeys(test for test, _, _ in outcomes)]
    assert [item.nodeid for item in leave_out(items, tmp_path / "passed.txt")] == ["tests/names/test_a.py::test_b[\n]"]
    assert len(items) == 4


def _report(test: str, when: str, outcome: str) -> Any:
    return SimpleNamespace(nodeid=test, when=when, failed=outcome == "failed", passed=outcome == "passed")
