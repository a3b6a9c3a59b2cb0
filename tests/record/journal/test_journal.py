"""The journal: what is added is in the store, in order, once; the store can be read at any time."""

import errno
import os
import random
import re
import shutil
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest

import inferometer
from inferometer.errors import InputError, UnknownName
from inferometer.record.clock import Clock
from inferometer.record.journal import parts, time_order
from inferometer.record.journal.journal import Journal
from inferometer.record.journal.parts import Parts
from inferometer.record.sink import Sink
from inferometer.trace.facts import Device
from inferometer.trace.series import Values
from inferometer.trace.tables import TABLES
from inferometer.trace.trace import Trace

NEVER = 1e6  # s between flushes: the test says when


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.ifm"


def quiet(path: Path, **options: object) -> Journal:
    """A journal that flushes when reported, and must have no trouble."""
    return Journal(path, **{"flush_s": NEVER, "on_trouble": pytest.fail, **options})  # type: ignore[arg-type]


def add_spans(sink: Sink, *starts: int, thread: int = 1) -> None:
    sink.add(
        "spans", len(starts), {"span": [f"s{at}" for at in starts], "thread": thread, "start_ns": starts, "dur_ns": 1}
    )


def starts_of(trace: Trace, table: str = "spans") -> list[int]:
    return trace.tables[table].select("start_ns").collect()["start_ns"].to_list()


def files_of(path: Path, table: str = "spans") -> list[str]:
    return sorted(file.name for file in path.glob(f"{table}-*.parquet"))


def counts_of(trace: Trace) -> dict[tuple[str, str | None], int]:
    return {(loss.name, loss.category): loss.count for loss in trace.losses}


# What is written


def test_the_store_is_there_and_empty_at_once(path: Path) -> None:
    clock = Clock(origin_ns=5, base_ns=7_000)
    with quiet(path, clock=clock) as journal:
        trace = inferometer.open(path)
        assert (sum(trace.count_rows().values()), trace.facts.clock_base_ns) == (0, 7_000)
        assert trace.facts.recorded == {"finished": False}
        assert journal.clock is clock
    trace = inferometer.open(path)
    assert (sum(trace.count_rows().values()), trace.facts.recorded) == (0, {"finished": True})
    assert list(trace.losses) == []


def test_rows_are_in_the_store_after_a_flush_and_after_the_end(path: Path) -> None:
    with quiet(path) as journal:
        add_spans(journal, 3, 1)
        add_spans(journal, 2)
        assert starts_of(inferometer.open(path)) == []
        journal.flush()
        assert starts_of(inferometer.open(path)) == [3, 1, 2]
        add_spans(journal, 0)
    trace = inferometer.open(path)
    assert starts_of(trace) == [0, 1, 2, 3]
    assert trace.spans.collect().row(0, named=True) == {
        "span": "s0", "domain": None, "rank": None, "process": None, "thread": 1, "device": None, "stream": None,
        "start_ns": 0, "dur_ns": 1, "input_dims": None, "input_dtypes": None,
    }  # fmt: skip
    assert files_of(path) == ["spans-00002.parquet"]


def test_the_thread_writes_by_itself(path: Path) -> None:
    with quiet(path, flush_s=0.02) as journal:
        add_spans(journal, 1)
        until = time.monotonic() + 10
        while not starts_of(inferometer.open(path)) and time.monotonic() < until:
            time.sleep(0.01)
        assert starts_of(inferometer.open(path)) == [1]


def test_nothing_new_writes_nothing(path: Path) -> None:
    with quiet(path) as journal:
        add_spans(journal, 1)
        journal.flush()
        before = (path / "facts.json").stat().st_ino
        journal.flush()
        assert (path / "facts.json").stat().st_ino == before


def test_columns_of_any_sort_are_joined(path: Path) -> None:
    with quiet(path) as journal:
        columns = ({"value": 1.5}, {"value": [2.5]}, {"value": np.array([3.5])}, {"value": pl.Series([4.5])})
        for column in (*columns, {"value": np.float64(5.5)}, {"value": None}):
            journal.add("counters", 1, {"metric": "m", "device": "gpu:0", "time_ns": [1], **column})
        journal.add("counters", 5_000, {"metric": "big", "time_ns": range(5_000), "value": np.arange(5_000.0)})
        journal.add("launches", 2, {"kernel": ["a", "b"], "grid": [(1, 2, 3), None], "start_ns": [1, 2], "dur_ns": 1})
    trace = inferometer.open(path)
    small = trace.counters.filter(pl.col("metric") == "m").collect()
    assert small["value"].to_list() == [1.5, 2.5, 3.5, 4.5, 5.5, None]
    assert small["device"].to_list() == ["gpu:0"] * 6
    assert trace.counters.filter(pl.col("metric") == "big").select(pl.col("value").sum()).collect().item() == 12_497_500
    assert [list(grid) if grid is not None else None for grid in trace.launches.collect()["grid"]] == [[1, 2, 3], None]


def test_values_that_do_not_fit_are_null_and_counted(path: Path) -> None:
    with quiet(path) as journal:
        for value in (1, "x", 2**70):
            add_spans(journal, value)  # type: ignore[arg-type]
    trace = inferometer.open(path)
    assert sorted(starts_of(trace), key=str) == [1, None, None]
    assert counts_of(trace) == {("wrong_type", "spans.start_ns"): 1, ("number_out_of_range", "spans.start_ns"): 1}


def test_a_batch_that_is_wrong_spoils_no_other(path: Path) -> None:
    told: list[str] = []
    with quiet(path, on_trouble=told.append) as journal:
        journal.add("spans", 1, {"span": "x", "start_ns": [1], "color": ["red"]})
        journal.add("spans", 1, {"span": "x", "start_ns": "no number", "color": ["red"]})
        journal.add("spans", 2, {"span": ["a", "b", "c"], "thread": 1, "start_ns": [5, 6], "dur_ns": 1})
        journal.add("spans", 1, {"span": "x", "start_ns": [2], "color": ["red"]})
        add_spans(journal, 3)
    trace = inferometer.open(path)
    assert starts_of(trace) == [1, None, 2, 3]
    assert counts_of(trace) == {
        ("rows_not_written", None): 2,
        ("unknown_column", "spans.color"): 3,
        ("wrong_type", "spans.start_ns"): 1,
    }
    assert len(told) == 1
    assert "run.ifm: rows of the table spans can't be recorded" in told[0]


def test_a_table_that_does_not_exist_is_a_mistake_of_the_caller(path: Path) -> None:
    with quiet(path) as journal, pytest.raises(UnknownName, match='unknown table "span"'):
        journal.add("span", 1, {"start_ns": [1]})


def test_what_is_told_and_lost_is_in_the_facts(path: Path) -> None:
    gpu = Device("gpu:0", name="H100")
    with quiet(path) as journal:
        journal.change_facts(lambda facts: msgspec.structs.replace(facts, devices=(gpu,), recorded={"counters": True}))
        journal.lose("counter_unavailable", 2, example="fan: not supported")
        journal.flush()
        assert inferometer.open(path).facts.devices == (gpu,)
    trace = inferometer.open(path)
    assert trace.facts.recorded == {"counters": True, "finished": True}
    assert [(loss.name, loss.count, loss.example) for loss in trace.losses] == [
        ("counter_unavailable", 2, "fan: not supported")
    ]


def test_an_exception_closes_the_store_and_is_noted(path: Path) -> None:
    with pytest.raises(ZeroDivisionError), quiet(path) as journal:  # noqa: PT012 - the block is the question
        add_spans(journal, 1)
        raise ZeroDivisionError("by nought")
    trace = inferometer.open(path)
    assert (starts_of(trace), trace.facts.recorded) == ([1], {"finished": True})
    assert trace.facts.notes == ("The recording ended with ZeroDivisionError: by nought",)


def test_what_comes_after_the_end_is_dropped(path: Path) -> None:
    with quiet(path) as journal:
        add_spans(journal, 1)
    before = (path / "facts.json").read_bytes()
    add_spans(journal, 2)
    journal.lose("not_recorded")
    journal.change_facts(lambda facts: msgspec.structs.replace(facts, notes=("late",)))
    journal.flush()
    journal.close()
    assert (path / "facts.json").read_bytes() == before
    assert starts_of(inferometer.open(path)) == [1]


def test_an_interrupted_end_can_be_tried_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = quiet(path)
    add_spans(journal, 2, 1)
    journal.add("selections", 1, {"op": "mm", "variant": "v"})
    with monkeypatch.context() as patch:
        sort = Parts.sort

        def interrupt(parts: Parts, table: str) -> None:
            if table == "selections":
                raise KeyboardInterrupt
            sort(parts, table)

        patch.setattr(Parts, "sort", interrupt)
        with pytest.raises(KeyboardInterrupt):
            journal.close()
    assert counts_of(inferometer.open(path)) == {("recording_ended_early", None): 1}
    journal.close()
    assert (starts_of(inferometer.open(path)), counts_of(inferometer.open(path))) == ([1, 2], {})


# Where


def test_a_store_that_is_there_is_replaced_only_by_force(path: Path) -> None:
    with quiet(path) as journal:
        add_spans(journal, 1)
    with pytest.raises(InputError, match="already exists"):
        Journal(path)
    with quiet(path, force=True) as journal:
        add_spans(journal, 2)
    assert starts_of(inferometer.open(path)) == [2]
    assert [file.name for file in path.parent.iterdir()] == ["run.ifm"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("file", "is not a store; it is not replaced"),
        ("folder", "is not a store; it is not replaced"),
        ("link", "link"),
        ("no/run.ifm", "no such folder"),
    ],
)
def test_a_place_where_no_store_can_be_is_refused(name: str, why: str, tmp_path: Path) -> None:
    threads = threading.active_count()
    (tmp_path / "file").write_text("precious")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    with pytest.raises(InputError, match=why):
        Journal(tmp_path / name, force=True)
    assert (tmp_path / "file").read_text() == "precious"
    assert threading.active_count() == threads


def test_a_second_journal_on_one_path_is_refused_and_one_beside_it_is_not(path: Path) -> None:
    with quiet(path) as first, quiet(path.with_name("other.ifm")) as second:
        with pytest.raises(InputError, match="already exists"):
            Journal(path)
        add_spans(first, 1)
        add_spans(second, 2)
    assert starts_of(inferometer.open(path)) == [1]
    assert starts_of(inferometer.open(path.with_name("other.ifm"))) == [2]


def test_names_may_be_of_any_script(tmp_path: Path) -> None:
    path = tmp_path / "Läufe [1]" / "récit 日本 🚀*?.ifm"
    path.parent.mkdir()
    with quiet(path) as journal:
        journal.add("spans", 1, {"span": "größe 大", "start_ns": [1], "dur_ns": 1})
        journal.flush()
        assert inferometer.open(path).spans.collect()["span"].to_list() == ["größe 大"]
    trace = inferometer.open(path)
    assert (trace.spans.collect()["span"].to_list(), trace.facts.source) == (["größe 大"], path.name)


def test_a_path_of_the_working_folder_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with quiet(Path("run.ifm")) as journal:
        monkeypatch.chdir(tmp_path / "elsewhere")
        add_spans(journal, 1)
    assert starts_of(inferometer.open(tmp_path / "run.ifm")) == [1]


# Threads and readers


def test_eight_threads_lose_and_repeat_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MOST_SMALL", 3)

    def work(journal: Journal, thread: int) -> None:
        for i in range(2_000):
            add_spans(journal, i, thread=thread)
            if i % 100 == 0:
                journal.change_facts(lambda facts: msgspec.structs.replace(facts, notes=(*facts.notes, "n")))
                journal.lose("not_recorded")

    with quiet(path, flush_s=0.005) as journal:
        threads = [threading.Thread(target=work, args=(journal, n)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    trace = inferometer.open(path)
    by_thread = trace.spans.group_by("thread").agg("start_ns").collect()
    assert {row[0]: row[1] == list(range(2_000)) for row in by_thread.rows()} == dict.fromkeys(range(8), True)
    assert (len(trace.facts.notes), counts_of(trace)) == (160, {("not_recorded", None): 160})


def test_reading_while_it_is_written_never_fails(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MOST_SMALL", 2)
    stop = threading.Event()

    def write(journal: Journal) -> None:
        number = 0
        while not stop.is_set():
            add_spans(journal, number)
            number += 1
            time.sleep(0.0005)
        journal.close()

    journal = quiet(path, flush_s=0.001)
    writer = threading.Thread(target=write, args=(journal,))
    writer.start()
    seen, until = 0, time.monotonic() + 30
    try:
        while (trace := inferometer.open(path)).facts.recorded != {"finished": True} and time.monotonic() < until:
            starts = starts_of(trace)
            assert starts == list(range(len(starts)))
            assert len(starts) >= seen
            seen = len(starts)
            if seen > 400:
                stop.set()  # the rest is read while it is closed
    finally:
        stop.set()
        writer.join()
    assert seen > 400
    assert counts_of(inferometer.open(path)) == {}


@pytest.mark.parametrize("small_bytes", [0, 4 << 20], ids=["kept open", "in memory"])
def test_what_was_opened_early_stays_readable(small_bytes: int, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inferometer.trace.store._SMALL_BYTES", small_bytes)
    with quiet(path) as journal:
        add_spans(journal, 2, 1)
        journal.flush()
        add_spans(journal, 3)
        journal.flush()
        early = inferometer.open(path)
    assert files_of(path) == ["spans-00002.parquet"]
    assert starts_of(early) == [2, 1, 3]
    assert starts_of(early) == [2, 1, 3]


def test_an_unfinished_store_says_so_once(path: Path) -> None:
    with quiet(path) as journal:
        add_spans(journal, 1)
        journal.flush()
        early = inferometer.open(path)
        copy = inferometer.open(early.save(path.with_name("copy.ifm")))
    for trace in (early, copy):
        (loss,) = trace.losses
        assert (loss.name, loss.severity, loss.count, loss.dropped) == ("recording_ended_early", "warning", 1, False)
        assert loss.example is not None
        assert "still being written" in loss.example
        assert starts_of(trace) == [1]


# Parts


def test_small_parts_are_merged_as_they_pile_up_and_stay_in_order(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MOST_SMALL", 4)
    most = 0
    with quiet(path) as journal:
        for i in range(200):
            add_spans(journal, 1_000 - i)
            journal.flush()
            most = max(most, len(files_of(path)))
            if i % 10 == 0:
                assert starts_of(inferometer.open(path)) == [1_000 - k for k in range(i + 1)]
    assert most <= 4 * 4  # of 200 parts: four levels of four
    assert starts_of(inferometer.open(path)) == [1_000 - k for k in reversed(range(200))]


def test_numbers_of_files_begin_anew_after_the_last(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MOST_SMALL", 3)
    monkeypatch.setattr(parts, "MOST_FILES", 13)
    with quiet(path) as journal:
        for i in range(60):
            add_spans(journal, i)
            journal.flush()
        assert starts_of(inferometer.open(path)) == list(range(60))
    assert starts_of(inferometer.open(path)) == list(range(60))
    assert all(int(re.findall(r"\d+", name)[0]) < 13 for name in files_of(path))


@pytest.mark.parametrize("part_bytes", [2_000, 20_000])
def test_the_end_sorts_by_time_in_parts_of_a_good_size(
    part_bytes: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_order, "PART_BYTES", part_bytes)
    draw = random.Random(part_bytes)
    rows = [(i * 10 + draw.randint(0, 300) * (i % 40 == 0), i) for i in range(3_000)] + [(0, 3_000), (29_990, 3_001)]
    draw_at = sorted(draw.sample(range(len(rows)), 40))
    with quiet(path) as journal:
        for start, end in zip([0, *draw_at], [*draw_at, len(rows)], strict=True):
            some = rows[start:end]
            journal.add(
                "ops", len(some), {"op": "a", "start_ns": [r[0] for r in some], "external_id": [r[1] for r in some]}
            )
            journal.flush()
    trace = inferometer.open(path)
    assert trace.ops.select("start_ns", "external_id").collect().rows() == sorted(rows)
    sizes = [pl.read_parquet(path / name).estimated_size() for name in files_of(path, "ops")]
    assert len(sizes) > 1
    assert max(sizes) <= 1.5 * part_bytes


def test_rows_without_a_time_stay_behind_the_row_before_them(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_order, "PART_BYTES", 100)
    with quiet(path) as journal:
        for times in ([None, 5, None, 3], [None, None], [1, None]):
            lines = [f"{time}/{i}" for i, time in enumerate(times)]
            journal.add("steps", len(times), {"step": range(len(times)), "start_ns": times, "anchor": lines})
            journal.add("call_paths", len(times), {"path_id": range(len(times)), "name": lines, "depth": 0})
            journal.flush()
    trace = inferometer.open(path)
    added = ["None/0", "5/1", "None/2", "3/3", "None/0", "None/1", "1/0", "None/1"]
    assert trace.call_paths.collect()["name"].to_list() == added
    by_time = ["None/0", "None/1", "1/0", "None/1", "3/3", "None/0", "5/1", "None/2"]
    assert trace.steps.collect()["anchor"].to_list() == by_time


# Trouble


def test_a_full_disk_is_told_once_and_the_recording_goes_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    with Journal(path, flush_s=NEVER, on_trouble=told.append) as journal:
        add_spans(journal, 1)
        journal.flush()
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", full)
            for i in (2, 3):
                add_spans(journal, i, i)
                journal.flush()
                assert starts_of(inferometer.open(path)) == [1]
                assert len(files_of(path)) == 1
        add_spans(journal, 4)
    trace = inferometer.open(path)
    assert (starts_of(trace), counts_of(trace)) == ([1, 4], {("rows_not_written", None): 4})
    (loss,) = trace.losses
    assert (loss.severity, loss.dropped) == ("warning", True)
    assert len(told) == 1
    assert "No space left" in told[0]
    assert len(list(path.iterdir())) == 2


def full(_stream: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_is_full_at_the_end_leaves_the_parts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    journal = Journal(path, flush_s=NEVER, on_trouble=told.append)
    for i in (3, 2, 1):
        add_spans(journal, i)
        journal.flush()
    with monkeypatch.context() as patch:
        patch.setattr(Parts, "_write", lambda *_: full(0))
        journal.close()
    trace = inferometer.open(path)
    assert (starts_of(trace), trace.facts.recorded, len(told)) == ([3, 2, 1], {"finished": True}, 1)


def remove(path: Path) -> None:
    shutil.rmtree(path)


def replace(path: Path) -> None:
    shutil.rmtree(path)
    with quiet(path) as other:
        add_spans(other, 77)


@pytest.mark.parametrize("change", [remove, replace])
def test_a_folder_that_is_gone_is_not_made_again(change: Callable[[Path], None], path: Path) -> None:
    told: list[str] = []
    with Journal(path, flush_s=NEVER, on_trouble=told.append) as journal:
        add_spans(journal, 1)
        journal.flush()
        moved = path.with_name("still-there")
        path.rename(moved)
        shutil.copytree(moved, path)
        change(path)
        add_spans(journal, 2)
        journal.flush()
    assert len(told) == 1
    assert starts_of(inferometer.open(path)) == [77] if change is replace else not path.exists()


def test_trouble_is_a_warning_by_default(path: Path) -> None:
    with pytest.warns(RuntimeWarning, match="can't be written") as caught, Journal(path, flush_s=NEVER) as journal:  # noqa: PT031
        shutil.rmtree(path)
        add_spans(journal, 1)
        journal.flush()
    assert len(caught) == 1


def test_a_function_that_fails_harms_nothing(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Journal(path, flush_s=NEVER) as journal:
            journal.add("spans", 2, {"span": ["a"], "start_ns": [1, 2]})
            add_spans(journal, 1)
    assert starts_of(inferometer.open(path)) == [1]


# Size


def test_an_hour_of_forty_counters_ten_times_a_second_is_below_20_mb(path: Path) -> None:
    ticks, seed = 36_000, np.random.default_rng(12)
    series = hour_of_series(seed, ticks)
    names = list(series)
    values = np.stack(list(series.values()), axis=1)
    times = np.arange(ticks)[:, None] * 100_000_000 + np.cumsum(seed.integers(2_000, 80_000, (ticks, 40)), axis=1)
    devices = ["gpu:0" if name.startswith("gpu") else None for name in names]
    with quiet(path) as journal:
        for at in range(0, ticks, 600):
            rows: dict[str, Values] = {
                "metric": names * 600,
                "device": devices * 600,
                "host": "node-a",
                "process": 4711,
                "unit": "u",
            }
            block = slice(at, at + 600)
            rows |= {"time_ns": times[block].ravel(), "value": values[block].ravel()}
            journal.add("counters", 24_000, rows)
            journal.flush()
    trace = inferometer.open(path)
    assert trace.count_rows()["counters"] == 1_440_000
    assert trace.counters.select("time_ns").collect()["time_ns"].is_sorted()
    assert sum(file.stat().st_size for file in path.iterdir()) < 20e6


def hour_of_series(draw: np.random.Generator, ticks: int) -> dict[str, np.ndarray]:
    """Forty series as devices and hosts have them; eight of them are nothing but noise."""
    series: dict[str, np.ndarray] = {}
    for n in range(4):
        series[f"gpu_clock_{n}"] = 1980.0 - 15 * draw.poisson(0.7, ticks)
        series[f"gpu_temperature_{n}"] = np.round(60 + np.cumsum(draw.normal(0, 0.05, ticks)))
        series[f"gpu_power_{n}"] = np.round(450 + 40 * draw.normal(size=ticks), 3)
        series[f"gpu_usage_{n}"] = np.round(np.clip(90 + 8 * draw.normal(size=ticks), 0, 100))
        series[f"gpu_memory_{n}"] = np.full(ticks, 40e9 + n)
        series[f"gpu_nvlink_{n}"] = np.cumsum(draw.integers(0, 1 << 26, ticks)).astype(float)
        series[f"cpu_frequency_{n}"] = 2400 + 600 * draw.random(ticks)
        series[f"cpu_usage_{n}"] = 100 * draw.random(ticks)
        series[f"run_queue_{n}"] = draw.poisson(1.5, ticks).astype(float)
        series[f"memory_{n}"] = 1e10 + 4096.0 * np.cumsum(draw.integers(-30, 30, ticks))
    return series


def test_every_table_can_be_recorded(path: Path) -> None:
    with quiet(path) as journal:
        for table in TABLES.values():
            journal.add(table.name, 1, {name: [None] for name in table.schema})
            journal.flush()
    assert set(inferometer.open(path).count_rows().values()) == {1}


def test_rows_are_kept_when_ctrl_c_breaks_off_their_writing_in_the_journals_thread(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, broken = Parts._write, threading.Event()

    def break_off_once(self: Parts, table: str, frame: pl.DataFrame) -> parts.JournalPart:
        if not broken.is_set():
            broken.set()
            raise KeyboardInterrupt  # as Polars does, in any thread
        return write(self, table, frame)

    monkeypatch.setattr(Parts, "_write", break_off_once)
    with quiet(path, flush_s=0.01) as journal:
        add_spans(journal, 1, 2, 3)
        assert broken.wait(10)
    with inferometer.open(path) as trace:
        assert starts_of(trace) == [1, 2, 3]
        assert not counts_of(trace)
