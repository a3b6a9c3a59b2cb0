"""The library's scan for launches: the same rows and losses as Python's, and Python's where anything is unusual."""

import gzip
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.formats.native.library_at_hand import needs_library
from tests.kineto_files import LAYOUTS, Event, Layout, call, event, kernel, write_file
from tests.traces import counted

import inferometer
from inferometer import Trace
from inferometer.formats.kineto import ahead, scan
from inferometer.formats.kineto.native import launches, packed
from inferometer.formats.native import library
from inferometer.formats.native.library import VARIABLE

pytestmark = needs_library

COLUMNS = ("kernel", "dur_ns", "grid", "occupancy")
Ask = Callable[[bytes], Trace]

REGULAR = [
    kernel("void gemm<1>(float*)", "1.125", "2", grid=[1, 2, 3], block=[32, 1, 1], registers_per_thread=7, queued=0),
    event("cpu_op", "aten::mm", "1", "50", Input_Dims=[[1, 2], []], note="kernel"),
    event("gpu_memcpy", "Memcpy HtoD", "5.0625", "1", device=0, stream=7, bytes=64),
    call("hipLaunchKernel", kernel='say "kernel"', grid=[1, 1, 1]),
    event("python_function", "a},{b", "1", "2", nested={"cat": "kernel"}),
    event("gpu_memset", "Memset «0»", "9", "1", device=1, stream=7, External_id="12"),
    kernel('a\\b"c\n', "20.0005", "2.0015", **{"est. achieved occupancy %": 12.5, "graph id": 0, "graph node id": 3}),
]


@pytest.fixture(params=["plain", "packed"])
def ask(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Ask for launches alone, of a file that counts as large; ranges are small and read by three threads."""
    monkeypatch.setattr(ahead, "FROM_NATIVE_BYTES", 1)
    monkeypatch.setattr(ahead, "FROM_PACKED_NATIVE_BYTES", 1)
    monkeypatch.setattr(library, "own_cores", lambda: frozenset(range(3)))
    monkeypatch.setattr(launches, "REST_BYTES", 6_000)
    monkeypatch.setattr(launches, "RANGE_BYTES", 10_007)
    monkeypatch.setattr(packed, "PIECE_BYTES", 10_007)
    pack = gzip.compress if request.param == "packed" else bytes

    def read(data: bytes) -> Trace:
        path = tmp_path / "trace.json"
        path.write_bytes(pack(data))
        return inferometer.open(path, {"launches"})

    return read


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each scan by the library whether its rows were taken."""
    taken: list[bool] = []
    take = scan.LaunchScan._take_native

    def watched(self: scan.LaunchScan, native: launches.NativeLaunches) -> bool:
        taken.append(take(self, native))
        return taken[-1]

    monkeypatch.setattr(scan.LaunchScan, "_take_native", watched)
    return taken


def by_start(trace: Trace) -> pl.DataFrame:
    return trace.launches.sort("start_ns", "kernel").collect()


def many(events: list[Event], times: int = 40) -> list[Event]:
    return [{**each, "name": f"{n}: {each['name']}"} for n, each in enumerate(events * times)]


def by_python(ask: Ask, data: bytes, monkeypatch: pytest.MonkeyPatch) -> Trace:
    with monkeypatch.context() as patch:
        patch.setenv(VARIABLE, "0")
        return ask(data)


@pytest.mark.parametrize("size", [700, 4_096, 10_007, 1 << 20])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_it_gives_pythons_rows_and_losses_wherever_ranges_meet(
    layout: Layout, size: int, ask: Ask, taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launches, "RANGE_BYTES", size)
    monkeypatch.setattr(packed, "PIECE_BYTES", max(size, 4_096))  # the largest event has 3,100
    data = write_file(many([*REGULAR, event("python_function", "large", "1", "2", text="x" * 3_000)]), layout)
    found, expected = ask(data), by_python(ask, data, monkeypatch)
    assert taken == [True]
    assert by_start(found).height == 160
    assert by_start(found).equals(by_start(expected))
    assert found.losses.as_dict() == expected.losses.as_dict()
    assert found.facts == expected.facts


UNUSUAL = {
    "another phase": kernel() | {"ph": "i"},
    "an older spelling": kernel(note="kernel") | {"cat": "Kernel"},
    "another device": event("mtia_ccp_events", "m", "3", "2", device=1, stream=2),
    "a number of 70 bits": kernel(correlation=2**70),
    "a number of the wrong type": kernel(correlation=[1]),
    "a broken number": kernel(correlation=1.5),
    "a negative duration": kernel(dur="-1"),
    "a duration of a year": kernel(dur="31536000000000"),
    "no name": {key: value for key, value in kernel().items() if key != "name"},
    "no start": {key: value for key, value in kernel().items() if key != "ts"},
    "a process by name": kernel() | {"pid": "host(7)"},
    "an exponent": kernel(ts="1e3"),
    "deep nesting": kernel(deep=[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]),
}


@pytest.mark.parametrize("odd", UNUSUAL.values(), ids=UNUSUAL)
def test_whatever_is_unusual_is_left_to_python(
    odd: Event, ask: Ask, taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_file([*many(REGULAR), odd, *many(REGULAR)])
    found = ask(data)
    assert taken == [False]
    expected = by_python(ask, data, monkeypatch)
    assert by_start(found).equals(by_start(expected))
    assert counted(found) == counted(expected)


def test_a_field_that_stands_there_twice_is_left_to_python(ask: Ask, taken: list[bool]) -> None:
    data = write_file(many([kernel(), kernel("odd")]))
    twice = data.replace(b'"correlation": 1', b'"correlation": 5, "correlation": 1', 1)
    assert by_start(ask(twice))["correlation_id"].to_list() == [1] * 80
    assert taken == [False]


def test_a_small_file_is_not_its_business(ask: Ask, taken: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "FROM_NATIVE_BYTES", 1 << 20)
    monkeypatch.setattr(ahead, "FROM_PACKED_NATIVE_BYTES", 1 << 20)
    assert ask(write_file(many(REGULAR))).launches.collect().height == 160
    assert taken == []


def test_a_file_cut_short_anywhere_is_read_as_python_reads_it(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    data = write_file(many(REGULAR, 10))
    monkeypatch.setattr(launches, "REST_BYTES", 1_200)
    for end in range(len(data) - 3_000, len(data), 290):
        found, expected = ask(data[:end]), by_python(ask, data[:end], monkeypatch)
        assert by_start(found).equals(by_start(expected))
        assert counted(found) == counted(expected)


def test_a_question_for_some_columns_gets_these(ask: Ask, tmp_path: Path, taken: list[bool]) -> None:
    data = write_file(many(REGULAR))
    want = by_start(ask(data)).select(COLUMNS)
    found = inferometer.open(tmp_path / "trace.json", {"launches": COLUMNS}).launches.collect()
    assert found.columns == list(COLUMNS)
    assert found.sort("kernel").equals(want.sort("kernel"))
    assert taken == [True, True]
