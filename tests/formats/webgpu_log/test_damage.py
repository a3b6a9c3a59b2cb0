"""Damage: what can be read is read, the rest is counted, no bytes crash, and none are slow."""

import gzip
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
from tests.webgpu_log_files import Dims, Log, write_log

import inferometer
from inferometer import Limits, Trace
from inferometer.errors import FormatError, InputError
from inferometer.formats.base import known_formats

Read = Callable[..., Trace]
LOG = Log(dims=Dims(layers=2), batches=2, tail=1, not_found=True, tokenizer_vocab=7, query_set_fallback=True)
TEXT = LOG.text
DATA = TEXT.encode()


def open_bytes(data: bytes) -> Trace:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.log"
        path.write_bytes(data)
        return inferometer.open(path, format="webgpu-log")


def check(trace: Trace) -> None:
    """Every event has a row or is counted as dropped, and no number is one that no log says."""
    assert trace.losses.seen.total() == sum(trace.count_rows().values()) + trace.losses.dropped()
    for value in (*rows(trace, "totals", "total_ns"), *rows(trace, "steps", "dur_ns")):
        assert value is None or 0 <= value < 2**63


def test_cut_anywhere_every_number_is_one_of_the_whole() -> None:
    whole = open_bytes(DATA)
    all_rows = rows(whole, "totals", "step", "kernel", "total_ns")
    chosen = rows(whole, "selections")
    metrics = whole.facts.engine_metrics
    for size in range(0, len(DATA), 101):
        with suppress(FormatError):
            trace = open_bytes(DATA[:size])
            check(trace)
            assert counted(trace), "a cut is always said"
            found = rows(trace, "totals", "step", "kernel", "total_ns")
            assert found == all_rows[: len(found)]
            assert rows(trace, "selections") == chosen[: len(rows(trace, "selections"))]
            cut = trace.facts.engine_metrics
            assert {key: cut[key] for key in cut if key not in ("loads", "memory")} == {
                key: metrics[key] for key in cut if key not in ("loads", "memory")
            }


def test_the_last_line_without_its_end_is_read_as_far_as_it_is_sure(read: Read) -> None:
    whole = read(TEXT).facts.engine_metrics
    unended = read(TEXT.rstrip("\n"))
    assert unended.facts.engine_metrics == whole
    assert counted(unended) == {"unended_line": 1}
    for cut in (1, 2, 3):
        shorter = read(TEXT.rstrip("\n")[:-cut])
        assert "decode_tokens_per_s" not in shorter.facts.engine_metrics
        assert shorter.facts.engine_metrics["prefill_tokens_per_s"] == whole["prefill_tokens_per_s"]


def test_a_number_cut_in_the_middle_is_no_number(read: Read) -> None:
    at = TEXT.index("silu ")
    row = TEXT[at : TEXT.index("\n", at)]
    for size in range(len("silu"), len(row)):
        trace = read(TEXT[: at + size])
        assert "silu" not in rows(trace, "totals", "kernel")
        assert counted(trace)["truncated_report"] == 1
        assert rows(trace, "steps", "gpu_busy_ns")[-1] is None
    total = TEXT.index("TOTAL")
    cut = read(TEXT[: total + len("TOTAL                         12.3")])
    assert counted(cut) == {"truncated_report": 1, "unended_line": 1, "unfinished_run": 1}
    rows_of_it = rows(read(TEXT), "totals", "step", "total_ns")
    assert rows(cut, "steps", "gpu_busy_ns") == [sum(ns for step, ns in rows_of_it if step == 0)]


def test_bytes_that_are_no_text_are_replaced_and_counted(read: Read) -> None:
    trace = read(DATA.replace(b"Initializing...", b"Initializing\xff\0..."))
    assert counted(trace) == {"invalid_utf8": 1}
    assert rows(trace, "totals") == rows(read(TEXT), "totals")


def test_a_line_beyond_the_limit_is_left_out_and_counted(read: Read) -> None:
    trace = read(TEXT + "x" * 3_000_000 + "\n", limits=Limits(event_bytes=1_000_000))
    assert counted(trace) == {"event_too_large": 1}
    check(trace)
    long = read(TEXT.replace("attention ", "a" * 2_000_000 + " "))
    assert max(map(len, rows(long, "totals", "kernel"))) == 2_000_000


def test_a_compressed_log_that_is_cut_says_so(read: Read) -> None:
    packed = gzip.compress(write_log(batches=20).encode())
    cut = read(packed[: len(packed) // 2])
    assert 0 < len(rows(cut, "steps")) < 21
    assert "broken_compression" in counted(cut)


@pytest.mark.parametrize("text", ["", "\n\n", "hello\nworld\n", "a  1.0  2.0\n"])
def test_a_text_without_a_line_of_the_engine_is_refused(text: str, read: Read) -> None:
    with pytest.raises(FormatError, match="expected lines of a WebGPU engine's log"):
        read(text, format="webgpu-log")


def test_only_this_format_takes_such_a_log_whatever_its_columns_are() -> None:
    header = "Kernel                      Time (ms)       %"
    for text in (TEXT, TEXT.replace(header, "Kernel        Count      Total Time (ms)     %")):
        for start in (0, len(TEXT) // 2):
            head = text[start:].encode()[:65_536]
            assert [fmt.name for fmt in known_formats().values() if fmt.sniff(head)] == ["webgpu-log"]


HOSTILE = {
    "runs": "".join(f"[browser:log] [{1000 - i % 1000}.0ms][Profile] x\n" for i in range(30_000)),
    "tags": "".join(f"[b{i}:log] [{i}.0ms][GPU] x\n" for i in range(30_000)),
    "reports": "[1.0ms][Profile] GPU Profile Report\nKernel  Time (ms)  %\n" * 15_000,
    "headers": "[1.0ms][Profile] GPU Profile Report\n"
    + "".join(f"Kernel  Time (ms)  t{i}\n[2.0ms][Profile] GPU Profile Report\n" for i in range(15_000)),
    "pairs": "[metrics] " + "k=1 " * 300_000 + "\n" + "".join(f"[metrics] k{i}=1\n" for i in range(30_000)),
    "in": "[1.0ms][Loader] a: " + " in" * 300_000 + "\n[1.0ms][Loader] Memory (x):" + " Heap=" * 300_000 + "\n",
    "blanks": "[1.0ms][KernelSelect] a variant=b reason=" + " " * 300_000 + "x" + " " * 300_000 + "\n",
    "brackets": "[" * 500_000 + "\n" + "[1.0ms]" * 100_000 + "\n",
    "spaces": "[1.0ms][Profile] GPU Profile Report\nKernel  Time (ms)  %\n" + "a" + " " * 1_000_000 + "x\n",
    "prompt": '[metrics] prompt="a\n' * 10_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_log_is_slow(text: str) -> None:
    start = time.process_time()
    check(open_bytes(text.encode()))
    assert time.process_time() - start < 10


PIECE = st.one_of(
    st.binary(max_size=40),
    st.text(max_size=40).map(str.encode),
    st.sampled_from([line.encode() + b"\n" for line in dict.fromkeys(TEXT.splitlines())]),
    st.sampled_from(
        [
            *(b"\n", b"\r\n", b"\0", b"\xff", b" ", b"  ", b"|", b"[", b"]", b"\x1b[31m", b"TOTAL  1.0  100.0\n"),
            *(b"[browser:log] ", b"[b#2:log] ", b"web-1 | ", b"[1.0ms]", b"[9e9ms]", b"[Profile] ", b"[metrics] a=1\n"),
            *(b"NaN", b"1e999", b"9" * 30, b"-1", b"GPU Profile Report\n", b"Kernel  Time (ms)\n", b"k  1.0\n"),
            *(b"[metrics] prompt=\"x\n", b"[ok] \n", b"[ok] =\n", b"[KernelSelect] =\n", b"[GPU] ,,\n", b"| | |\n"),
        ]
    ),
)  # fmt: skip


@given(st.lists(PIECE, max_size=30))
@examples(150)
def test_any_bytes_are_a_trace_or_an_input_error(pieces: list[bytes]) -> None:
    with suppress(InputError):
        check(open_bytes(b"".join(pieces)))


@given(st.data())
@examples(100)
def test_a_log_with_flips_splices_and_cuts_is_read_or_refused(data: st.DataObject) -> None:
    damaged = bytearray(DATA)
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(damaged)))
        match data.draw(st.sampled_from(["flip", "splice", "drop", "cut"])):
            case "flip" if at < len(damaged):
                damaged[at] ^= data.draw(st.integers(1, 255))
            case "splice":
                other = data.draw(st.integers(0, len(DATA)))
                damaged[at:at] = DATA[other : other + data.draw(st.integers(0, 3_000))]
            case "drop":
                del damaged[at : at + data.draw(st.integers(0, 500))]
            case _:
                del damaged[max(at, 1) :]
    with suppress(InputError):
        check(open_bytes(bytes(damaged)))


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=30), max_size=12))
@examples(80)
def test_no_line_is_lost(lines: list[str]) -> None:
    trace = open_bytes("\n".join(["[1.0ms][Loader] Initializing...", *lines, ""]).encode())
    kept = dict(rows(trace, "log", "line", "text"))
    assert len(rows(trace, "totals")) == 0
    for i, line in enumerate(lines):
        text = line.removesuffix("\r")
        assert not text.strip() or kept[2 + i] == text or not text.isprintable()
