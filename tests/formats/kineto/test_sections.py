"""A file in sections, whoever reads which: always the rows, losses and names that one process finds."""

import gzip
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.conftest import SHARED_DATA
from tests.kineto_files import COMPACT, KINETO, SPACED, Layout, call, event, kernel, write_file
from tests.traces import stored_facts

import inferometer
from inferometer import Trace
from inferometer.errors import InputError
from inferometer.formats.kineto import sections, workers
from inferometer.formats.kineto.sections import Places, SectionReader, Sections
from inferometer.formats.kineto.workers import Decoded, Task
from inferometer.formats.native.library import VARIABLE as NATIVE
from inferometer.processes import VARIABLE

REAL = SHARED_DATA / "traces"
SAMPLES = Path(__file__).parents[3] / "samples"
NASTY: list[dict[str, Any]] = [
    {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0, "args": {"name": "python"}},
    {"ph": "B", "cat": "user_annotation", "name": "around all", "pid": 1, "tid": 2, "ts": 4},
    kernel("void a<1>(float*)", "100.001", "2.5", grid=[1, 2, 3], block=[32, 1, 1]),
    call(kernel="b", stream=7),
    event("cpu_op", 'a "},{" in a name', "80", "50.5", Input_Dims=[[1, 2], []], External_id=4),
    {"ph": "X", "cat": "Trace", "name": "text", "pid": "Spans", "tid": "Profiler", "ts": 1, "dur": 2},
    {"ph": "X", "cat": "cpu_op", "name": "in", "ts": 1, "dur": 2, "args": {"of": [{"a": 1}, {"ph": "X"}, {"b": 2}]}},
    {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 2, "ts": 5,
     "args": {"Bytes": 512, "Addr": 1, "Device Type": 1, "Device Id": 0, "Total Allocated": 512}},
    {"ph": "X", "cat": "cuda_profiler_range", "name": "k", "pid": 1, "tid": 2, "ts": 1, "dur": 2, "args": {"m": 3.0}},
    event("python_function", "nn.Module: é😀", "70", "80", Python_id=3),
    {"ph": "X", "cat": "what is this", "name": "unknown", "pid": 1, "tid": 1, "ts": 1, "dur": 1},
    {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 3, "pid": 1, "tid": 1, "ts": 4},
    {"ph": "E", "cat": "user_annotation", "pid": 1, "tid": 2, "ts": 9},
    {"ph": "M", "name": "process_labels", "pid": 1, "tid": 0, "ts": 0, "args": {"labels": "CPU"}},
]  # fmt: skip
TWICE = [*NASTY, *NASTY]
LAYOUTS = {"kineto": KINETO, "compact": COMPACT, "spaced": SPACED}


@pytest.fixture(autouse=True)
def _python_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NATIVE, "0")


def contents(trace: Trace) -> tuple[Any, ...]:
    rows = {name: frame.collect().to_dicts() for name, frame in trace.tables.items()}
    return rows, trace.losses.as_dict(), stored_facts(trace)


def outcome(path: Path) -> Any:
    try:
        return contents(inferometer.open(path))
    except InputError as error:
        return str(error)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace.json"


def use(patch: pytest.MonkeyPatch, *, processes: int, size: int) -> None:
    patch.setattr(sections, "SECTION_BYTES", size)
    patch.setenv(VARIABLE, str(processes))


def backwards(task: Task, places: Places, section_reader: SectionReader, numbers: int) -> Iterator[Decoded]:
    """All sections, the last first: none knows where the one before ended."""
    taken = []
    while head := os.read(numbers, 4):
        taken.append(int.from_bytes(head, "little"))
    for number in reversed(taken):
        yield workers._decode_next(task, places, section_reader, Sections(task.begin, task.size), number, None)


def in_other_order(path: Path, size: int) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        use(patch, processes=2, size=size)
        patch.setattr(workers, "_Worker", lambda *_: _NoWorker())
        patch.setattr(workers, "_decode_all", backwards)
        return outcome(path)


class _NoWorker:
    """One that had nothing to do."""

    is_done = True

    def wait(self) -> int:
        return 0

    def close(self) -> None:
        pass


def in_order(path: Path, size: int) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        use(patch, processes=1, size=size)
        return outcome(path)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("size", [1, 7, 64, 131, 300, 1000, 2001])
def test_sections_read_in_another_order_give_the_same(layout: Layout, size: int, path: Path) -> None:
    path.write_bytes(write_file(TWICE, layout, after={"distributedInfo": {"rank": 3}}))
    assert in_other_order(path, size) == in_order(path, size)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_sections_hold_what_the_whole_holds(layout: Layout, path: Path) -> None:
    path.write_bytes(write_file(TWICE, layout, after={"distributedInfo": {"rank": 3}}))
    rows, losses, facts = in_order(path, 1 << 20)
    cut_rows, cut_losses, cut_facts = in_order(path, 150)
    assert (cut_losses, cut_facts) == (losses, facts)
    for table, expected in rows.items():
        assert sorted(cut_rows[table], key=str) == sorted(expected, key=str), table
    assert rows["memory_events"][1]["order"] == 1  # numbered on from the section before
    assert [row["launch"] for row in rows["kernel_counters"]] == [0, 1]


def test_a_file_that_ends_anywhere_or_is_damaged_is_read_as_by_one_process(path: Path) -> None:
    whole = write_file(NASTY, KINETO, after={"distributedInfo": {"rank": 3}})
    for cut in range(30, len(whole), 29):
        path.write_bytes(whole[:cut])
        assert in_other_order(path, 300) == in_order(path, 300), cut
        path.write_bytes(whole[:cut] + b'"\xff{,' + whole[cut + 3 :])
        assert in_other_order(path, 300) == in_order(path, 300), cut


def test_packed_files_bare_arrays_and_several_objects_too(path: Path) -> None:
    whole = write_file(TWICE, KINETO)
    packed = gzip.compress(whole)
    several = b"[" + write_file(NASTY, KINETO) + b"," + write_file(NASTY, COMPACT) + b"]"
    bare = json.dumps(TWICE).encode()
    for data in (packed, packed[:-40], packed + packed, several, bare, bare[:-1], gzip.compress(bare), b"[]", b"[{}]"):
        path.write_bytes(data)
        assert in_other_order(path, 400) == in_order(path, 400), data[:40]


@pytest.mark.parametrize("processes", [2, 3, 5])
def test_processes_give_what_one_gives(processes: int, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(write_file(TWICE * 20, KINETO, after={"distributedInfo": {"rank": 3}}))
    expected = in_order(path, 3000)
    use(monkeypatch, processes=processes, size=3000)
    assert contents(inferometer.open(path)) == expected
    assert not [*path.parent.glob("section-*")]


@pytest.mark.parametrize(
    "file", [*sorted(REAL.rglob("*.json.gz"))[:3], SAMPLES / "decode.json.gz"], ids=lambda file: file.name
)
def test_real_captures_in_other_order_are_the_same(file: Path, path: Path) -> None:
    if not file.exists():
        pytest.skip("needs the development data")
    path.write_bytes(gzip.decompress(file.read_bytes()))
    size = path.stat().st_size // 7 + 1
    rows, losses, facts = in_order(path, size)
    other_rows, other_losses, other_facts = in_other_order(path, size)
    assert (other_losses, other_facts) == (losses, facts)
    assert all(other_rows[table] == rows[table] for table in rows)


def test_a_store_by_two_processes_holds_the_same_rows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(write_file(TWICE * 20, KINETO))
    rows = in_order(path, 3000)[0]
    use(monkeypatch, processes=2, size=3000)
    from inferometer.formats.opening import import_trace

    trace = import_trace(path, path.with_suffix(".ifm"))
    assert {name: frame.collect().to_dicts() for name, frame in trace.tables.items()} == rows
    assert not [*path.with_suffix(".ifm").glob("section-*")]


def test_a_process_that_is_killed_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(write_file(TWICE * 20, KINETO))
    use(monkeypatch, processes=2, size=3000)
    monkeypatch.setattr(workers, "_decode_all", lambda *_: iter(()))  # this one takes no section
    started = workers._Worker._listen

    def killed(worker: Any) -> None:
        worker._process.kill()
        started(worker)

    monkeypatch.setattr(workers._Worker, "_listen", killed)
    with pytest.raises(InputError, match=r"trace\.json: a process that decoded a part of it ended \(signal 9\)"):
        inferometer.open(path)


def test_a_process_that_cannot_start_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(write_file(TWICE, KINETO))
    use(monkeypatch, processes=2, size=3000)
    monkeypatch.setattr("sys.executable", str(path.parent / "nothing"))
    with pytest.raises(InputError, match="no process could be started"):
        inferometer.open(path)


@pytest.mark.parametrize("asked", ["0", "-1", "two", "1e3", "99999", "²"])
def test_a_number_of_processes_that_is_none_is_refused(asked: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(write_file(NASTY))
    monkeypatch.setenv(VARIABLE, asked)
    with pytest.raises(InputError, match="INFEROMETER_PROCESSES: expected a number of processes from 1 to 1024"):
        inferometer.open(path)


def test_small_files_have_one_process(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(write_file(NASTY))
    monkeypatch.setattr(workers, "Crew", None)
    inferometer.open(path)


def test_progress_never_goes_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(gzip.decompress((SAMPLES / "decode.json.gz").read_bytes()))
    use(monkeypatch, processes=2, size=1 << 16)
    seen: list[tuple[int, int | None]] = []
    inferometer.open(path, progress=lambda *at: seen.append(at))
    sections_seen = [at for at in seen if at[0] > 2 << 20]
    assert len(sections_seen) > 3
    assert [done for done, _ in sections_seen] == sorted(done for done, _ in sections_seen)
    assert {total for _, total in seen} == {path.stat().st_size}


def test_a_listener_gets_the_rows_of_all_processes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(write_file(TWICE * 20, KINETO))
    use(monkeypatch, processes=2, size=3000)
    rows: Counter[str] = Counter()

    class Listener:
        def take(self, table: str, count: int, batch: pl.LazyFrame) -> None:
            rows[table] += count
            assert batch.select(pl.len()).collect().item() == count

        def start_over(self) -> None:
            rows.clear()

    trace = inferometer.open(path, listener=Listener())
    assert {table: count for table, count in trace.count_rows().items() if count} == rows
