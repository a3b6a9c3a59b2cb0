"""The fast scan for launches: the same rows as the full read, from any file, however its text is cut into blocks."""

import gzip
import json
import re
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, closing
from itertools import cycle
from pathlib import Path

import polars as pl
import pytest
from tests.kineto_files import COMPACT, KINDS, LAYOUTS, Layout, call, event, kernel, write_file
from tests.traces import counted, rows

import inferometer
from inferometer import Trace
from inferometer.formats.json_text import window
from inferometer.formats.kineto import ahead, cut, launch_workers, scan
from inferometer.formats.kineto.launch_columns import Batch
from inferometer.formats.native.library import VARIABLE as NATIVE
from inferometer.formats.source import Source
from inferometer.processes import VARIABLE

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


@pytest.fixture
def many_processes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Processes for every file, three for what is plain; the list has how many were begun."""
    begun: list[int] = []
    monkeypatch.setenv(NATIVE, "0")
    monkeypatch.setattr(ahead, "FROM_BYTES", 1)
    monkeypatch.setattr(ahead, "FROM_PACKED_BYTES", 1)
    monkeypatch.setattr(ahead, "BYTES_PER_PROCESS", 1)
    monkeypatch.setattr(ahead, "own_cores", lambda: frozenset(range(3)))

    class Watched(launch_workers.LaunchWorkers):
        def __init__(self, path: Path, columns: Collection[str] | None, count: int) -> None:
            super().__init__(path, columns, count)
            begun.append(count)

    monkeypatch.setattr(launch_workers, "LaunchWorkers", Watched)
    return begun


@pytest.mark.parametrize(("pack", "count"), [(bytes, 3), (gzip.compress, 1)])
def test_other_processes_read_large_files_to_the_same_rows(
    pack: Callable[[bytes], bytes], count: int, used: Used, many_processes: list[int], tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(pack(write_file([kernel("x", str(10 * i), "2", note=json.dumps(i)) for i in range(12_000)])))
    scanned = inferometer.open(path, {"launches"})
    assert (used, many_processes) == (["scan"], [count])
    assert launches(scanned).equals(launches(inferometer.open(path)))


def test_files_that_are_begun_beside_each_other_share_the_processes(many_processes: list[int], tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(write_file([kernel("x", str(10 * i), "2") for i in range(400)]))
    for at_once in (1, 2, 3, 4):
        source = Source(path)
        source.at_once = at_once
        ahead.start(source, {"launches": None})
        source.stop_ahead()
    assert many_processes == [3, 3, 1, 1]


def test_another_process_that_fails_costs_no_rows(
    many_processes: list[int], monkeypatch: pytest.MonkeyPatch, read: Read
) -> None:
    data = write_file([kernel("x", str(10 * i), "2") for i in range(40)])
    want = launches(read(data))
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert launches(read(data, {"launches"})).equals(want)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert launches(read(data, {"launches"})).equals(want)


def test_one_core_reads_alone(
    many_processes: list[int], used: Used, monkeypatch: pytest.MonkeyPatch, read: Read
) -> None:
    monkeypatch.setattr(ahead, "own_cores", lambda: frozenset({0}))
    trace = read(write_file([kernel("x", str(10 * i), "2") for i in range(40)]), {"launches"})
    assert trace.launches.collect().height == 40
    assert (used, many_processes) == (["scan"], [])


@pytest.mark.parametrize(("asked", "count"), [("1", []), ("5", [5])])
def test_as_many_processes_read_as_the_environment_says(
    asked: str, count: list[int], many_processes: list[int], used: Used, monkeypatch: pytest.MonkeyPatch, read: Read
) -> None:
    monkeypatch.setenv(VARIABLE, asked)
    trace = read(write_file([kernel("x", str(10 * i), "2") for i in range(40)]), {"launches"})
    assert trace.launches.collect().height == 40
    assert (used, many_processes) == (["scan"], count)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_launches_of_every_category_that_is_written_today_are_found(
    layout: Layout, used: Used, monkeypatch: pytest.MonkeyPatch, read: Read
) -> None:
    monkeypatch.setattr(cut, "BLOCK_BYTES", 1024)
    monkeypatch.setattr(window, "READ_BYTES", 256)
    some = [
        kernel("cuda", "1"),
        event("cpu_op", "aten::mm", "2", "1"),
        event("mtia_ccp_events", "mtia", "3", "2", device=1, stream=2),
        event("gpu_memcpy", "Memcpy HtoD", "6", "1", device=0, stream=7),
        event("gpu_memset", "Memset", "9", "1", device=0, stream=7),
    ]
    trace = read(write_file(some * 500, layout), {"launches"})
    assert used == ["scan"]
    found = trace.launches.group_by("kind", "kernel", "device").len().sort("kernel").collect().rows()
    assert found == [
        ("memcpy", "Memcpy HtoD", "gpu:0", 500),
        ("memset", "Memset", "gpu:0", 500),
        ("kernel", "cuda", "gpu:0", 500),
        ("kernel", "mtia", "mtia:1", 500),
    ]


@pytest.mark.parametrize("name", ["correlation", "context", "queued", "bytes", "External id", "registers per thread"])
def test_a_number_beyond_64_bits_is_counted_as_in_a_full_read(name: str, block: int, read: Read) -> None:
    data = write_file([kernel("a", "1"), kernel("b", "9", "2", **{name: 2**70}), kernel("c", "19")] * 20)
    scanned, full = read(data, {"launches"}), read(data)
    assert launches(scanned).equals(launches(full))
    assert counted(scanned)["number_out_of_range"] == counted(full)["number_out_of_range"] == 20


def test_a_scan_for_some_columns_has_those_and_the_same_losses(read: Read) -> None:
    events = [kernel("x", str(10 * i), "20", grid=[1, 2, 3], correlation=i) for i in range(40)]
    scanned, full = read(write_file(events), {"launches": ("kernel", "dur_ns")}), read(write_file(events))
    assert scanned.launches.collect_schema().names() == ["kernel", "dur_ns"]
    assert scanned.launches.sort("kernel").collect().equals(full.launches.select("kernel", "dur_ns").collect())
    assert counted(scanned) == {"overlaps_in_stream": counted(full)["overlaps_in_stream"]} == {"overlaps_in_stream": 39}


@pytest.mark.parametrize("size", [700, 4_096, 10_007])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_ranges_meet_without_a_gap_wherever_they_begin(
    layout: Layout, size: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cut, "BLOCK_BYTES", 512)
    monkeypatch.setattr(window, "READ_BYTES", 128)
    monkeypatch.setattr(launch_workers, "RANGE_BYTES", size)
    regular = [each for each in MIXED if "nested" not in each["args"]]
    regular += [event("python_function", "large", "1", "2", text="x" * 5_000)]
    events = [{**each, "name": f"{n}: {each['name']}"} for n, each in enumerate(regular * 20)]
    path = tmp_path / "trace.json"
    path.write_bytes(write_file(events, layout))
    for count in (1, 2, 3, 5):
        parts = parts_of(path, count)
        rest = parts[-1].rest or b""
        assert rest.startswith(b"{")
        assert path.read_bytes()[parts[-1].offset :] == rest
        left = int(re.findall(rb'"name": ?"(\d+): ', rest)[0])
        names = [name for part in parts for batch in part.batches for name in names_of(batch)]
        assert sorted(names) == sorted(each["name"] for each in events[:left] if each["cat"] in KINDS)
        assert len(names) > 50


def parts_of(path: Path, count: int) -> list[launch_workers.Part]:
    """What `count` processes would hand back, in turn."""
    parts: list[launch_workers.Part] = []
    with ExitStack() as opened:
        streams = [opened.enter_context(closing(Source(path).open())) for _ in range(count)]
        workers = [launch_workers.Work(stream, None).ranges(path, n, count) for n, stream in enumerate(streams)]
        for worker in cycle([opened.enter_context(closing(worker)) for worker in workers]):
            parts.append(next(worker))
            if parts[-1].rest is not None:
                break
    return parts


def names_of(batch: Batch) -> list[str]:
    texts, codes = batch.texts["kernel"]
    return [str(texts[code]) for code in codes]
