"""Damage: what can be read is read, the rest is counted, and no bytes crash."""

import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.traces import counted, rows

import inferometer
from inferometer import Trace
from inferometer.analyses.path_table.review import review_path_table
from inferometer.errors import InputError

Read = Callable[..., Trace]
HEAD = "| kernel | kernel_path | a | b | a-b |\n|---|---|---|---|---|\n"
GOOD = "| k | k | 2 | 1 | 1 |\n"


def accounted(trace: Trace) -> bool:
    """Whether every event has a row or is counted as dropped."""
    return trace.losses.seen.total() == sum(trace.count_rows().values()) + trace.losses.dropped()


@pytest.mark.parametrize(
    "row",
    [
        "| x | k.x |",
        "| x | k.x | 1 | 2",
        "| x | k.x | 1 | 2 | -1 | 5 |",
        "| x | k.x | much | more | |",
        "| x | | 1 | 2 | -1 |",
        "| x | k..x | 1 | 2 | -1 |",
        f"| x | {'k.' * 300}x | 1 | 2 | -1 |",
        f"| x | {'k' * 5_000} | 1 | 2 | -1 |",
    ],
)
def test_a_row_that_cannot_be_read_is_dropped_and_its_text_kept(row: str, read: Read) -> None:
    trace = read(f"{HEAD}{GOOD}{row}\n{GOOD.replace('k', 'm')}")
    assert rows(trace, "path_totals", "order") == [0, 1, 0, 1]
    assert counted(trace)["unreadable_row"] == 1
    assert rows(trace, "log", "line", "kind", "text")[-1] == (4, "row", row)
    assert accounted(trace)


@pytest.mark.parametrize(
    ("cell", "loss"), [("-3", "wrong_type"), ("abc", "wrong_type"), ("inf", "not_finite"), ("1e99", "wrong_type")]
)
def test_a_cell_that_is_no_time_is_null_and_counted(cell: str, loss: str, read: Read) -> None:
    trace = read(f"{HEAD}| k | k | {cell} | 1 | |\n")
    assert rows(trace, "path_totals", "backend", "host_ns") == [("a", None), ("b", 10**9)]
    assert counted(trace) == {loss: 1}


def test_nan_is_a_blank_that_is_counted(read: Read) -> None:
    trace = read(f"{HEAD}| k | k | NaN | 1 | NaN |\n")
    assert rows(trace, "path_totals", "backend", "host_ns") == [("b", 10**9)]
    assert counted(trace) == {"not_finite": 1}


def test_a_table_whose_last_ruler_is_not_there_was_cut(read: Read) -> None:
    ruler = "|---|---|---|---|---|\n"
    whole = HEAD + "".join(GOOD.replace("k", name) + ruler for name in "xyz")
    assert counted(read(whole)) == {}
    assert counted(read(whole.removesuffix(ruler))) == {"truncated": 1}
    assert counted(read(whole[:-8])) == {"truncated": 1}


def test_of_a_line_without_its_end_the_last_cell_is_not_read(read: Read) -> None:
    csv = "kernel,kernel_path,a,b\nk,k,2,1.25"
    assert rows(read(csv + "\n"), "path_totals", "host_ns") == [2 * 10**9, 1_250_000_000]
    cut = read(csv)
    assert rows(cut, "path_totals", "host_ns") == [2 * 10**9]
    assert counted(cut) == {"unended_line": 1}
    assert counted(read(HEAD + GOOD.rstrip("\n"))) == {}


def test_a_header_without_rows_says_so(read: Read) -> None:
    trace = read(HEAD)
    assert counted(trace) == {"empty_table": 1}
    with pytest.raises(InputError, match="found no such times"):
        review_path_table(trace)


def test_a_huge_table_is_read_and_reviewed_in_time(read: Read) -> None:
    """One of 5,000 paths has no time in the second run, and all below it stand one row off."""
    groups = "".join(f"g{i},root.g{i},0.5,0.5\n" for i in range(50))
    micros = [1 + i * 7919 % 4993 for i in range(5_000)]
    moved = [*micros[:2_000], *micros[2_001:], ""]
    cells = zip(micros, moved, strict=True)
    body = "".join(
        f"n{i},root.g{i % 50}.n{i},{one}e-6,{two}{'e-6' if two else ''}\n" for i, (one, two) in enumerate(cells)
    )
    began = time.process_time()
    trace = read(f"kernel,kernel_path,a,b\nroot,root,9,9\n{groups}{body}", name="t.csv")
    review = review_path_table(trace)
    assert len(review.table.paths) == 5_051
    assert review.found[0].numbers["missing"] == "root.g0.n2000"
    assert time.process_time() - began < 5


PIECE = st.one_of(
    st.binary(max_size=30),
    st.text(max_size=30).map(str.encode),
    st.sampled_from(
        [
            *(
                b"|",
                b",",
                b"\n",
                b"\r\n",
                b"\n\n",
                b"\\|",
                b"---",
                b"nan",
                b"-1",
                b"1e-5",
                b".",
                b"a.b",
                b"\xff",
                b"\0",
            ),
            *(HEAD.encode(), GOOD.encode(), b"| s | k.s | 1e-3 | | |\n", b"| s | k.s | 1 | 99 | |\n", b"|---|\n"),
            *(b"| z | k.s.z | 0 | 0 | 0 |\n", b"k,k,1,2\n", b"| y | q.y | 7 ms | 8 us | |\n"),
        ]
    ),
)


@given(st.sampled_from([b"", HEAD.encode(), b"kernel,kernel_path,a,b\n"]), st.lists(PIECE, max_size=25))
@examples(120)
def test_any_bytes_are_a_trace_with_a_review_or_an_input_error(head: bytes, pieces: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder, suppress(InputError):
        path = Path(folder) / "table.txt"
        path.write_bytes(head + b"".join(pieces))
        trace = inferometer.open(path, format="path-table")
        assert accounted(trace)
        review = review_path_table(trace)
        assert len(review.as_json()["corrected"]) == len(review.table.paths)
        inferometer.render_markdown(review)
