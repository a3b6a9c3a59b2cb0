"""What `benchmarks.fleet` plants is found, and what it says doesn't hold where something else is said."""

from dataclasses import replace
from typing import Any

import pytest
from benchmarks.fleet import Asked, bars_of
from benchmarks.fleet_traces import BROKEN, LABELS, Truth, write_fleet
from tests.fleet.mined import mined

import inferometer
from inferometer.fleet.opening import open_fleet
from inferometer.fleet.questions.changes import fleet_changes
from inferometer.fleet.questions.importance import fleet_importance
from inferometer.fleet.questions.outliers import fleet_outliers
from inferometer.fleet.questions.times import fleet_times

TRACES = 60
Given = tuple[Truth, dict[str, Any], dict[str, Asked]]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Given:
    folder = tmp_path_factory.mktemp("planted")
    truth = write_fleet(folder / "traces", TRACES, steps=2)
    found = mined(folder / "f.ifm", folder / "traces", workers=2, labels=LABELS)
    fleet = open_fleet(folder / "f.ifm")
    results = {
        "kernels": fleet_times(fleet, "kernels"),
        "importance": fleet_importance(fleet),
        "changes": fleet_changes(fleet),
        "outliers": fleet_outliers(fleet),
    }
    said = {"traces": found.traces, "aside": [{"path": path} for path, _ in found.aside]}
    return truth, said, {name: Asked(0.0, 0.0, inferometer.json_of(result)) for name, result in results.items()}


def test_all_that_was_planted_is_found(given: Given) -> None:
    truth, said, asked = given
    assert [bar.name for bar in bars_of(truth, said, asked, TRACES) if not bar.holds] == []
    assert (len(truth.broken), len(truth.faulty)) == (BROKEN, 2)


def test_other_contents_hold_no_bar(given: Given) -> None:
    truth, said, asked = given
    other = replace(
        truth,
        total_ns=truth.total_ns + truth.total_ns.__class__({next(iter(truth.total_ns)): 10**9}),
        kernels_ns=truth.kernels_ns + truth.kernels_ns.__class__(gemm_up=1),
        faulty=truth.faulty[:1],
        broken=truth.broken[1:],
    )
    silent = asked | {"changes": Asked(0.0, 0.0, {"rows": []})}
    assert not any(bar.holds for bar in bars_of(other, said, silent, TRACES + 1))
