"""Damage: what can be read is read, the rest is counted, and no bytes crash."""

import gzip
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.latencyprism_files import COUNTER_TITLES, PERF_TITLES, perf_row, sample_row, write_counters, write_perf
from tests.traces import counted, rows

import inferometer
from inferometer import Trace
from inferometer.errors import FormatError, InputError

Read = Callable[..., Trace]
TABLES = ("function_times", "function_metrics", "steps", "counters")
ROWS = [
    perf_row(cycle=cycle, function_name=name) for cycle in (1, 2) for name in ("a", 'void f<int, "x">(int)', "c\nd")
]
PERF, COUNTERS = write_perf(ROWS), write_counters([sample_row("gpu_usage"), sample_row("cpu_frequency")])


def accounted(trace: Trace) -> bool:
    """Whether every row of the files has a row in each table, or is counted as dropped from it."""
    return all(
        trace.losses.seen[table] == trace.tables[table].select(pl.len()).collect().item() + trace.losses.dropped(table)
        for table in TABLES
    )


@pytest.fixture
def perf(read: Read) -> Callable[[bytes], Trace]:
    def open_bytes(data: bytes) -> Trace:
        return read(data, {"function_times", "function_metrics", "steps"}, name="perf_data.csv")

    return open_bytes


def test_names_with_commas_quotes_and_line_breaks_are_whole(perf: Read) -> None:
    assert rows(perf(PERF), "function_times", "function") == ["a", 'void f<int, "x">(int)', "c\nd"] * 2


@pytest.mark.parametrize("change", [lambda b: b"\xef\xbb\xbf" + b, lambda b: b"\n\n" + b, lambda b: b + b"\n\n\n"])
def test_a_byte_order_mark_and_blank_lines_are_no_rows(change: Callable[[bytes], bytes], perf: Read) -> None:
    trace = perf(change(PERF))
    assert trace.losses.seen["function_times"] == len(rows(trace, "function_times")) == 6


def test_windows_line_endings_change_nothing(perf: Read) -> None:
    plain = write_perf([perf_row(), perf_row(cycle=2)])
    for data in (plain.replace(b"\n", b"\r\n"), plain.replace(b"\n", b"\r\n").removesuffix(b"\r\n")):
        assert rows(perf(data), "function_times") == rows(perf(plain), "function_times")


def test_a_last_line_without_an_ending_is_a_row_where_it_is_whole(perf: Read) -> None:
    whole = PERF.rstrip(b"\n")
    assert len(rows(perf(whole), "function_times")) == 6
    cut = perf(whole.rpartition(b",")[0])
    assert len(rows(cut, "function_times")) == 5
    assert [(loss.name, loss.category) for loss in cut.losses if loss.name == "unreadable_row"] == [
        ("unreadable_row", table) for table in sorted(TABLES[:3])
    ]


@pytest.mark.parametrize("line", [b"9,7,,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n", b'9,7,,"open\n', b'9,"a"b"c,\n'])
def test_a_broken_line_is_dropped_and_the_others_are_read(line: bytes, perf: Read) -> None:
    head, _, body = PERF.partition(b"\n")
    trace = perf(head + b"\n" + line + body)
    assert len(rows(trace, "function_times")) == 6
    assert trace.losses.total("unreadable_row", category="function_times") == 1
    assert "line 2" in {loss.example for loss in trace.losses}


def test_a_row_with_cells_too_few_is_read_as_far_as_it_goes(perf: Read) -> None:
    full = write_perf([perf_row(cycle=2)])
    short = full.replace(b",3,oncpu\n", b"\n") + write_perf([perf_row(cycle=3)]).partition(b"\n")[2]
    assert rows(perf(short), "function_times", "cycle", "calls") == [(2, None), (3, 3)]


def test_bytes_that_are_no_text_are_replaced_and_counted(perf: Read) -> None:
    trace = perf(write_perf([perf_row(function_name="kernel")]).replace(b"kernel", b"ker\xff\xfenel"))
    assert rows(trace, "function_times", "function") == ["ker\ufffd\ufffdnel"]
    assert counted(trace) == {"invalid_utf8": 2}


def test_a_compressed_file_that_is_cut_says_so(read: Read) -> None:
    many = [perf_row(cycle=cycle, duration=cycle * 7919 % 1009) for cycle in range(1, 3_000)]
    packed = gzip.compress(write_perf(many))
    assert len(rows(read(packed, name="perf_data.csv.gz"), "steps")) == 2_999
    cut = read(packed[: len(packed) // 2], name="perf_data.csv.gz")
    assert 0 < len(rows(cut, "steps")) < 2_999
    assert counted(cut)["broken_compression"] == 1
    assert accounted(cut)


def test_titles_alone_are_an_error(read: Read) -> None:
    for data in (write_perf([]), write_counters([]), write_perf([]) + b"\n\n"):
        with pytest.raises(FormatError, match="expected rows, found none"):
            read(data, name="data.csv")


def test_a_title_that_repeats_is_read_once(perf: Read) -> None:
    data = write_perf([perf_row()]).replace(b"simple_name\n", b"cycle\n")
    trace = perf(data)
    assert rows(trace, "function_times", "cycle") == [1]
    assert [(loss.name, loss.example) for loss in trace.losses] == [
        ("unknown_column", f"{trace.facts.source}: cycle (16)")
    ]


PIECE = st.one_of(
    st.binary(max_size=30),
    st.text(max_size=30).map(str.encode),
    st.sampled_from(
        [
            *(b",", b"\n", b"\r\n", b'"', b'""', b",,,,", b" ", b"\0", b"\xff", b"nan", b"inf", b"-1", b"1e400"),
            *(b"9" * 40, b"0.5", b"N/A", b"GPU 7", b"Host", b"1763013921174589.5", b"gpu_usage", b"**"),
            *(PERF.partition(b"\n")[2], COUNTERS.partition(b"\n")[2], PERF, COUNTERS, b"\xef\xbb\xbf"),
            *(b"1,7,,25,f,m,Host,c,1,0,2,*,a,3,4,5,s\n", b'2,7,,25,"f,\n",m,Host,c,1,0,2,*,a,3,4,5,s\n'),
            *(b"process_cpu_usage_1e+06,17,3,\n", b"gpu_usage,17,inf,h\n"),
        ]
    ),
)
HEADS = st.sampled_from([",".join(PERF_TITLES).encode() + b"\n", ",".join(COUNTER_TITLES).encode() + b"\n", b""])


@given(HEADS, st.lists(PIECE, max_size=12), st.booleans())
@examples(150)
def test_any_bytes_are_a_trace_or_an_input_error(head: bytes, pieces: list[bytes], with_other: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, suppress(InputError):
        path = Path(folder) / "perf_data.csv"
        path.write_bytes(head + b"".join(pieces))
        if with_other:
            (Path(folder) / "counters_data.csv").write_bytes(COUNTERS)
        trace = inferometer.open(path if len(pieces) % 2 else folder, format="latencyprism")
        assert accounted(trace)
        inferometer.summarize(trace)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), min_size=1), max_size=8))
@examples(100)
def test_any_name_is_kept_as_it_is(names: list[str]) -> None:
    written = [perf_row(cycle=i, function_name=f"f{name}f") for i, name in enumerate(names, 1)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "perf_data.csv"
        path.write_bytes(write_perf([perf_row(cycle=0), *written]))
        trace = inferometer.open(path)
        assert rows(trace, "function_times", "function") == ["oncpu", *(f"f{name}f" for name in names)]


def test_a_file_too_large_to_be_held_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "perf_data.csv"
    path.write_bytes(PERF + b"x" * (3 << 20) + b"\n")
    with pytest.raises(FormatError, match=r"perf_data\.csv: expected at most 2,097,152 bytes, since it is held"):
        inferometer.open(path, limits=inferometer.Limits(held_bytes=2 << 20))
    assert len(rows(inferometer.open(path), "function_times")) == 6


def test_lines_that_are_no_rows_take_no_memory(tmp_path: Path) -> None:
    """A cell takes 16 bytes at least: millions of empty lines, packed into nothing, would take the machine."""
    path = tmp_path / "perf_data.csv.gz"
    for line in (b"\n", b"1\n", b" , \n"):
        path.write_bytes(gzip.compress(PERF + line * 1_500_000, 1))
        with pytest.raises(
            FormatError, match=r"perf_data\.csv\.gz: expected rows of 17 cells, found 1,500,\d\d\d lines"
        ):
            inferometer.open(path)


def test_columns_without_end_are_refused_by_their_number(tmp_path: Path) -> None:
    """The 65,000 of the first 64 KiB took ten seconds of the processor."""
    path = tmp_path / "perf_data.csv"
    titles, _, rest = PERF.partition(b"\n")
    path.write_bytes(titles + b"," * 200_000 + b"\n" + rest)
    began = time.process_time()
    with pytest.raises(FormatError, match=r"perf_data\.csv: expected at most 1,000 columns, found 65,"):
        inferometer.open(path)
    assert time.process_time() - began < 3


def test_careful_reading_in_batches_loses_no_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("inferometer.formats.latencyprism.cells._BATCH_ROWS", 2)
    path = tmp_path / "perf_data.csv"
    path.write_bytes(PERF.rstrip(b"\n"))
    names = rows(inferometer.open(path), "function_times", "cycle", "function")
    assert names == [(cycle, name) for cycle in (1, 2) for name in ("a", 'void f<int, "x">(int)', "c\nd")]
