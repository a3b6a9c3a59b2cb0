"""Damage: what can be read is read, the rest is counted, and no bytes crash."""

import gzip
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.traces import counted, rows

import inferometer
from inferometer import Limits, Trace
from inferometer.errors import FormatError, InputError

Read = Callable[..., Trace]
HEAD = "Time (%)\tTotal Time (ns)\tInstances\tAvg (ns)\tName\n"


def accounted(trace: Trace) -> bool:
    """Whether every event has a row or is counted as dropped."""
    rows_read = sum(trace.count_rows().values())
    return trace.losses.seen.total() == rows_read + trace.losses.dropped()


def test_a_header_without_rows_is_a_table_that_says_so(read: Read) -> None:
    for text in (HEAD, HEAD.rstrip("\n"), HEAD + "\nmore text\n"):
        trace = read(text)
        assert rows(trace, "totals") == []
        assert counted(trace) == {"empty_table": 1}
        assert trace.facts.notes == ("Section 0 (line 1) is a header without rows.",)


@pytest.mark.parametrize(
    "row",
    [
        "5",
        "5.0\t1",
        "5.0\t100\t1\t100.0",
        "5.0\tmuch\t1\t1.0\tk",
        "5.0\t-3\t1\t1.0\tk",
        "5.0\t9999999999999999999\t1\t1\tk",
    ],
)
def test_a_row_that_is_cut_or_broken_is_dropped_and_its_text_kept(row: str, read: Read) -> None:
    trace = read(f"{HEAD}95.0\t1900\t1\t1900.0\tgood\n{row}")
    assert rows(trace, "totals", "kernel") == ["good"]
    assert [(loss.name, loss.category, loss.example) for loss in trace.losses] == [
        ("unreadable_row", "totals", "line 3")
    ]
    assert rows(trace, "log", "line", "kind", "text")[-1] == (3, "row", row)
    assert accounted(trace)


def test_a_quoted_name_that_is_cut_is_no_name(read: Read) -> None:
    for head, row in (
        (HEAD, '5.0\t100\t1\t100.0\t"two\\tlin'),
        (HEAD.replace("\t", ","), '5.0,100,1,100.0,"void f<a,'),
    ):
        trace = read(head + row)
        assert (rows(trace, "totals"), counted(trace)["unreadable_row"]) == ([], 1)


def test_a_stray_quote_does_not_swallow_the_rows_below(read: Read) -> None:
    trace = read(HEAD + '50.0\t1\t1\t1.0\t"stray\n50.0\t1\t1\t1.0\tgood\n')
    assert rows(trace, "totals", "kernel") == ['"stray', "good"]


def test_a_statistic_that_is_no_number_is_null_and_counted(read: Read) -> None:
    trace = read(f"{HEAD}100.0\t7\tmany\t7.0\tk\n")
    assert rows(trace, "totals", "count", "total_ns") == [(None, 7)]
    assert [(loss.name, loss.example) for loss in trace.losses] == [("wrong_type", "line 2: Instances")]


def test_bytes_that_are_no_text_are_replaced_and_counted(read: Read) -> None:
    trace = read(HEAD.encode() + b"100.0\t7\t1\t7.0\tk\xff\xfek\n\xc3\n")
    assert rows(trace, "totals", "kernel") == ["k\ufffd\ufffdk"]
    assert counted(trace) == {"invalid_utf8": 2}


def test_a_line_beyond_the_limit_is_left_out_and_counted(read: Read) -> None:
    text = f"{HEAD}50.0\t7\t1\t7.0\t{'x' * 3_000_000}\n50.0\t7\t1\t7.0\tgood\n{'y' * 3_000_000}"
    trace = read(text, limits=Limits(event_bytes=2_000_000))
    assert rows(trace, "totals", "kernel") == ["good"]
    assert trace.losses.total("event_too_large") == 2
    assert accounted(trace)
    assert len(rows(read(text), "totals", "kernel")[0]) == 3_000_000


def test_a_compressed_file_that_is_cut_says_so(read: Read) -> None:
    text = HEAD + "".join(f"0.0\t{i * 7919}\t{i}\t7919.0\tkernel_{i}\n" for i in range(1, 2_000))
    packed = gzip.compress(text.encode())
    assert len(rows(read(packed), "totals")) == 1_999
    cut = read(packed[: len(packed) // 2])
    assert 0 < len(rows(cut, "totals")) < 1_999
    assert "broken_compression" in counted(cut)


PIECE = st.one_of(
    st.binary(max_size=40),
    st.text(max_size=40).map(str.encode),
    st.sampled_from(
        [
            *(
                b"\t",
                b",",
                b"|",
                b"  ",
                b"\n",
                b"\r\n",
                b"\n\n",
                b'"',
                b"'=",
                b"\\|",
                b"`",
                b"<",
                b">",
                b"...",
                b"----",
            ),
            *(b"1.5 us", b"57.0%", b"12", b"1e99", b"9" * 40, b"nan", b"kernel_1", b"ns::kernel_1<int...>"),
            *(HEAD.encode(), b"| Name | Total Time | Instances |\n|---|---|---|\n", b"| a | 1 ms | 2 |\n"),
            *(b'[rank0]:   File "/a.py", line 3, in f\n', b"Traceback (most recent call last):\n", b"ValueError: x\n"),
            *(
                b" ** CUDA API Summary (cuda_api_sum):\n",
                b"Time  Total Time  Num Calls  Avg  Name\n",
                b"PATH: a/b.py\n",
            ),
            *(b"50.0\t7\t1\t7.0\tkernel_1\n", b"\xef\xbb\xbf", b"\xff\xfe", b"\0"),
        ]
    ),
)


@given(st.sampled_from([b"", b"Name  Total Time  Instances\n", HEAD.encode()]), st.lists(PIECE, max_size=25))
@examples(150)
def test_any_bytes_are_a_trace_or_an_input_error(head: bytes, pieces: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder, suppress(InputError):
        path = Path(folder) / "table.txt"
        path.write_bytes(head + b"".join(pieces))
        trace = inferometer.open(path, format="kernel-table")
        assert accounted(trace)
        inferometer.kernel_table(trace)
        inferometer.summarize(trace)


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=30), max_size=12))
@examples(100)
def test_no_line_is_lost(lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.txt"
        path.write_bytes("\n".join([HEAD.rstrip(), "100.0\t7\t1\t7.0\tk", "", *lines]).encode())
        trace = inferometer.open(path, format="kernel-table")
        assert rows(trace, "totals", "kernel") == ["k"]
        kept = dict(rows(trace, "log", "line", "text"))
        assert kept == {1: HEAD.rstrip()} | {
            4 + i: line.removesuffix("\r") for i, line in enumerate(lines) if line.strip()
        }


def test_a_text_of_very_many_lines_is_refused(read: Callable[..., Trace]) -> None:
    """Each is held: small archives of millions of empty-handed lines would take the machine."""
    limits = Limits(lines=1000)
    text = HEAD + "100.0\t7\t1\t7.0\tk\n" + "x\n" * 998
    assert rows(read(text, name="t.txt", limits=limits), "totals", "kernel") == ["k"]
    with pytest.raises(FormatError, match=r"t\.txt: expected at most 1,000 lines, since they are held in memory"):
        read(text + "x\n", name="t.txt", limits=limits)
