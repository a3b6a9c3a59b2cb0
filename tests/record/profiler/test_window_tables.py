from pathlib import Path

import polars as pl
import pytest
from tests.record.profiler.profiled import Event, event, kernel, write_gpu_window, write_window

from inferometer.record.interception.open_ops import OpenOps
from inferometer.record.profiler.clock_marks import Mark
from inferometer.record.profiler.window_rows import read_window
from inferometer.record.profiler.window_tables import WINDOW_RANGE, Joined, Joining, join_window

_HOW = Joining(process=10, host="here", origin_ns=0)
_WINDOW = 1 << 40


def _join(path: Path, events: list[Event], how: Joining = _HOW, number: int = 1) -> Joined:
    file, marks = write_window(path / "w.json", events)
    return join_window(read_window(file), number, marks, how)


def _launch(at: int, correlation: int, *, thread: int = 1, op: int = 3) -> list[Event]:
    call = event("cuda_runtime", "cudaLaunchKernel", at, 5, thread=thread, correlation=correlation)
    call["args"]["External id"] = op
    work = kernel("gemm", at + 100, 50, correlation=correlation)
    work["args"]["External id"] = op
    return [call, work]


def _op(name: str, at: int, dur: int, number: int, thread: int = 1) -> Event:
    made = event("cpu_op", name, at, dur, thread=thread)
    made["args"]["External id"] = number
    return made


def test_times_are_on_the_recordings_clock_and_marks_are_gone(tmp_path: Path) -> None:
    joined = _join(tmp_path, [*_launch(50_000, 7), event("user_annotation", "mine", 60_000, 9)])
    assert joined.alignment is not None
    assert joined.alignment.error_ns == 11
    assert joined.tables["launches"].select("start_ns", "dur_ns", "host", "process").rows() == [
        (50_600, 50, "here", 10)
    ]
    assert joined.tables["spans"].select("span", "start_ns").rows() == [("mine", 60_500)]


def test_ids_differ_between_windows(tmp_path: Path) -> None:
    events = [*_launch(50_000, 7), _op("aten::mm", 49_000, 2_000, 3)]
    first, second = _join(tmp_path, events), _join(tmp_path, events, number=2)
    for table, column in (("launches", "correlation_id"), ("calls", "correlation_id"), ("ops", "external_id")):
        ids = [joined.tables[table][column].item() for joined in (first, second)]
        assert ids[1] - ids[0] == _WINDOW
    assert (
        first.tables["launches"]["correlation_id"].item()
        == first.tables["calls"]["correlation_id"].item()
        == _WINDOW + 7
    )
    assert first.tables["launches"]["external_id"].item() == first.tables["ops"]["external_id"].item() == _WINDOW + 3


def test_launches_carry_the_intercepted_op_that_was_open(tmp_path: Path) -> None:
    ops = OpenOps()
    ops.add(1, [40_000, 49_600], [90_000, 52_000], [77, 78])
    how = Joining(10, "here", 0, intercepted=True, open_ops=ops)
    joined = _join(
        tmp_path,
        [
            *_launch(50_000, 7),
            *_launch(60_000, 8, op=4),
            *_launch(95_000, 9, op=5),
            _op("aten::linear", 49_000, 3_000, 2),
            _op("aten::mm", 49_500, 2_000, 3),
            _op("MmBackward0", 59_000, 2_000, 4),
            _op("aten::mm", 94_500, 2_000, 5),
            _op("aten::mm", 49_500, 2_000, 6, thread=2),
        ],
        how,
    )
    assert joined.tables["launches"].sort("start_ns")["external_id"].to_list() == [78, 77, _WINDOW + 5]
    assert joined.tables["calls"].sort("start_ns")["external_id"].to_list() == [78, 77, _WINDOW + 5]
    left = joined.tables["ops"].select("op", "external_id").sort("external_id").rows()
    assert left == [("MmBackward0", _WINDOW + 4), ("aten::mm", _WINDOW + 5), ("aten::mm", _WINDOW + 6)]
    assert joined.duplicates == 2


def test_calls_whose_thread_has_another_number_are_those_of_the_thread(tmp_path: Path) -> None:
    ops = OpenOps()
    ops.add(1, [40_000], [90_000], [77])
    how = Joining(10, "here", 0, intercepted=True, open_ops=ops)
    file, marks = write_window(tmp_path / "w.json", _launch(50_000, 7, thread=923_359_552))
    joined = join_window(read_window(file), 1, marks, how, threads={923_359_552: 1, 5: 6})
    assert joined.tables["calls"]["thread"].to_list() == [1]
    assert joined.tables["launches"]["external_id"].to_list() == [77]


def test_a_launch_without_its_call_is_found_by_the_profilers_op(tmp_path: Path) -> None:
    ops = OpenOps()
    ops.add(1, [49_900], [52_100], [78])
    how = Joining(10, "here", 0, intercepted=True, open_ops=ops)
    joined = _join(tmp_path, [_launch(50_000, 7)[1], _op("aten::mm", 49_500, 2_000, 3)], how)
    assert joined.tables["launches"]["external_id"].to_list() == [78]
    assert "ops" not in joined.tables


def test_without_open_ops_an_intercepted_op_leaves_no_id_behind(tmp_path: Path) -> None:
    how = Joining(10, "here", 0, intercepted=True)
    joined = _join(
        tmp_path, [*_launch(50_000, 7), _op("aten::mm", 49_500, 2_000, 3), _op("vllm::norm", 60_000, 9, 4)], how
    )
    assert joined.tables["launches"]["external_id"].to_list() == [None]
    assert joined.tables["launches"]["correlation_id"].to_list() == [_WINDOW + 7]
    assert "ops" not in joined.tables


def test_calls_within_the_marks_tell_the_clock_where_there_are_no_ranges(tmp_path: Path) -> None:
    def query(at: int) -> Event:
        return event("cuda_runtime", "cudaStreamQuery", at, 40, thread=99, correlation=at)

    other = event("cuda_runtime", "cudaStreamQuery", 70_000, 40, thread=1, correlation=1)
    file, marks = write_window(
        tmp_path / "w.json", [*_launch(50_000, 7), query(1_050), query(900_050), other], marks=False
    )
    joined = join_window(read_window(file), 1, marks, _HOW, marking=99)
    assert joined.alignment is not None
    assert joined.alignment.how == "calls"
    start = joined.tables["launches"]["start_ns"].item()
    assert abs(start - 50_600) <= joined.alignment.error_ns
    assert joined.tables["calls"].select("api", "thread").rows() == [("cudaLaunchKernel", 1), ("cudaStreamQuery", 1)]


def test_the_profiles_own_range_is_the_last_resort(tmp_path: Path) -> None:
    whole = event("Trace", WINDOW_RANGE, 100, 999_000) | {"pid": "Spans", "tid": "PyTorch Profiler"}
    file, marks = write_window(tmp_path / "w.json", [*_launch(50_000, 7), whole], marks=False)
    joined = join_window(read_window(file), 1, [*marks, Mark(WINDOW_RANGE, 0, 400, 1_000, 999_000, 999_900)], _HOW)
    assert joined.alignment is not None
    assert (joined.alignment.how, joined.alignment.error_ns) == ("window", 251)
    assert abs(joined.tables["launches"]["start_ns"].item() - 50_600) <= joined.alignment.error_ns
    assert "spans" not in joined.tables


def test_a_window_without_marks_has_no_rows(tmp_path: Path) -> None:
    file, marks = write_window(tmp_path / "w.json", _launch(50_000, 7), marks=False)
    joined = join_window(read_window(file), 1, marks, _HOW)
    assert (joined.alignment, joined.tables) == (None, {})


def test_ops_that_end_with_the_window_are_counted(tmp_path: Path) -> None:
    file, marks = write_window(
        tmp_path / "w.json", [_op("aten::mm", 900_000, 99_700, 3), _op("aten::mm", 800_000, 9, 4)]
    )
    whole = Mark(WINDOW_RANGE, 0, 400, 1_000, 1_000_100, 1_000_900)
    assert join_window(read_window(file), 1, [*marks, whole], _HOW).cut == 1


@pytest.mark.parametrize("intercepted", [False, True])
def test_every_launch_of_an_engine_is_there_once(tmp_path: Path, intercepted: bool) -> None:
    rows = read_window(write_gpu_window(tmp_path / "w.json"))
    whole = rows.frames["spans"].filter(pl.col("span") == WINDOW_RANGE)
    start, end = whole["start_ns"].item(), whole["start_ns"].item() + whole["dur_ns"].item()
    offset = 1_000 - start
    mark = Mark(WINDOW_RANGE, 0, start + offset, start + offset, end + offset, end + offset)
    calls, ops = rows.frames["calls"], OpenOps()
    for thread, of_thread in calls.group_by("thread"):
        at = (of_thread["start_ns"] + offset).to_numpy()
        ops.add(int(thread[0]), at, at + 1, of_thread["correlation_id"].to_numpy())
    joined = join_window(rows, 1, [mark], Joining(10, "here", 0, intercepted=intercepted, open_ops=ops))
    launches = joined.tables["launches"]
    assert launches.height == rows.frames["launches"].height
    assert (launches["start_ns"] == rows.frames["launches"]["start_ns"] + offset).all()
    if intercepted:
        called = launches.join(joined.tables["calls"], on="correlation_id", how="semi")
        assert called.height > 50
        assert (called["external_id"] == called["correlation_id"] - _WINDOW).all()
    else:
        assert joined.tables["ops"].height == rows.frames["ops"].height


def test_ops_of_a_processor_are_launches_too(tmp_path: Path) -> None:
    how = Joining(10, "here", 0, kind_of=lambda name: "compute")
    joined = _join(tmp_path, [_op("aten::relu", 50_000, 100, 3), _op("aten::clamp_min", 50_010, 80, 4)], how)
    columns = ("kind", "kernel", "device", "host", "start_ns", "dur_ns", "external_id", "stream")
    assert joined.tables["launches"].select(columns).rows() == [
        ("kernel", "aten::relu", "cpu", "here", 50_500, 100, _WINDOW + 3, 1)
    ]
