"""Launch delay: from the call to the first device work."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples

from inferometer.analyses.tables.delays import COLUMNS, launch_delays

SCHEMA = {"api": pl.String, **dict.fromkeys(("start_ns", "dur_ns", "launches", "first_ns"), pl.Int64)}
CALL = st.fixed_dictionaries(
    {
        "api": st.sampled_from(["a", "b"]),
        "start_ns": st.integers(0, 2**60),
        "dur_ns": st.integers(0, 2**40),
        "launches": st.integers(1, 500),
        "first_ns": st.none() | st.integers(0, 2**60),
    }
)


def delays(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    usual = {"api": "cudaLaunchKernel", "start_ns": 100, "dur_ns": 10, "launches": 1, "first_ns": 130}
    return launch_delays(pl.DataFrame([usual | call for call in calls], schema=SCHEMA)).to_dicts()


def test_delay_begins_with_the_call_and_queued_time_with_its_end() -> None:
    one, every = delays([{}])
    assert (one["delay_median_ns"], one["queued_median_ns"]) == (30, 20)
    assert every == one | {"api": None}


def test_time_after_the_call_is_negative_where_the_device_began_before_it_returned() -> None:
    row = delays([{"first_ns": 104}])[0]
    assert (row["delay_min_ns"], row["queued_min_ns"]) == (4, -6)


def test_a_graph_launch_is_one_call_with_many_launches() -> None:
    row = delays([{"launches": 500}, {"launches": 300}])[0]
    assert (row["calls"], row["launches"], row["launches_per_call"]) == (2, 800, 400.0)


def test_calls_without_device_work_have_no_delay() -> None:
    every = delays([{"first_ns": None, "launches": None}])
    assert [(row["api"], row["calls"], row["launches"], row["delay_max_ns"]) for row in every] == [(None, 0, 0, None)]


def test_columns_are_as_promised_and_most_calls_stand_first() -> None:
    rows = delays([{"api": "b"}, {"api": "c"}, {"api": "a"}, {"api": "c"}])
    assert [row["api"] for row in rows] == ["c", "a", "b", None]
    assert tuple(rows[0]) == COLUMNS


@given(st.lists(CALL, min_size=1, max_size=30))
@examples(60)
def test_percentiles_are_numpys(calls: list[dict[str, Any]]) -> None:
    for row in delays(calls):
        own = [call for call in calls if call["first_ns"] is not None and row["api"] in (None, call["api"])]
        assert row["calls"] == len(own)
        if own:
            delay = [call["first_ns"] - call["start_ns"] for call in own]
            assert (row["delay_min_ns"], row["delay_max_ns"]) == (min(delay), max(delay))
            for name, q in (("median", 50), ("p95", 95), ("p99", 99)):
                assert row[f"delay_{name}_ns"] == pytest.approx(np.percentile(delay, q), rel=1e-9, abs=256)
