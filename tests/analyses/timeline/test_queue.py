"""The queue of a device, against looking at every nanosecond."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples

from inferometer.analyses.timeline.queue import draw_strip, queue_depths

SCHEMA = {
    "rank": pl.Int64,
    "device": pl.String,
    "start_ns": pl.Int64,
    "dur_ns": pl.Int64,
    "called_ns": pl.Int64,
}
LAUNCH = st.fixed_dictionaries(
    {
        "rank": st.sampled_from([None, 0]),
        "device": st.sampled_from([None, "gpu:0", "gpu:1"]),
        "start_ns": st.integers(0, 40),
        "dur_ns": st.integers(0, 10),
        "called_ns": st.none() | st.integers(-10, 45),
    }
)


def frame(launches: list[dict[str, Any]]) -> pl.DataFrame:
    usual = {"rank": None, "device": "gpu:0", "dur_ns": 10, "called_ns": None}
    return pl.DataFrame([usual | launch for launch in launches], schema=SCHEMA)


def test_launches_wait_from_their_call_to_their_start() -> None:
    launches = [
        {"called_ns": 0, "start_ns": 10},  # runs to 20
        {"called_ns": 5, "start_ns": 20},  # to 30
        {"called_ns": 40, "start_ns": 44},  # to 54; idle from 30: starved to 40, queued to 44
    ]
    devices, series = queue_depths(frame(launches), bins=4)
    assert devices.to_dicts() == [
        {
            "rank": None,
            "device": "gpu:0",
            "launches": 3,
            "queued_launches": 3,
            "start_ns": 10,
            "window_ns": 44,
            "mean_depth": (10 + 4) / 44,
            "max_depth": 1,
            "busy_ns": 30,
            "queued_idle_ns": 4,
            "starved_ns": 10,
        }
    ]
    assert series.select("start_ns", "end_ns", "mean_depth", "max_depth").rows() == [
        (10, 21, 10 / 11, 1),
        (21, 32, 0.0, 0),
        (32, 43, 3 / 11, 1),
        (43, 54, 1 / 11, 1),
    ]


def test_a_window_looks_at_a_part_and_knows_what_waited_before_it() -> None:
    launches = [{"called_ns": 0, "start_ns": 30}, {"called_ns": 0, "start_ns": 10}]
    devices, _ = queue_depths(frame(launches), (25, 35))
    assert devices.select("launches", "window_ns", "mean_depth", "busy_ns", "queued_idle_ns", "starved_ns").rows() == [
        (1, 10, 0.5, 5, 5, 0)
    ]


def test_work_without_a_call_keeps_the_device_busy_and_is_in_no_queue() -> None:
    devices, _ = queue_depths(frame([{"start_ns": 0}, {"start_ns": 20, "called_ns": 15}]))
    assert devices.select("launches", "queued_launches", "max_depth", "busy_ns", "starved_ns").rows() == [
        (2, 1, 1, 20, 5)
    ]


def test_work_that_begins_before_its_call_never_waited() -> None:
    devices, _ = queue_depths(frame([{"start_ns": 10, "called_ns": 12}]))
    assert devices.select("max_depth", "mean_depth").rows() == [(0, 0.0)]


def test_without_calls_or_time_there_is_no_queue() -> None:
    for launches in ([], [{"start_ns": 0}], [{"start_ns": 0, "called_ns": 0, "dur_ns": 0}]):
        devices, series = queue_depths(frame(launches))
        assert (devices.height, series.height) == (0, 0)


@given(st.lists(LAUNCH, max_size=10), st.none() | st.tuples(st.integers(0, 20), st.integers(21, 50)), st.integers(1, 9))
@examples(150)
def test_any_queue_is_what_looking_at_every_nanosecond_gives(
    launches: list[dict[str, Any]], window: tuple[int, int] | None, bins: int
) -> None:
    devices, series = queue_depths(frame(launches), window, bins=bins)
    for row in devices.iter_rows(named=True):
        own = [each for each in launches if (each["rank"], each["device"]) == (row["rank"], row["device"])]
        tied = [each for each in own if each["called_ns"] is not None]
        moments = range(row["start_ns"], row["start_ns"] + row["window_ns"])
        depth = {t: sum(each["called_ns"] <= t < each["start_ns"] for each in tied) for t in moments}
        busy = {t: any(0 <= t - each["start_ns"] < each["dur_ns"] for each in own) for t in moments}
        assert row["mean_depth"] == pytest.approx(sum(depth.values()) / len(depth))
        assert row["max_depth"] == max(depth.values())
        assert row["busy_ns"] == sum(busy.values())
        assert row["starved_ns"] == sum(not busy[t] and not depth[t] for t in moments)
        assert row["busy_ns"] + row["queued_idle_ns"] + row["starved_ns"] == row["window_ns"]
        place = [pl.col(name).eq_missing(pl.lit(row[name], dtype=SCHEMA[name])) for name in ("rank", "device")]
        parts = series.filter(place).rows(named=True)
        assert [t for part in parts for t in range(part["start_ns"], part["end_ns"])] == list(moments)
        for part in parts:
            inside = [depth[t] for t in range(part["start_ns"], part["end_ns"])]
            assert part["mean_depth"] == pytest.approx(sum(inside) / len(inside))
            assert part["max_depth"] == max(inside)


def test_a_strip_has_one_mark_a_value_as_high_as_its_share_of_the_largest() -> None:
    assert draw_strip([0, 1, 2, 4, 7, 8]) == "▁▂▃▅██"
    assert draw_strip([0.0, 0.0]) == "▁▁"
    assert draw_strip([]) == ""
