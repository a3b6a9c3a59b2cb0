"""Files of ranks that are read at the same time: as those read in turn, told of where they are asked for, and ended."""

import gzip
import threading
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal
from tests.formats.native.library_at_hand import needs_library
from tests.kineto_files import call, event, kernel, write_file

import inferometer
from inferometer import Trace
from inferometer.formats.kineto import sections
from inferometer.formats.kineto.native import sections as native
from inferometer.formats.kineto.native.sections import NativeSections
from inferometer.formats.native.threads import DecoderThreads
from inferometer.formats.ranks import files

pytestmark = needs_library
RANKS = 7
EVENTS = 400


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of some sections, which threads decode; one is cut off, one is packed, one is none."""
    monkeypatch.setattr(sections, "SECTION_BYTES", 8_000)
    monkeypatch.setattr(native, "FROM_BYTES", 0)
    path = tmp_path / "ranks"
    path.mkdir()
    for rank in range(RANKS):
        job = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": RANKS}}
        events = [
            each
            for i in range(EVENTS)
            for each in (
                event("cpu_op", f"aten::op{i % 9}", str(100 * i), "50"),
                call(ts=str(100 * i), correlation=i),
                kernel(f"k{i % (rank + 2)}", ts=str(100 * i), correlation=i),
            )
        ]
        text = write_file(events, before={"schemaVersion": 1, **job})
        (path / f"{rank}.json").write_bytes(text[: len(text) // 2] if rank == 5 else text)
    (path / "3.json.gz").write_bytes(gzip.compress((path / "3.json").read_bytes()))
    (path / "3.json").unlink()
    (path / "broken.json").write_bytes(b'{"schemaVersion": 1, "traceEvents": 3}')
    return path


def read(path: Path) -> tuple[dict[str, Any], Any, Any]:
    with inferometer.open(path) as trace:
        return {name: frame.collect() for name, frame in trace.tables.items()}, trace.facts, trace.losses.as_dict()


def test_files_read_at_once_are_as_those_read_in_turn(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[DecoderThreads | None] = []
    read_sections = NativeSections.read

    def spy(self: NativeSections, *given: Any) -> int | None:
        began.append(self._source.threads)
        return read_sections(self, *given)

    monkeypatch.setattr(NativeSections, "read", spy)
    at_once = read(folder)
    assert len(began) == RANKS
    assert len(set(began)) == 1
    assert None not in began
    monkeypatch.setattr("inferometer.formats.kineto.ahead.decoders", lambda tables: None)
    in_turn = read(folder)
    assert set(began[RANKS:]) == {None}
    assert at_once[1:] == in_turn[1:]
    assert at_once[0].keys() == in_turn[0].keys()
    for name, frame in at_once[0].items():
        assert_frame_equal(frame, in_turn[0][name])


def test_whoever_asks_is_told_in_its_own_thread(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_LOOK_S", 0.002)
    told: list[tuple[int, int | None]] = []
    threads = set()

    def progress(done: int, total: int | None) -> None:
        threads.add(threading.current_thread())
        told.append((done, total))

    inferometer.open(folder, progress=progress)
    size = sum(path.stat().st_size for path in folder.iterdir())
    assert threads == {threading.current_thread()}
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert {total for _, total in told} == {size}
    assert told[-1] == (size, size)


def test_an_interrupt_ends_all_readers(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.setattr(files, "MEMORY_BUDGET_BYTES", 2)  # all of it goes to folders, which must be gone
    before = threading.active_count()
    first = list[Trace]()

    def interrupt(self: Any, reading: Any) -> Trace:
        if first:
            raise KeyboardInterrupt
        first.append(reading.result())
        return first[0]

    monkeypatch.setattr(files._Reader, "_wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        inferometer.open(folder)
    assert threading.active_count() == before
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("asked", [{"launches": {"kernel"}}, {"launches"}])
def test_launches_alone_are_scanned_in_turn(asked: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(files._Reader, "at_once", fail)
    with inferometer.open(folder, asked) as trace:
        assert trace.tables["launches"].select("kernel").collect().height > RANKS * EVENTS / 2


def test_a_single_file_has_its_own_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files._Reader, "at_once", lambda *_: pytest.fail("there is only one"))
    (tmp_path / "0.json").write_bytes(write_file([kernel(), call()]))
    assert inferometer.open(tmp_path).facts.ranks == (0,)


def test_what_no_reader_expects_is_raised_where_it_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(files, "read_source", fail)
    with pytest.raises(ZeroDivisionError):
        inferometer.open(folder)
