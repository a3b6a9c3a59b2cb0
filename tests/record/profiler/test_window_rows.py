from pathlib import Path

import pytest
from tests.record.profiler.profiled import BASE_NS, event, write_gpu_window, write_window

from inferometer.errors import InputError
from inferometer.record.profiler.window_reader import WindowReader
from inferometer.record.profiler.window_rows import Lost, WindowRows, load_rows, read_window, save_rows


def _same(left: WindowRows, right: WindowRows) -> bool:
    names = left.frames.keys() == right.frames.keys()
    return (
        names
        and left.about == right.about
        and all(left.frames[name].equals(right.frames[name]) for name in left.frames)
    )


def test_times_are_since_1970(tmp_path: Path) -> None:
    path, _ = write_window(tmp_path / "w.json", [event("cpu_op", "aten::mm", 5_000, 70)], marks=False)
    assert read_window(path).frames["ops"].select("op", "start_ns", "dur_ns").rows() == [
        ("aten::mm", BASE_NS + 5_000, 70)
    ]


def test_rows_come_back_as_they_were_saved(tmp_path: Path) -> None:
    rows = read_window(write_gpu_window(tmp_path / "w.json"))
    assert rows.about.devices[0].device == "gpu:0"
    assert {"launches", "calls", "ops", "spans"} <= rows.frames.keys()
    save_rows(rows, tmp_path)
    assert _same(load_rows(tmp_path), rows)


def test_what_the_reader_mends_is_told(tmp_path: Path) -> None:
    path, _ = write_window(tmp_path / "w.json", [event("cpu_op", "aten::mm", 5_000, 70) | {"dur": "long"}])
    assert [loss.name for loss in read_window(path).about.losses] == ["without_duration"]
    assert Lost("without_duration", 1, "aten::mm") in read_window(path).about.losses


def test_another_process_reads_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "windows"
    folder.mkdir()
    path = write_gpu_window(folder / "w.json")
    broken = folder / "broken.json"
    broken.write_text("no JSON")
    reader = WindowReader(folder)
    try:
        assert _same(reader.read(path), read_window(path))
        with pytest.raises(InputError):
            reader.read(broken)
        assert _same(reader.read(path), read_window(path))
        assert reader.problem is None
        assert [each.name for each in folder.iterdir() if each.is_dir()] == []
    finally:
        reader.close()
    assert not folder.exists(), "the process drops the folder when its input ends"


def test_without_another_process_it_is_read_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_gpu_window(tmp_path / "w.json")
    monkeypatch.setattr("sys.executable", str(tmp_path / "nothing"))
    reader = WindowReader(tmp_path)
    assert reader.problem
    assert _same(reader.read(path), read_window(path))
    reader.close()
    monkeypatch.setattr("sys.executable", "/bin/true")
    reader = WindowReader(tmp_path / "other")
    assert _same(reader.read(path), read_window(path))
    assert reader.problem
    reader.close()
