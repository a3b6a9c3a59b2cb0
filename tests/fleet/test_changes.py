"""Planted changes are found where they are; without one, an alarm is as rare as it is said to be."""

from pathlib import Path

import numpy as np
import pytest
from tests.fleet.digests import fleet_of, steps

from inferometer.fleet.questions.changes import best_place, changed_places, fleet_changes, series_of

DRAW = np.random.default_rng(20260)


def test_a_planted_change_is_found_at_its_version_with_its_size(tmp_path: Path) -> None:
    slower = {"0.8.0": 1.0, "0.9.1": 1.0, "0.10.0": 1.3, "0.11": 1.3}
    traces = {
        f"{model}{version}{n}": steps(
            1e6 * (factor if model == "a" else 1.0) * float(np.exp(DRAW.normal(0, 0.01))), model=model, version=version
        )
        for model in ("a", "b")
        for version, factor in slower.items()
        for n in range(6)
    }
    found = fleet_changes(fleet_of(tmp_path / "f.ifm", traces))
    assert found.series == 2
    row = found.frame.row(0, named=True)
    assert found.frame.height == 1
    assert (row["model"], row["before"], row["after"]) == ("a", "0.9.1", "0.10.0")
    assert (row["traces_before"], row["traces_after"]) == (12, 12)
    assert 1.25 < row["low"] < row["ratio"] < row["high"] < 1.35
    assert row["ratio"] == pytest.approx(1.3, rel=0.02)


def test_two_changes_of_one_series_are_both_found(tmp_path: Path) -> None:
    sizes = {"1": 1.0, "2": 1.5, "3": 1.5, "4": 0.8}
    traces = {
        f"{version}{n}": steps(1e6 * size + 1000 * n, version=version)
        for version, size in sizes.items()
        for n in range(8)
    }
    found = fleet_changes(fleet_of(tmp_path / "f.ifm", traces)).frame
    assert sorted(found.select("before", "after").rows()) == [("1", "2"), ("3", "4")]


def test_few_traces_are_no_answer(tmp_path: Path) -> None:
    traces = {f"{version}{n}": steps(1e6 * int(version), version=version) for version in "12" for n in range(3)}
    found = fleet_changes(fleet_of(tmp_path / "f.ifm", traces))
    assert (found.series, found.short, found.frame.height) == (0, 1, 0)


def test_equal_steps_are_no_change(tmp_path: Path) -> None:
    traces = {f"{version}{n}": steps(1e6, version=version) for version in "12" for n in range(5)}
    found = fleet_changes(fleet_of(tmp_path / "f.ifm", traces))
    assert (found.series, found.frame.height) == (1, 0)


def test_without_a_change_an_alarm_is_rare() -> None:
    versions = [version for version in "1234" for _ in range(5)]
    heavy = [np.abs(DRAW.standard_cauchy(20)) for _ in range(300)]  # whatever the distribution
    alarms = sum(best_place(series_of(versions, values), 399, 0.05)[1] is not None for values in heavy)
    assert alarms <= 24  # of 300 at 5 % are 15, and more than 24 are below 1 %: scipy.stats.binom.sf(24, 300, 0.05)
    assert alarms >= 5  # a test that never alarms finds nothing


def test_next_to_a_change_an_alarm_is_as_rare() -> None:
    versions = [version for version in "1234" for _ in range(8)]
    alarms = 0
    for _ in range(200):
        steps_ns = np.exp(DRAW.normal(0, 0.1, 32)) * np.where(np.arange(32) < 16, 1.0, 3.0)
        series = series_of(versions, steps_ns)
        place, _ = best_place(series, 999)
        assert place == 16
        alarms += len(changed_places(series, place, 0.05, 999)) > 1
    assert alarms <= 19  # of 200 at 5 % are 10, and more than 19 are 0.3 %: scipy.stats.binom.sf(19, 200, 0.05)
    assert alarms >= 1


def test_drawing_ends_early_only_where_the_answer_is_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = [version for version in "12345" for _ in range(40)]
    judged = []
    for shift in np.linspace(0, 0.6, 25):
        values = DRAW.normal(0, 1, 200) + np.where(np.arange(200) < 80, 0.0, shift)
        series = series_of(versions, values)
        whole = best_place(series, 999)
        assert whole[1] is not None
        monkeypatch.setattr("inferometer.fleet.questions.changes._CELLS", 1000)  # of five permutations at a time
        assert best_place(series, 999) == whole
        early = best_place(series, 999, 0.05)
        assert early == (whole[0], whole[1] if whole[1] <= 0.05 else None)
        judged.append(early[1] is None)
        monkeypatch.undo()
    assert 0 < sum(judged) < len(judged)


def test_versions_are_in_the_order_of_their_numbers() -> None:
    found = series_of(["0.10.0", "0.9.1", "0.9.0", "0.9.1rc1"], np.arange(4.0))
    assert list(found.versions) == ["0.9.0", "0.9.1", "0.9.1rc1", "0.10.0"]
