"""A file that changes while it is read: every registered format says so, and none falls over."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conformance.samples import NAMES, SAMPLES
from tests.kineto_files import kernel, write_file

import inferometer
from inferometer.errors import InputError
from inferometer.formats.native.library import VARIABLE
from inferometer.formats.source import Source


def write_at(path: Path, place: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        file.write(data)


def try_open(path: Path, name: str) -> "inferometer.Trace | InputError":
    try:
        return inferometer.open(path, format=name)
    except InputError as error:
        return error


CHANGES: dict[str, Callable[[Path], object]] = {
    "appended": lambda path: write_at(path, path.stat().st_size, b"\n" * 1_000),
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "emptied": lambda path: os.truncate(path, 0),
    "replaced": lambda path: (path.with_suffix(".new").write_bytes(b"{}"), path.with_suffix(".new").replace(path)),
    "overwritten": lambda path: write_at(path, 0, b"\0" * 64),
    "removed": lambda path: path.unlink(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("name", SAMPLES)
def test_a_change_behind_the_readers_back_is_an_answer_with_that_loss_or_a_refusal(
    name: str, change: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / NAMES.get(name, name)
    path.write_bytes(SAMPLES[name]())
    os.utime(path, ns=(1, 1))
    opened, looked = Source.open, list[int]()

    def open_and_change(source: Source) -> object:
        stream = opened(source)
        if not looked and source.path == path:
            looked.append(1)
            change(path)
        return stream

    monkeypatch.setattr(Source, "open", open_and_change)
    found = try_open(path, name)
    if isinstance(found, InputError):
        assert looked
        assert path.name in found.message
    else:
        assert found.losses.total("changed_while_read") == bool(looked)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_profile_that_is_removed_is_an_answer_or_a_refusal_without_the_library_too(
    processes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "0")
    monkeypatch.setenv("INFEROMETER_PROCESSES", processes)
    test_a_change_behind_the_readers_back_is_an_answer_with_that_loss_or_a_refusal(
        "kineto", CHANGES["removed"], tmp_path, monkeypatch
    )


def test_of_a_file_that_is_gone_progress_is_reported_with_the_size_that_it_had(tmp_path: Path) -> None:
    path, said = tmp_path / "a.json", list[tuple[int, int | None]]()
    path.write_bytes(write_file([kernel("k", "1")]))
    source = Source(path, progress=lambda done, size: said.append((done, size)))
    source.report(1)
    size = path.stat().st_size
    path.unlink()
    source.report(2)
    assert said == [(1, size), (2, size)]


def test_an_unchanged_file_has_no_such_loss_and_a_pipe_neither(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(write_file([kernel("k", "1")]))
    assert inferometer.open(path).losses.total("changed_while_read") == 0
    reading, writing = os.pipe()
    os.write(writing, path.read_bytes())
    os.close(writing)
    assert inferometer.open(f"/dev/fd/{reading}").losses.total("changed_while_read") == 0
    os.close(reading)


def test_what_changed_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(write_file([kernel("k", "1")]))
    source = Source(path)
    assert source.change() is None
    with path.open("ab") as file:
        file.write(b" " * 1_000)
    before = path.stat().st_size - 1_000
    assert source.change() == f"{before:,} bytes before, {before + 1_000:,} bytes now"
    path.with_suffix(".b").write_bytes(path.read_bytes())
    path.with_suffix(".b").replace(path)
    assert source.change() == "another file took its place"
    path.unlink()
    assert source.change() == "it is gone"


def test_a_writer_at_work_is_noticed(tmp_path: Path) -> None:
    """A profiler that is still writing: for real, in a thread."""
    path = tmp_path / "a.json"
    path.write_bytes(write_file([kernel(f"k{i % 9}", str(i), correlation=i) for i in range(20_000)]))
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            with path.open("ab") as file:
                file.write(b"\n")
            time.sleep(0.001)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        trace = inferometer.open(path)
    finally:
        stop.set()
        thread.join()
    assert trace.losses.total("changed_while_read") == 1
