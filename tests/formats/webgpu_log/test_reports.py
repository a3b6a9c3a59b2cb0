"""Reports in the shapes that other versions and other tools' hands give them."""

from collections.abc import Callable

import pytest
from tests.traces import counted, rows
from tests.webgpu_log_files import Dims, Log, write_log

from inferometer import Trace

Read = Callable[..., Trace]
RULE = "─" * 50
SMALL = Dims(layers=2)


HEADER = "Kernel    Time (ms)   %"


def report(*lines: str, title: str = "Batch decode (N=4):", header: str = HEADER, at: str = "10") -> str:
    heads = f"[browser:log] [{at}.1ms][Profile] {title}", f"[browser:log] [{at}.2ms][Profile] GPU Profile Report"
    return "\n".join([*heads, RULE, header, RULE, *lines]) + "\n\n"


def found(trace: Trace) -> list[tuple[str, int | None]]:
    return rows(trace, "totals", "kernel", "total_ns")


def without_remarks(trace: Trace) -> dict[str, int]:
    """Losses, but for that a single report is no finished run."""
    return {name: n for name, n in counted(trace).items() if name != "unfinished_run"}


@pytest.mark.parametrize(
    ("row", "label", "total_ns"),
    [
        ("attention    24.27    21.2", "attention", 24_270_000),
        ("wider_than_its_column:L9.ffn_down       11.46     3.3", "wider_than_its_column:L9.ffn_down", 11_460_000),
        ("matmul:q proj (fused) 3:L1   0.5   1", "matmul:q proj (fused) 3:L1", 500_000),
        ("  indented   0.01   0.0", "indented", 10_000),
        ("k   1,234.56   21.2%", "k", 1_234_560_000),
        ("k   24.27ms   21.2 %", "k", 24_270_000),
        ("k   24.27 us   21.2", "k", 24_270),
        ("k   1.5e2   100", "k", 150_000_000),
        ("k   7   100", "k", 7_000_000),
        ("k\t24.27\t21.2", "k", 24_270_000),
        ("\x1b[33mk\x1b[0m   24.27    21.2", "k", 24_270_000),
    ],
)  # fmt: skip
def test_a_row_is_its_label_and_exact_time(row: str, label: str, total_ns: int, read: Read) -> None:
    trace = read(report(row))
    assert found(trace) == [(label, total_ns)]
    assert without_remarks(trace) == {"truncated_report": 1}


@pytest.mark.parametrize(
    "row",
    [
        *("k   -1.0   21.2", "k   much   21.2", "k   24.27   x", "k     21.2", "k  24.2.7  1.0", "k  9e99  1.0"),
        *("k  99999999999999999999  1.0", "k  1e999999  1.0"),
    ],
    ids=str,
)
def test_a_row_that_cannot_be_read_is_dropped_and_its_text_kept(row: str, read: Read) -> None:
    trace = read(report(row, "good  1.00  100.0", RULE, "TOTAL  2.00  100.0"))
    assert found(trace) == [("good", 1_000_000)]
    assert without_remarks(trace) == {"unreadable_row": 1}
    assert row in rows(trace, "log", "text")


def test_not_a_number_is_null_and_counted(read: Read) -> None:
    trace = read(report("a  NaN  0.0", "b  -inf  0.0", "c  1.00  nan", RULE, "TOTAL  1.00  100.0"))
    assert found(trace) == [("a", None), ("b", None), ("c", 1_000_000)]
    assert without_remarks(trace) == {"not_finite": 2}
    assert rows(trace, "steps", "gpu_busy_ns") == [1_000_000]


@pytest.mark.parametrize(
    ("header", "row", "total_ns", "resolution_ns"),
    [
        ("Kernel   Time (us)   %", "k  24.27  1.0", 24_270, 5.0),
        ("Label   GPU Time (µs)", "k  24.5", 24_500, 50.0),
        ("Kernel Time (ms) %", "k 24.27 1.0", 24_270_000, 5_000.0),
        ("| Kernel | Total (ms) | % |", "| k | 24.27 | 1.0 |", 24_270_000, 5_000.0),
        ("Pass   Duration (s)  Share", "k  0.5  1.0", 500_000_000, 50_000_000.0),
    ],
)
def test_the_header_says_what_columns_are(
    header: str, row: str, total_ns: int, resolution_ns: float, read: Read
) -> None:
    trace = read(report(row, header=header))
    assert rows(trace, "totals", "kernel", "total_ns", "resolution_ns") == [("k", total_ns, resolution_ns)]


def test_more_columns_are_statistics_and_unknown_ones_are_counted_once(read: Read) -> None:
    head = "Kernel   Calls   Total (ms)   Min   Max   Grid   %"
    body = ("k:L0  26  5.20  0.10  0.40  4x1x1  50.0", "k:L1  26  5.20  -  0.40  4x1x1  50.0")
    text = report(*body, RULE, "TOTAL  52  10.40  -  -  -  100.0", header=head)
    trace = read(text + text.replace("[10.", "[20."))
    columns = ("kernel", "count", "total_ns", "min_ns", "max_ns")
    expected = [("k:L0", 26, 5_200_000, 100_000, 400_000), ("k:L1", 26, 5_200_000, None, 400_000)]
    assert rows(trace, "totals", *columns) == 2 * expected
    assert without_remarks(trace) == {"unknown_column": 1}


def test_reports_with_different_columns_stand_side_by_side(read: Read) -> None:
    other = report("b  3  0.50", RULE, "TOTAL  3  0.50", header="Kernel  Calls  Time (ms)", at="20")
    trace = read(report("a  0.50  100.0", RULE, "TOTAL  0.50  100.0") + other)
    assert rows(trace, "totals", "step", "kernel", "count", "total_ns") == [
        (0, "a", None, 500_000),
        (1, "b", 3, 500_000),
    ]


@pytest.mark.parametrize(
    ("title", "phase", "tokens"),
    [
        ("Prefill (prefill):", "prefill", None),
        ("Prefill (chunk 2)", "prefill", None),
        ("Batch decode (N=12):", "decode", 12),
        ("Decode step", "decode", None),
        ("Decode (3 tokens):", "decode", 3),
        ("Mixed prefill and decode (N=2)", "mixed", None),
        ("Warm-up", None, None),
    ],
)
def test_a_title_tells_the_phase_by_its_words(title: str, phase: str | None, tokens: int | None, read: Read) -> None:
    trace = read(report("k  0.50  100.0", RULE, "TOTAL  0.50  100.0", title=title))
    assert rows(trace, "steps", "phase", "decode_tokens", "gpu_busy_ns") == [(phase, tokens, 500_000)]


@pytest.mark.parametrize(
    ("title", "start_ns", "dur_ns", "context"),
    [
        ("Batch decode (N=4, context=9, wall=2.5ms):", 7_600_000, 2_500_000, 9),
        ("Batch decode (N=4, wall=100us, context=0):", 10_000_000, 100_000, 0),
        ("Batch decode (N=4, wall=2s):", None, None, None),  # longer than the log's clock has run
        ("Batch decode (N=4, wall=soon, context=-1):", None, None, None),
    ],
)
def test_a_title_may_tell_where_its_step_stands(
    title: str, start_ns: int | None, dur_ns: int | None, context: int | None, read: Read
) -> None:
    trace = read(report("k  0.50  100.0", RULE, "TOTAL  0.50  100.0", title=title))
    assert rows(trace, "steps", "decode_tokens", "start_ns", "dur_ns", "context_len") == [
        (4, start_ns, dur_ns, context)
    ]


def test_steps_behind_one_that_tells_its_context_go_on_from_there(read: Read) -> None:
    row = "a  0.50  100.0", RULE, "TOTAL  0.50  100.0"
    told = report(*row, title="Prefill (N=8, context=100):", at="1")
    trace = read(told + report(*row, title="Batch decode (N=4):", at="2"))
    assert rows(trace, "steps", "context_len") == [100, 108]


def test_a_total_beyond_rounding_is_counted(read: Read) -> None:
    near = report("a  0.50  50.0", "b  0.50  50.0", RULE, "TOTAL  1.01  100.0")
    far = report("a  0.50  50.0", "b  0.50  50.0", RULE, "TOTAL  1.02  100.0", at="20")
    trace = read(near + far)
    assert without_remarks(trace) == {"total_disagrees": 1}
    assert rows(trace, "steps", "gpu_busy_ns") == [1_010_000, 1_020_000]


def test_without_a_total_the_rows_are_the_sum_only_where_the_table_has_ended(read: Read) -> None:
    for ending, busy in ((RULE + "\n\n", 1_000_000), ("\n", 1_000_000), ("", None)):
        cut = report("a  0.50  50.0", "b  0.50  50.0").rstrip("\n") + "\n" + ending
        trace = read(cut + report("c  0.50  100.0", RULE, "TOTAL  0.50  100.0", at="20"))
        assert rows(trace, "steps", "gpu_busy_ns") == [busy, 500_000]
        assert without_remarks(trace) == {"truncated_report": 1}


def test_a_report_printed_twice_counts_once(read: Read) -> None:
    once = report("a  0.50  50.0", "b  0.50  50.0", RULE, "TOTAL  1.00  100.0")
    trace = read(once + once)
    assert rows(trace, "steps", "step") == [0]
    assert without_remarks(trace) == {"repeated_row": 2}
    trace = read(once + once.replace("0.50", "0.51").replace("1.00", "1.02"))
    assert rows(trace, "steps", "step") == [0, 1]


def test_other_lines_may_stand_in_a_report(read: Read) -> None:
    lines = ("a  0.50  50.0", "[browser:log] [10.3ms][Loader] Layers: 0-1", "words of a stranger", "b  0.50  50.0")
    trace = read(report(*lines, RULE, "TOTAL  1.00  100.0"))
    assert found(trace) == [("a", 500_000), ("b", 500_000)]
    assert without_remarks(trace) == {"unknown_line": 1}


def test_rows_whose_header_was_cut_off_are_text(read: Read) -> None:
    trace = read(
        "a  0.50  50.0\n" + RULE + "\nTOTAL  1.00  100.0\n\n" + report("c  0.50  9.0", RULE, "TOTAL  0.50  9.0")
    )
    assert found(trace) == [("c", 500_000)]
    assert without_remarks(trace) == {"unreadable_row": 2}
    assert rows(trace, "log", "kind")[:3] == ["profile"] * 3


def test_a_header_opens_a_report_of_its_own(read: Read) -> None:
    text = report("a  0.50  50.0", RULE, "TOTAL  0.50  100.0")
    trace = read(text.split("\n", 2)[2] + "[10.2ms][Loader] Initializing...\n")
    assert rows(trace, "steps", "step", "phase") == [(0, None)]
    assert found(trace) == [("a", 500_000)]


PREFIXES = {
    "none": "",
    "docker": "2025-01-15T10:20:30.123456789Z ",
    "compose": "web-1  | ",
    "compose with times": "web-1  | 2025-01-15T10:20:30.123456789Z ",
    "syslog": "Jan 15 10:20:30 host node[123]: ",
    "clock": "10:20:30.123 ",
    "kubernetes": "2025-01-15T10:20:30.123456789+00:00 stdout F ",
}


@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES)
def test_what_other_tools_put_before_each_line_is_not_the_lines(prefix: str, read: Read) -> None:
    text = Log(dims=SMALL, batches=2, not_found=True).text
    plain, kept = read(text), read("".join(f"{prefix}{line}\n" for line in text.splitlines()))
    for table in ("totals", "steps", "selections"):
        assert rows(kept, table) == rows(plain, table)
    assert kept.facts == plain.facts
    columns = ("line", "time_ns", "level", "source", "kind", "fields")
    assert rows(kept, "log", *columns) == rows(plain, "log", *columns)
    assert counted(kept) == counted(plain) == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("[browser:log] ", "").replace("[browser:error] ", ""),
        lambda text: text.replace("[browser:log] [", "main.js:45 [").replace("[browser:error] ", ""),
        lambda text: text.replace("[browser:", "[node:"),
        lambda text: text.replace("─", "-"),
        lambda text: text.replace("─", "═"),
        lambda text: text.replace("[Profile]", "\x1b[36m[Profile]\x1b[0m"),
    ],
    ids=["crlf", "mark", "no relay", "console", "node", "dashes", "double", "colours"],
)
def test_the_same_run_otherwise_written(change: Callable[[str], str], read: Read) -> None:
    text = write_log(dims=SMALL, batches=2)
    plain, other = read(text), read(change(text))
    for table in ("totals", "steps", "selections"):
        assert rows(other, table) == rows(plain, table)
    assert other.facts.engine_metrics == plain.facts.engine_metrics
    assert counted(other) == {}


@pytest.mark.parametrize("syntax", ["colon", "dot"])
@pytest.mark.parametrize("extra", [False, True])
def test_a_written_log_reads_as_what_it_was_made_of(syntax: str, extra: bool, read: Read) -> None:
    log = Log(dims=SMALL, batches=3, tail=2, syntax=syntax, extra_columns=extra, unit="us", words={"q_proj": "wq"})
    trace = read(log.text)
    assert counted(trace) == {}
    assert rows(trace, "steps", "phase", "decode_tokens", "context_len") == [
        ("prefill", None, 0),
        *(("decode", n, context) for n, context in ((4, 16), (4, 20), (4, 24), (2, 28))),
    ]
    label = "matmul:L1.wq" if syntax == "dot" else "matmul:wq:L1"
    assert rows(trace, "totals", "kernel", "layer", "role").count((label, "1", "wq")) == 5
    assert sum(rows(trace, "steps", "dur_ns")[1:]) < trace.facts.engine_metrics["decode_ns"]


def test_a_ruler_between_rows_is_no_end_of_them(read: Read) -> None:
    cut = report("a  0.50  50.0", RULE, "b  0.50  50.0").rstrip("\n") + "\n"
    trace = read(cut + report("c  0.50  100.0", RULE, "TOTAL  0.50  100.0", at="20"))
    assert rows(trace, "steps", "gpu_busy_ns") == [None, 500_000]


def chunk(n: int, tokens: int) -> str:
    row = "a  0.50  100.0", RULE, "TOTAL  0.50  100.0"
    return report(*row, title=f"Prefill chunk {n}/2 ({tokens} tokens):", at=str(n))


def test_chunks_of_a_prefill_tell_their_tokens_and_add_up_to_the_context(read: Read) -> None:
    decode = report("a  0.50  100.0", RULE, "TOTAL  0.50  100.0", at="20")
    for metrics, known in (("", True), ("[metrics] prefillTokens=12\n", True), ("[metrics] prefillTokens=9\n", False)):
        trace = read(chunk(1, 8) + chunk(2, 4) + decode + metrics)
        assert rows(trace, "steps", "prefill_tokens", "context_len") == (
            [(8, 0), (4, 8), (None, 12)] if known else [(None, 0), (None, None), (None, None)]
        )


def test_a_prompt_behind_decode_steps_has_no_known_context(read: Read) -> None:
    row = "a  0.50  100.0", RULE, "TOTAL  0.50  100.0"
    prefill, decode = (report(*row, title=title, at="1") for title in ("Prefill (8 tokens):", "Batch decode (N=4):"))
    again = prefill.replace("[1.", "[3.") + decode.replace("[1.", "[4.")
    trace = read(prefill + decode.replace("[1.", "[2.") + again)
    assert rows(trace, "steps", "context_len") == [0, 8, None, None]


@pytest.mark.parametrize(
    ("label", "layer", "role"),
    [
        ("attention", None, None),
        ("gemm:unembed", None, "unembed"),
        ("mystery:layer_3.wq", "3", "wq"),
        ("mystery:mlp:down:L07", "7", "mlp:down"),
        ("ns::kernel:L1", None, None),
    ],
)
def test_layer_and_role_are_told_alike_for_ops_that_nobody_knows(
    label: str, layer: str | None, role: str | None, read: Read
) -> None:
    assert rows(read(report(f"{label}   0.5   1")), "totals", "kernel", "layer", "role") == [(label, layer, role)]
