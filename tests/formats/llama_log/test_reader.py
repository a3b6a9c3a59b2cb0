"""llama.cpp's logs: a real one read in another way, each form of a timing, graphs on Vulkan, and damage."""

import re
from contextlib import suppress
from pathlib import Path

import pytest
from tests.conformance.samples import llama_log
from tests.traces import counted, rows

import inferometer
from inferometer import Trace
from inferometer.analyses.compare.comparison import compare
from inferometer.errors import FormatError, InputError
from inferometer.formats.base import known_formats

SAMPLE = Path(__file__).parents[3] / "samples" / "engines" / "llama.log"
STEPS = ("phase", "dur_ns", "prefill_tokens", "decode_tokens")
GRAPH = """\
----------------
Vulkan Timings:
ADD: 32 x {0} us = {1} us
MUL_MAT q4_K m=4096 n=1 k=4096: 10 x {2} us = {3} us (607.9 GFLOPS/s)
Total time: {4} us.
"""


def opened(tmp_path: Path, text: str, name: str = "run.log") -> Trace:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return inferometer.open(path)


def graphs(adds: list[float], products: list[float]) -> str:
    each = [(32 * a, 10 * b, a, b) for a, b in zip(adds, products, strict=True)]
    return "".join(GRAPH.format(a, f"{x:g}", b, f"{y:g}", f"{x + y:g}") for x, y, a, b in each)


def test_the_real_log_has_its_prompt_and_its_answer() -> None:
    text = SAMPLE.read_text()
    found = re.findall(r": +(prompt eval|eval) time = +([\d.]+) ms / +(\d+) (?:tokens|runs) ", text)
    assert len(found) == 2
    expected = [
        ("prefill", round(float(ms) * 1e6), int(n), None) if what == "prompt eval"
        else ("decode", round(float(ms) * 1e6), None, int(n))
        for what, ms, n in found
    ]  # fmt: skip
    trace = inferometer.open(SAMPLE)
    assert rows(trace, "steps", *STEPS) == expected
    assert rows(trace, "log", "line") == list(range(1, text.count("\n") + 1))
    assert rows(trace, "log", "time_ns")[0] == 34_347_000
    assert set(rows(trace, "log", "level")) == {"info"}
    assert counted(trace) == {}


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("llama_print_timings:        eval time =  1239.20 ms /    31 runs   (39.97 ms)", ("decode", None, 31)),
        ("llama_perf_context_print: prompt eval time =  4.11 ms /  9 tokens (0.46 ms)", ("prefill", 9, None)),
        ("slot print_timing: id  0 | task 42 |        eval time = 5.00 ms /  2 tokens (x)", ("decode", None, 2)),
        ("prompt eval time =     108.44 ms /    13 tokens (    8.34 ms per token)", ("prefill", 13, None)),
        ("       eval time =       2.50 ms /     1 tokens (    2.50 ms per token)", ("decode", None, 1)),
        ("\x1b[34m0.01.002.003\x1b[0m \x1b[32mI \x1b[0mcmn: eval time = 1.00 ms / 4 runs", ("decode", None, 4)),
        ("llama_perf_context_print:        load time =    17.61 ms", None),
        ("llama_perf_context_print:       total time =    28.68 ms /    52 tokens", None),
        ("common_perf_print: unaccounted time =       1.48 ms /   5.2 %      (total - sampling)", None),
    ],
)  # fmt: skip
def test_each_form_of_a_timing(line: str, step: tuple[str, int | None, int | None] | None, tmp_path: Path) -> None:
    trace = opened(tmp_path, f"llama_model_loader: x\n{line}\r\n")
    found = rows(trace, "steps", "phase", "prefill_tokens", "decode_tokens")
    assert found == ([] if step is None else [step])
    assert rows(trace, "log", "kind")[1] == "time"


def test_times_that_were_not_measured_are_no_steps(tmp_path: Path) -> None:
    line = "llama_perf_context_print: {}eval time =  0.00 ms /  {}  (  0.00 ms per token,  inf tokens per second)\n"
    trace = opened(tmp_path, line.format("prompt ", "1 tokens") + line.format("", "17 runs"))
    assert rows(trace, "steps", "step") == []
    assert counted(trace) == {"without_duration": 2}


def test_graphs_on_vulkan_have_their_ops(tmp_path: Path) -> None:
    trace = opened(tmp_path, graphs([5.25, 5.5], [55, 56]))
    assert rows(trace, "totals", "step", "kernel", "count", "total_ns", "mean_ns") == [
        (0, "ADD", 32, 168_000, 5_250.0),
        (0, "MUL_MAT q4_K m=4096 n=1 k=4096", 10, 550_000, 55_000.0),
        (1, "ADD", 32, 176_000, 5_500.0),
        (1, "MUL_MAT q4_K m=4096 n=1 k=4096", 10, 560_000, 56_000.0),
    ]
    assert rows(trace, "steps", "step", "gpu_busy_ns", "dur_ns") == [(0, 718_000, None), (1, 736_000, None)]


def test_a_log_that_ends_within_a_graphs_timings_is_cut(tmp_path: Path) -> None:
    whole = graphs([5.25], [55])
    cut = whole[: whole.index("Total time")]
    assert opened(tmp_path, whole).losses.total() == 0
    assert opened(tmp_path, cut).losses.total("truncated") == 1
    assert opened(tmp_path, f"{cut}llama_perf_context_print: load time = 1.00 ms\n").losses.total() == 0


def test_two_logs_of_graphs_are_compared_op_by_op(tmp_path: Path) -> None:
    base = opened(tmp_path, graphs([5.25 + i / 100 for i in range(12)], [55 + i / 10 for i in range(12)]), "a.log")
    other = opened(tmp_path, graphs([5.25 + i / 100 for i in range(12)], [66 + i / 10 for i in range(12)]), "b.log")
    found = compare(base, other)
    each = {line.name: (line.kind, line.base_ns, line.candidate_ns) for line in found.changes.contributions}
    product = next(name for name in each if name.startswith("MUL_MAT"))
    assert each[product] == ("slower", 555_500, 665_500)
    assert each["ADD"][0] == "same"
    assert found.changes.base_step_ns == round(
        sum(32 * (5250 + 10 * i) + 10 * (55_000 + 100 * i) for i in range(12)) / 12
    )
    assert any("as long as the sum of its kernels" in note for note in found.changes.notes)


def test_a_log_of_both_has_two_runs(tmp_path: Path) -> None:
    trace = opened(tmp_path, llama_log().decode())
    assert rows(trace, "steps", "process", "step", "phase") == [(None, 0, None), (1, 0, "decode"), (1, 1, "prefill")]
    assert trace.facts.notes[0].startswith("Run 0 has the graphs")


def test_a_log_that_ends_at_any_byte_has_what_came_before(tmp_path: Path) -> None:
    data, path = llama_log(), tmp_path / "run.log"
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with suppress(InputError):
            lost = inferometer.open(path, {"steps", "log"}, format="llama-log").losses
            assert lost.total() > 0 or data[:size].endswith(b"\n")


@pytest.mark.parametrize(
    "text", ["", "\n", "hello\n", "eval time = much ms\n", "a: 9 x 1 us = 2 us\n", "Total time: 1 us.\n"]
)
def test_a_log_without_a_timing_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(text)
    with pytest.raises(FormatError, match=r"expected timings of llama\.cpp, found none"):
        inferometer.open(path, format="llama-log")


def test_numbers_that_no_column_holds_are_counted(tmp_path: Path) -> None:
    huge = f"eval time = 999999999999999e99 ms / {'9' * 15} runs\n"
    ops = f"Vulkan Timings:\nADD: {'9' * 15} x 1e99 us = 1e99 us\nADD: {'9' * 40} x 1 us = 1 us\n"
    trace = opened(tmp_path, "llama_model_loader: x\n" + huge + ops)
    assert counted(trace) == {"without_duration": 1, "unreadable_row": 1}


def test_what_llama_bench_logs_before_its_tests_is_left_to_its_reader() -> None:
    head = b'llama_model_loader: x\n[\n  {\n    "build_commit": "a",\n    "n_gen": 1'
    assert [name for name, fmt in known_formats().items() if fmt.sniff(head)] == ["llama-bench"]
