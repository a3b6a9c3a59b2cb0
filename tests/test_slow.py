"""Slow tests are those of the list, `make test` keeps one of each file, and CI runs each in one of six turns."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests import slow
from tests.effort import exhaustive_of, long_of
from tests.slow import COLLECTED, DEAR_S, drawn_out, function_of, slow_of, slow_tests, write_slow

SECONDS = {"tests/a/test_a.py::test_a": 0.4, "tests/a/test_a.py::test_b": 0.6, "tests/a/test_a.py::test_c": 3.0}
FILES = "tests/a/test_a.py", "tests/b/test_b.py"
SECONDS |= {"tests/b/test_b.py::test_a": 0.8, "tests/b/test_b.py::test_b": 2.0, "tests/c/test_c.py::test_alone": 3.9}


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The list has `SECONDS`."""
    write_slow(SECONDS, file := tmp_path / "slow.tsv")
    seconds = slow_tests(file)
    monkeypatch.setattr(slow, "slow_tests", lambda file=file: seconds)
    return file


def test_a_line_has_the_seconds_of_the_dearest_parameters(tmp_path: Path) -> None:
    write_slow({"a.py::test_b[1]": 0.25, "a.py::test_b[2]": 1.26, "a.py::test_quick[1]": 0.3}, tmp_path / "slow.tsv")
    assert (tmp_path / "slow.tsv").read_text() == "1.3\ta.py::test_b\n"


def test_what_was_not_run_stays_and_what_became_quick_goes(tmp_path: Path) -> None:
    write_slow({"a.py::test_a": 0.31, "a.py::test_b[1]": 2.0}, file := tmp_path / "slow.tsv")
    write_slow({"a.py::test_b[1]": 0.2, "a.py::test_c": 0.5}, file)
    assert slow_tests(file) == {"a.py::test_a": 0.3, "a.py::test_c": 0.5}


@pytest.mark.usefixtures("listed")
def test_of_a_file_of_slow_tests_alone_the_fastest_stays_in_make_test() -> None:
    assert slow_of([*SECONDS, "tests/b/test_b.py::test_quick"]) == {
        *(
            "tests/a/test_a.py::test_b",
            "tests/a/test_a.py::test_c",
            "tests/b/test_b.py::test_a",
            "tests/b/test_b.py::test_b",
        )
    }


@pytest.mark.usefixtures("listed")
def test_what_is_left_out_for_its_kind_is_no_reason_to_keep_another() -> None:
    of_truth = ["tests/truth/test_a.py::test_of_a_capture", "tests/a/test_a.py::test_a"]
    assert long_of(of_truth) == {"tests/truth/test_a.py::test_of_a_capture"}


@pytest.mark.usefixtures("listed")
def test_ci_draws_one_in_six_slow_tests_of_a_folder_and_one_of_fewer() -> None:
    further = [f"tests/a/test_a.py::test_c[{number}]" for number in range(5)]
    runs = [{*SECONDS, *further} - drawn_out([*SECONDS, *further], turn) for turn in range(6)]
    in_all = Counter(test for run in runs for test in run)
    assert all(len(run) >= len(FILES) for run in runs)
    assert {in_all[test] for test in (*further, "tests/a/test_a.py::test_b")} == {1}
    assert [names_in("tests/b/test_b.py", run) for run in runs] == [["test_b"], ["test_a"]] * 3
    assert all("tests/c/test_c.py::test_alone" in run for run in runs)


@pytest.mark.usefixtures("listed")
def test_ci_draws_one_in_six_dear_tests_of_all_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    dear = {f"tests/{file}/test_{file}.py::test_{name}": DEAR_S for file in "abcd" for name in "xyz"}
    monkeypatch.setattr(slow, "slow_tests", lambda: dear)
    runs = [dear.keys() - drawn_out(dear, turn) for turn in range(6)]
    assert [len(run) for run in runs] == [2] * 6
    assert set().union(*runs) == dear.keys()


def names_in(file: str, tests: Iterable[str]) -> list[str]:
    return sorted(test.partition("::")[2] for test in tests if test.startswith(file))


@pytest.mark.usefixtures("listed")
def test_what_ci_samples_in_another_way_is_not_drawn_again() -> None:
    slices = [f"tests/fuzz/test_campaign.py::test_a_slice_has_no_defect[{part}]" for part in range(4)]
    assert exhaustive_of([*slices, *SECONDS], 2) == exhaustive_of(slices, 2) | drawn_out(SECONDS, 2)


def test_every_line_stands_for_a_test(pytestconfig: pytest.Config) -> None:
    if pytestconfig.args != pytestconfig.getini("testpaths"):
        pytest.skip("needs all tests to be collected")
    collected = {function_of(test) for test in pytestconfig.stash[COLLECTED]}
    files = {test.partition("::")[0] for test in collected}  # without an extra some have none
    assert [test for test in slow_tests() if test.partition("::")[0] in files and test not in collected] == []
