"""Sections that the library decodes: tables, losses and facts are those that Python finds."""

import gzip
import io
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import SHARED_DATA
from tests.formats.kineto.test_sections import NASTY, SAMPLES
from tests.formats.kineto.test_typed import ODD
from tests.formats.native.library_at_hand import needs_library
from tests.kineto_files import COMPACT, KINETO, SPACED, Event, Layout, Literal, call, dump, event, kernel, write_file
from tests.traces import stored_facts

import inferometer
from inferometer import Trace
from inferometer.errors import InputError
from inferometer.formats.json_text.window import Window
from inferometer.formats.kineto import dispatch, sections
from inferometer.formats.kineto.header import FileHeader
from inferometer.formats.kineto.native import rows as native_rows
from inferometer.formats.kineto.native import sections as native
from inferometer.formats.kineto.native.columns import TABLE_OF, Decoded
from inferometer.formats.kineto.native.sections import NativeSections
from inferometer.formats.kineto.sections import SectionReader, Sections, read_in_sections
from inferometer.formats.native import library
from inferometer.formats.native.library import VARIABLE, find_library
from inferometer.formats.source import Source
from inferometer.processes import VARIABLE as PROCESSES
from inferometer.trace.builder import TraceBuilder

pytestmark = needs_library

REAL = [*sorted((SHARED_DATA / "traces" / "kineto").glob("*.json*")), *sorted(SAMPLES.rglob("*.json.gz"))]
LAYOUTS = {"kineto": KINETO, "compact": COMPACT, "spaced": SPACED}
USUAL: list[Event] = [
    event("user_annotation", "step", "60", "99", Input_Dims=[[1]], External_id=1),
    kernel("void a<1>(float*)", "100.001", "2.5", grid=[1, 2, 3], block=[32, 1, 1], queued=0, **{"graph id": 5}),
    event("gpu_memset", "Memset", "9.00005", "1", device=0, stream=7, bytes="64", External_id="12"),
    kernel("nccl", "200", "2", **{"Collective name": "allreduce", "In msg nelems": 4, "Group size": 2}),
    call(kernel="b", stream="0x7f00", bytes=None, size="8", grid=[1, 1, 1]),
    event("cuda_driver", "cuLaunchKernel", "91", "1", correlation=4, stream=3),
    event("cpu_op", "aten::mm", "80", "50.5", Input_Dims=[[1, 2], []], Input_type=["float", ""], External_id=4),
    event("cpu_op", "triton", "81", "5", kernel_file="/a\\b\n.py", Concrete_Inputs=['"x"', "\\"], Sequence_number=0),
    event("python_function", "nn.Module: é😀", "70", "80", Python_id=3, Python_parent_id=None),
    event("python_function", "f.py(1): <lambda>", "71", "8", Python_id=4, Python_parent_id=3),
    event("gpu_user_annotation", "step", "60", "99", pid=0, tid=7),
    event("cuda_sync", "Stream Sync", "61", "9", pid=0, tid=7, stream=4294967295, device=-1),
    event("overhead", "flush", "62", "9", pid=-1, tid=0),
    {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 3, "pid": 1, "tid": 1, "ts": 4},
]
FOREIGN: list[Event] = [
    {"ph": "B", "cat": "range", "name": "around all", "pid": 1, "tid": 2, "ts": 4},
    *(each for each in NASTY if each.get("cat") not in TABLE_OF),
    event("Kernel", "older", "5", "1", device=0, stream=7),
    {"ph": "E", "cat": "range", "pid": 1, "tid": 2, "ts": 9},
    event("operator", "older op", "6", "1"),
]

Files = Callable[[bytes], Path]


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each section that the library decoded, whether its rows were taken."""
    added: list[bool] = []
    add = native_rows.SectionRows.add

    def watched(self: native_rows.SectionRows, section: Decoded) -> bool:
        added.append(add(self, section))
        return added[-1]

    monkeypatch.setattr(native_rows.SectionRows, "add", watched)
    return added


@pytest.fixture
def file(tmp_path: Path) -> Files:
    path = tmp_path / "trace.json"

    def write(data: bytes) -> Path:
        path.write_bytes(data)
        return path

    return write


def contents(trace: Trace) -> tuple[Any, ...]:
    return {name: frame.collect() for name, frame in trace.tables.items()}, trace.losses.as_dict(), stored_facts(trace)


def outcome(path: Path, tables: Any = None) -> Any:
    try:
        return contents(inferometer.open(path, tables))
    except InputError as error:
        return str(error)


def assert_as_python_reads_it(path: Path, tables: Any = None) -> None:
    found = outcome(path, tables)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "0")
        patch.setenv(PROCESSES, "1")
        expected = outcome(path, tables)
    if isinstance(expected, str):
        assert found == expected
        return
    assert found[1:] == expected[1:]
    for table, frame in expected[0].items():
        assert found[0][table].equals(frame), table
        assert found[0][table].schema == frame.schema, table


def read_array(text: bytes, *, by_library: bool) -> tuple[Any, ...]:
    """Rows, losses and names of an array of events, `text` without its `[`."""
    library = find_library()
    assert library is not None
    out = TraceBuilder()
    header = FileHeader(out.losses)
    sorter = dispatch.Sorter(out, header)
    reader, parts = SectionReader(out.tables, event_bytes=None, bare=False), Sections(0, 1 << 24)
    window = Window(io.BytesIO(text))
    if by_library:
        NativeSections(library, Source("-"), reader, parts, out, sorter)._read_text(window)
    else:
        read_in_sections(window, out.losses, sorter, reader, parts)
    sorter.finish()
    rows = {table: out.frame(table).collect().to_dict(as_series=False) for table in out.tables if out.rows(table)}
    return rows, out.losses.as_dict(), header.processes, header.threads, header.others, window.offset


def assert_alike(events: list[Event]) -> None:
    """Both read these events to the same."""
    assert_texts_alike((",".join(dump(each, COMPACT) for each in events) + "]").encode())


def assert_texts_alike(text: bytes) -> None:
    assert read_array(text, by_library=True) == read_array(text, by_library=False), text


def in_threads(patch: pytest.MonkeyPatch, size: int) -> None:
    """Files of any size are read by three threads, in sections of `size` bytes."""
    patch.setattr(sections, "SECTION_BYTES", size)
    patch.setattr(native, "FROM_BYTES", 0)
    patch.setattr(library, "own_cores", lambda: frozenset(range(3)))


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_real_files_are_read_as_by_python(path: Path, added: list[bool]) -> None:
    assert_as_python_reads_it(path)
    assert all(added)


@pytest.mark.skipif(not (SHARED_DATA / "traces").is_dir(), reason="the shared data isn't here")
def test_no_section_of_pytorchs_files_is_unusual(added: list[bool]) -> None:
    for path in REAL:
        if path.is_relative_to(SHARED_DATA):
            before = len(added)
            inferometer.open(path)
            assert len(added) > before, path.name


@pytest.mark.parametrize(("size", "batch"), [(300, 16_384), (2_001, 3), (1 << 20, 4)])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_sections_in_threads_are_read_as_by_python(
    layout: Layout, size: int, batch: int, added: list[bool], file: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_threads(monkeypatch, size)
    monkeypatch.setattr(dispatch, "FLUSH_EVENTS", batch)
    path = file(write_file(USUAL * 20, layout, after={"distributedInfo": {"rank": 3}}))
    assert_as_python_reads_it(path)
    assert added
    assert all(added)


@pytest.mark.parametrize("batch", [5, 16_384])
@pytest.mark.parametrize("size", [700, 1 << 20])
def test_events_of_other_categories_stand_where_they_stood(
    size: int, batch: int, added: list[bool], file: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_threads(monkeypatch, size)
    monkeypatch.setattr(dispatch, "FLUSH_EVENTS", batch)
    mixed = [each for pair in zip(USUAL, FOREIGN, strict=False) for each in pair]
    assert_as_python_reads_it(file(write_file(mixed * 6)))
    assert True in added


@pytest.mark.parametrize(
    "tables",
    [{"launches", "calls"}, {"collectives"}, {"ops"}, {"spans", "frames"}, {"counters"}, {"launches"}],
    ids=lambda tables: " and ".join(sorted(tables)),
)
def test_a_question_for_some_tables_is_answered_as_by_python(
    tables: set[str], added: list[bool], file: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_threads(monkeypatch, 1_000)
    assert_as_python_reads_it(file(write_file([*USUAL, *FOREIGN] * 4)), tables)
    assert True in added


@pytest.mark.parametrize("odd", ODD, ids=lambda each: f"{each.get('ph')} {each.get('cat')} {each.get('name')}")
def test_an_odd_event_is_read_as_by_python(odd: dict[str, Any]) -> None:
    assert_alike([*USUAL, odd, *USUAL])


NUMBERS = [
    *("0", "0.0", "1", "1.5", "1.0005", "1.0015", "1.0025", "1.00049999", "1.000500001", "12345678901.1234567"),
    *("1700000000000000.123", "4611686018427387.904", "4611686018427387.905", "9007199254740.992", "9007199254740.993"),
    *("9999999999999999999", "99999999999999999999", "1.12345678901234567890", "1e3", "1E-3", "-1", "-0", "-0.0"),
    *("01", "1.", ".5", "+1", "0x1", "1_0", "NaN", "Infinity", "null", "true", '"5"', '"5.5"', '""', "[]", "{}"),
]


@pytest.mark.parametrize("field", ["ts", "dur", "pid", "tid", "name", "cat", "ph", "args"])
def test_a_field_of_any_value_is_read_as_by_python(field: str) -> None:
    for number in NUMBERS:
        assert_alike([kernel("odd") | {field: Literal(number)}, kernel("usual")])


ARGUMENTS = {
    "kernel": ("correlation", "stream", "device", "grid", "est. achieved occupancy %", "graph id", "queued", "bytes"),
    "cuda_runtime": ("correlation", "stream", "kernel", "block", "size", "External id"),
    "cpu_op": ("External id", "Input Dims", "Input type", "Sequence number", "kernel_file", "Record function id"),
    "python_function": ("Python id", "Python parent id"),
    "user_annotation": ("Input Dims", "Input type"),
    "cuda_sync": ("stream", "device"),
}
VALUES = [
    *NUMBERS,
    "50.25",
    "-7",
    '"-7"',
    '"07"',
    '"0x7f"',
    '"stream 7"',
    "[1,2,3]",
    "[1,2]",
    '["1",2,3]',
    "[1,null,2]",
]


@pytest.mark.parametrize(("category", "name"), [(each, name) for each, names in ARGUMENTS.items() for name in names])
def test_an_argument_of_any_value_is_read_as_by_python(category: str, name: str) -> None:
    for value in VALUES:
        assert_alike([event(category, "odd", "5", "1", pid=0, tid=7, **{name: Literal(value)})])


def test_an_array_that_ends_anywhere_is_read_as_by_python() -> None:
    whole = ",".join(dump(each, COMPACT) for each in USUAL[1:4]).encode() + b"]"
    for end in range(0, len(whole), 3):
        assert_texts_alike(whole[:end])


def damaged(seed: int) -> Iterator[bytes]:
    """Arrays with a byte changed, taken out or put in, or a piece put elsewhere."""
    draw = random.Random(seed)
    whole = ",".join(dump(each, COMPACT) for each in [*USUAL, *FOREIGN]).encode() + b"]"
    for _ in range(25):
        at, other, length = draw.randrange(len(whole)), draw.randrange(len(whole)), draw.randrange(1, 40)
        byte = bytes([draw.choice(b'"\\{}[]:,0-.eEtfn\x00\x1f\x7f\x80\xc3\xff a')])
        yield draw.choice(
            [
                whole[:at] + byte + whole[at + 1 :],
                whole[:at] + whole[at + length :],
                whole[:at] + byte + whole[at:],
                whole[:at] + whole[other : other + length] + whole[at:],
            ]
        )


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_array_is_read_as_by_python(seed: int) -> None:
    for text in damaged(seed):
        assert_texts_alike(text)


def test_keys_in_any_order_are_decoded(added: list[bool]) -> None:
    assert_alike([dict(reversed(each.items())) for each in USUAL])
    assert added == [True]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"correlation":5', b'"correlation":5,"correlation":6'),
        (b'"name":"a"', b'"name":"a","name":"c"'),
        (b'"ph":"X"', b'"p\\u0068":"X"'),
        (b'"cat":"kernel"', b'"cat":"k\\u0065rnel"'),
        (b'"name":"a"', b'"name":"\\u00e9\\n\\"\\\\"'),
        (b'"name":"a"', b'"name":"\xc3\xa9\\/\\b\\f\\r\\t"'),
        (b'"name":"a"', b'"name":"\xff"'),
        (b'"name":"a"', b'"name":"\xc0\x80"'),
        (b'"name":"a"', b'"name":"\xed\xa0\x80"'),
        (b'"name":"a"', b'"name":"\xf4\x90\x80\x80"'),
        (b'"name":"a"', b'"name":"a\nb"'),
        (b'"name":"a"', b'"name":"a\\x"'),
        (b'"name":"a"', b'"nam\xc3\xa9":"a"'),
        (b'"correlation":5', b'"other":"\xff","correlation":5'),
        (b'"correlation":5', b'"other":[1,],"correlation":5'),
        (b'"correlation":5', b'"other":tru,"correlation":5'),
        (b'"correlation":5', b'"other":1.e5,"correlation":5'),
        (b'"correlation":5', b'"correlation":5,"deep":' + b"[" * 900 + b"]" * 900),
        (b"},{", b"}{"),
        (b"},{", b"},,{"),
        (b"},{", b"},5,{"),
        (b"}]", b"},]"),
        (b"}]", b"}} ]"),
    ],
    ids=str,
)
def test_text_that_is_written_in_another_way_is_read_as_by_python(old: bytes, new: bytes) -> None:
    plain = ",".join(dump(each, COMPACT) for each in (kernel("a", "1", "2", correlation=5), kernel("b", "7"))).encode()
    assert old in plain + b"]"
    assert_texts_alike((plain + b"]").replace(old, new, 1))


def test_a_secret_in_a_text_is_blanked_and_counted(file: Files, added: list[bool]) -> None:
    secret = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ01234567"
    path = file(write_file([*USUAL, event("user_annotation", f"--token {secret}", "1", "2")]))
    assert_as_python_reads_it(path)
    assert added == [False]
    assert secret not in str(contents(inferometer.open(path)))


@pytest.mark.parametrize("processes", ["1", "2"])
def test_where_most_sections_are_unusual_python_reads_on(
    processes: str, file: Files, added: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_threads(monkeypatch, 400)
    monkeypatch.setenv(PROCESSES, processes)
    path = file(write_file([*USUAL, *([kernel(correlation=[1])] * 40)]))
    assert_as_python_reads_it(path)
    assert len(added) < 20


def test_packed_files_pipes_and_several_objects_are_read_as_by_python(file: Files, added: list[bool]) -> None:
    whole = write_file([*USUAL, *FOREIGN])
    several = b"[" + whole + b"," + write_file(USUAL, COMPACT) + b"]"
    bare = json.dumps(USUAL).encode()
    for data in (gzip.compress(whole), gzip.compress(whole)[:-30], several, bare, bare[:-1], b"[]", b"[{}]"):
        assert_as_python_reads_it(file(data))
    assert added.count(True) == 3  # the packed one, and each object
