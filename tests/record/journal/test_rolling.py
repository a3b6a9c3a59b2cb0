"""A store that stays below a size, and goes on where it was left."""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from inferometer.errors import FormatError, InputError
from inferometer.record.journal.journal import Journal
from inferometer.record.journal.rolling import RollingStore
from inferometer.record.journal.thinning import thinned
from inferometer.trace.series import Values
from inferometer.trace.store import read_store

_METRICS = 100  # a node with eight GPUs has some more
_DAY_S = 24 * 3600
_COUNT = "engine.generated_tokens"


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulated day is written within minutes: what is tested is its size, not the disk."""
    monkeypatch.setattr("os.fsync", lambda _: None)


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.iterdir())


def _simulate(store: RollingStore, seconds: int, *, first_s: int = 0, every_s: int = 10) -> Iterator[int]:
    """`_METRICS` metrics of noise at 10 Hz, one of them a count, and a step a second; a flush each `every_s`."""
    random = np.random.default_rng(first_s)
    names = [_COUNT, *(f"gpu_metric_{number}" for number in range(_METRICS - 1))]
    ticks = 10 * every_s
    for at_s in range(first_s, first_s + seconds, every_s):
        at_ns = np.repeat(np.arange(ticks) * 10**8 + at_s * 10**9, _METRICS)
        values = random.normal(50, 5, ticks * _METRICS)
        values[::_METRICS] = at_ns[::_METRICS] / 1e7
        columns: dict[str, Values] = {
            "metric": names * ticks,
            "time_ns": at_ns,
            "value": values,
            "host": "node",
            "device": "gpu:0",
        }
        store.add("counters", ticks * _METRICS, columns)
        starts = np.arange(at_s, at_s + every_s) * 10**9
        took = random.integers(9_000_000, 11_000_000, every_s)
        store.add("steps", every_s, {"start_ns": starts, "dur_ns": took})
        store.flush()
        yield at_s


def _check(path: Path, seconds: int, most_bytes: int) -> None:
    trace = read_store(path)
    assert trace.steps.collect().height == seconds
    counters = trace.counters.collect()
    assert _size(path) <= most_bytes
    assert trace.losses.total("samples_averaged") == seconds * 10 * _METRICS - counters.height
    assert trace.losses.total("rows_not_kept") == 0
    one = counters.filter(metric="gpu_metric_3").sort("time_ns")
    gaps = one["time_ns"].diff().drop_nulls()
    assert gaps.tail(100).max() == 10**8  # the newest are as they were
    assert gaps.head(30).mean() > 5e8  # type: ignore[operator]
    assert one["value"].mean() == pytest.approx(50, abs=0.5)
    grown = counters.filter(metric=_COUNT)
    assert (grown["value"] - grown["time_ns"] / 1e7).abs().max() < 1e-3  # type: ignore[operator]


def test_half_an_hour_takes_its_part_of_a_day(tmp_path: Path) -> None:
    seconds, most = 1800, 200_000_000 * 1800 // _DAY_S
    with RollingStore(
        tmp_path / "run.ifm", most_bytes=most * 95 // 100, growing=frozenset({_COUNT}), flush_s=99
    ) as store:
        sizes = [_size(tmp_path / "run.ifm") for _ in _simulate(store, seconds)]
    assert max(sizes) <= most
    _check(tmp_path / "run.ifm", seconds, most)


def test_a_day_at_10_hz_stays_below_200_mb(tmp_path: Path) -> None:
    with RollingStore(tmp_path / "run.ifm", growing=frozenset({_COUNT}), flush_s=9999) as store:
        sizes = [_size(tmp_path / "run.ifm") for _ in _simulate(store, _DAY_S, every_s=120)]
    assert max(sizes) <= 200_000_000
    assert max(sizes) > 150_000_000  # there was something to be kept small
    _check(tmp_path / "run.ifm", _DAY_S, 200_000_000)


def test_where_nothing_is_left_to_be_thinned_the_oldest_rows_go(tmp_path: Path) -> None:
    with RollingStore(tmp_path / "run.ifm", most_bytes=20_000, flush_s=99) as store:
        for _ in _simulate(store, 600):
            assert sum(file.stat().st_size for file in (tmp_path / "run.ifm").glob("*.parquet")) <= 20_000
    trace = read_store(tmp_path / "run.ifm")
    steps = trace.steps.collect()["start_ns"]
    assert steps.max() == 599 * 10**9
    assert steps.min() > 0  # type: ignore[operator]
    assert trace.losses.total("rows_not_kept") > 0


def test_a_level_becomes_its_mean_and_a_count_its_last_value() -> None:
    frame = pl.DataFrame(
        {
            "metric": ["a", "a", "a", _COUNT, _COUNT, "a"],
            "device": ["gpu:0", "gpu:0", "gpu:1", None, None, "gpu:0"],
            "time_ns": [0, 500, 10, 100, 900, 1000],
            "value": [1.0, 3.0, 9.0, 5.0, 7.0, None],
            "unit": "%",
        }
    )
    found = thinned(frame, 1000, frozenset({_COUNT}))
    assert found.select("metric", "device", "time_ns", "value").rows() == [
        ("a", "gpu:1", 10, 9.0),
        ("a", "gpu:0", 250, 2.0),
        (_COUNT, None, 900, 7.0),
        ("a", "gpu:0", 1000, None),
    ]


def test_a_store_that_was_left_goes_on_with_later_times(tmp_path: Path) -> None:
    path = tmp_path / "run.ifm"
    first = RollingStore(path, flush_s=99)
    for _ in _simulate(first, 20):
        pass
    first._stop.set()  # as if it had been killed here: no close
    assert first._lock is not None
    os.close(first._lock)
    assert read_store(path).losses.total("recording_ended_early") == 1
    with RollingStore(path, flush_s=99) as second:
        assert second.goes_on
        now = second.clock.now()
        assert now > 19.9e9
        assert abs(second.clock.base_ns + now - time.time_ns()) < 60e9
        for _ in _simulate(second, 20, first_s=20):
            pass
    trace = read_store(path)
    assert trace.steps.collect()["start_ns"].to_list() == [at * 10**9 for at in range(40)]
    assert trace.losses.total("recording_ended_early") == 0
    assert trace.facts.recorded["finished"]


def test_times_go_on_where_the_date_was_set_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RollingStore(tmp_path / "run.ifm", flush_s=99) as store:
        for _ in _simulate(store, 20):
            pass
    now = time.time_ns()
    monkeypatch.setattr("inferometer.record.journal.rolling.time.time_ns", lambda: now - 10**15)
    with RollingStore(tmp_path / "run.ifm", flush_s=99) as store:
        assert store.clock.now() > 19.9e9


def test_what_no_watch_made_is_not_touched(tmp_path: Path) -> None:
    with Journal(tmp_path / "run.ifm"):
        pass
    before = (tmp_path / "run.ifm" / "facts.json").read_bytes()
    with pytest.raises(InputError, match="no watch has made it"):
        RollingStore(tmp_path / "run.ifm")
    assert (tmp_path / "run.ifm" / "facts.json").read_bytes() == before
    (tmp_path / "folder.ifm").mkdir()
    (tmp_path / "file.ifm").write_text("x")
    (tmp_path / "nowhere.ifm").symlink_to("no-such-place")
    for name in ("folder", "file", "nowhere"):
        with pytest.raises(InputError, match="is no store"):
            RollingStore(tmp_path / f"{name}.ifm")


@pytest.mark.skipif(sys.platform == "win32", reason="no locks there")
def test_one_watch_writes_a_store_at_a_time(tmp_path: Path) -> None:
    with RollingStore(tmp_path / "run.ifm"), pytest.raises(InputError, match="another watch is writing it"):
        RollingStore(tmp_path / "run.ifm")
    with RollingStore(tmp_path / "run.ifm") as again:
        assert again.goes_on


@pytest.mark.parametrize("damage", [b"", b"{", b'{"mark": "inferometer-trace", "schema": [1, 10]}'])
def test_a_damaged_store_is_refused(tmp_path: Path, damage: bytes) -> None:
    with RollingStore(tmp_path / "run.ifm"):
        pass
    (tmp_path / "run.ifm" / "facts.json").write_bytes(damage)
    with pytest.raises(FormatError):
        RollingStore(tmp_path / "run.ifm")


def test_a_full_disk_is_said_once_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    store = RollingStore(tmp_path / "run.ifm", flush_s=99, on_trouble=said.append)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("inferometer.record.journal.parts.Parts._write", full)
        for _ in _simulate(store, 30):
            pass
    for _ in _simulate(store, 10, first_s=30):
        pass
    store.close()
    assert len(said) == 1
    assert "No space left" in said[0]
    trace = read_store(tmp_path / "run.ifm")
    assert trace.steps.collect().height == 10
    assert trace.losses.total("rows_not_written") == 30 * 10 * _METRICS + 30


def test_the_manifest_names_what_is_there(tmp_path: Path) -> None:
    with RollingStore(tmp_path / "run.ifm", most_bytes=200_000, flush_s=99) as store:
        for _ in _simulate(store, 300):
            pass
    tables = json.loads((tmp_path / "run.ifm" / "facts.json").read_text())["tables"]
    named = {name for table in tables.values() for name in table["files"]}
    assert {file.name for file in (tmp_path / "run.ifm").glob("*.parquet")} == named
