"""The fast scan for launches: the same rows as the full read, from any file, however its text is cut into blocks."""

import gzip
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
from tests.kineto_files import COMPACT, LAYOUTS, Layout, call, event, kernel, write_file
from tests.traces import counted, rows

import inferometer
from inferometer import Trace
from inferometer.formats.json_text import text as window
from inferometer.formats.kineto import ahead, cut, scan

Read = Callable[..., Trace]
Used = list[str]

MIXED = [
    kernel("first", "1", "2"),
    event("cpu_op", "aten::mm", "1", "50", Input_Dims=[[1, 2], []], note="kernel"),
    event("gpu_memcpy", "Memcpy HtoD", "5", "1", device=0, stream=7, bytes=64),
    call("hipLaunchKernel", kernel='say "kernel"', grid=[1, 1, 1]),
    event("python_function", "a},{b", "1", "2", nested=[{"cat": "no"}, {"ph": "X"}]),
    event("gpu_memset", "Memset", "9", "1", device=0, stream=7),
    kernel("last", "20", "2"),
]


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> Used:
    """`scan` for every scan that succeeded."""
    used: Used = []
    run = scan.LaunchScan.run

    def watched(self: scan.LaunchScan) -> None:
        run(self)
        used.append("scan")

    monkeypatch.setattr(scan.LaunchScan, "run", watched)
    return used


@pytest.fixture(params=[96, 256, 1024, 1 << 20])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Sizes of the blocks in which text is read and cut."""
    monkeypatch.setattr(cut, "BLOCK_BYTES", request.param)
    monkeypatch.setattr(window, "READ_BYTES", max(16, request.param // 4))
    return request.param


def launches(trace: Trace) -> pl.DataFrame:
    return trace.launches.drop("process").sort("start_ns", "kernel").collect()


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_the_scan_gives_the_rows_of_the_full_read(layout: Layout, block: int, read: Read) -> None:
    data = write_file(MIXED * 7, layout)
    assert launches(read(data, {"launches"})).equals(launches(read(data)))


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_regular_file_is_scanned(layout: Layout, used: Used, monkeypatch: pytest.MonkeyPatch, read: Read) -> None:
    monkeypatch.setattr(cut, "BLOCK_BYTES", 1024)
    monkeypatch.setattr(window, "READ_BYTES", 256)
    regular = [each for each in MIXED if "nested" not in each["args"]]
    trace = read(write_file(regular * 7, layout), {"launches"})
    assert used == ["scan"]
    assert trace.losses.dropped() == 0
    assert trace.losses.seen == {"kernel": 14, "gpu_memcpy": 7, "gpu_memset": 7}


@pytest.mark.parametrize(
    "events",
    [
        [],
        [call()],
        [event("Kernel", "old", "1", "2"), event("Memcpy", "old", "3", "1")],
        [kernel(), {"ph": "B", "cat": "kernel", "name": "b", "pid": 0, "tid": 7, "ts": 9}, kernel("c", "12")],
        [kernel(ts="null"), kernel()],
        [kernel(dur="-1"), kernel()],
        [kernel(correlation="text"), kernel()],
    ],
    ids=["empty", "no kernel", "old names", "begin event", "no time", "negative", "wrong type"],
)
def test_what_the_scan_cannot_be_sure_of_is_read_in_full(
    events: list[dict[str, object]], block: int, read: Read
) -> None:
    for layout in LAYOUTS.values():
        data = write_file(events * 3, layout)
        scanned, full = read(data, {"launches"}), read(data)
        assert launches(scanned).equals(launches(full))
        assert scanned.losses.seen["kernel"] == full.losses.seen["kernel"]
        assert scanned.losses.dropped("kernel") == full.losses.dropped("kernel")


@pytest.mark.parametrize(
    ("broken", "mended"),
    [('"name":"x"', '"name":"x\n"'), ('"dur":2', '"dur":NaN'), ("}},{", "}}{"), ("}},{", '}},"stray",{')],
)
def test_a_damaged_file_is_read_in_full(broken: str, mended: str, block: int, read: Read) -> None:
    data = write_file([kernel("x", str(10 * i), "2") for i in range(40)], COMPACT).decode()
    place = data.index(broken, len(data) // 2)
    data = data[:place] + mended + data[place + len(broken) :]
    scanned, full = read(data, {"launches"}), read(data)
    assert launches(scanned).equals(launches(full))
    assert {loss.name for loss in scanned.losses} == {loss.name for loss in full.losses}


def test_a_file_cut_short_keeps_its_launches_either_way(block: int, read: Read) -> None:
    data = write_file([kernel("x", str(10 * i), "2") for i in range(40)], COMPACT)
    for size in range(len(data) - 300, len(data), 7):
        scanned, full = read(data[:size], {"launches"}), read(data[:size])
        assert launches(scanned).equals(launches(full))
        assert counted(scanned) == counted(full) == {"truncated": 1}


def test_the_rank_is_found_behind_the_events(block: int, read: Read) -> None:
    data = write_file([kernel("x", str(10 * i), "2") for i in range(40)], after={"distributedInfo": {"rank": 6}})
    assert rows(read(data, {"launches"}), "launches", "rank") == [6] * 40


def test_one_event_may_be_larger_than_a_block(used: Used, monkeypatch: pytest.MonkeyPatch, read: Read) -> None:
    monkeypatch.setattr(cut, "BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(window, "READ_BYTES", 1 << 8)
    large = event("python_function", "large", "1", "2", text="x" * 20_000)
    trace = read(
        write_file([kernel("a", "1"), kernel("b", "9"), large, kernel("c", "19"), kernel("d", "29")]), {"launches"}
    )
    assert rows(trace, "launches", "kernel") == ["a", "b", "c", "d"]
    assert used == ["scan"]


def test_nothing_but_the_process_is_missing_from_a_scan(read: Read) -> None:
    data = write_file([kernel(), call(pid=3)])
    assert rows(read(data, {"launches"}), "launches", "process") == [None]
    assert rows(read(data, {"launches", "calls"}), "launches", "process") == [3]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_another_process_cuts_large_files_to_the_same_rows(
    pack: Callable[[bytes], bytes], used: Used, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cut, "PROCESS_FROM_BYTES", 1)
    monkeypatch.setattr(cut, "PROCESS_FROM_PACKED_BYTES", 1)
    path = tmp_path / "trace.json"
    path.write_bytes(pack(write_file([kernel("x", str(10 * i), "2", note=json.dumps(i)) for i in range(12_000)])))
    begun = []

    class Watched(cut.CuttingProcess):
        def __init__(self, path: Path) -> None:
            super().__init__(path)
            begun.append(path)

    monkeypatch.setattr(ahead, "CuttingProcess", Watched)
    scanned = inferometer.open(path, {"launches"})
    assert (used, begun) == (["scan"], [path])
    assert launches(scanned).equals(launches(inferometer.open(path)))


def test_another_process_that_fails_costs_no_rows(monkeypatch: pytest.MonkeyPatch, read: Read) -> None:
    monkeypatch.setattr(cut, "PROCESS_FROM_BYTES", 1)
    data = write_file([kernel("x", str(10 * i), "2") for i in range(40)])
    want = launches(read(data))
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert launches(read(data, {"launches"})).equals(want)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert launches(read(data, {"launches"})).equals(want)
