"""llama-bench's four forms: one run printed each way, every oddity of its printers, and files that are cut."""

import json
import statistics
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.samples import llama_bench
from tests.traces import counted, rows

import inferometer
from inferometer import Trace
from inferometer.errors import FormatError, InputError
from inferometer.formats.base import known_formats

ABOUT: dict[str, Any] = {
    "build_commit": "8cf427ff",
    "build_number": 5163,
    "cpu_info": "AMD Ryzen 7 7800X3D 8-Core Processor",
    "gpu_info": "NVIDIA GeForce RTX 4080",
    "backends": "CUDA",
    "model_filename": "models/somebody/qwen.gguf",
    "model_type": "qwen2 7B Q4_K - Medium",
    "n_threads": 8,
    "flash_attn": False,
    "n_gpu_layers": 99,
}
PROMPT = ABOUT | {
    "n_prompt": 512,
    "n_gen": 0,
    "n_depth": 0,
    "test_time": "2025-04-24T11:58:50Z",
    "avg_ns": 72135640,
    "stddev_ns": 1453752,
    "avg_ts": 7100.002165,
    "stddev_ts": 140.34152,
    "samples_ns": [74601900, 71632900, 71745200, 71952700, 70745500],
}
DECODE = ABOUT | {
    "n_prompt": 0,
    "n_gen": 128,
    "n_depth": 4096,
    "test_time": "2025-04-24T11:58:51Z",
    "avg_ns": 1076767880,
    "stddev_ns": 9449585,
    "avg_ts": 118.881588,
    "stddev_ts": 1.041811,
    "samples_ns": [1075361300, 1065089400, 1071761200, 1081934900, 1089692600],
}
TESTS = ("test", "order", "phase", "prefill_tokens", "decode_tokens", "context_len", "repetitions")


def opened(tmp_path: Path, text: str, name: str = "bench.json") -> Trace:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return inferometer.open(path)


def as_csv(*tests: dict[str, Any]) -> str:
    def cell(value: Any) -> str:
        return f'"{int(value) if isinstance(value, bool) else value}"'

    names = [name for name in tests[0] if name != "samples_ns"]
    return "\n".join([",".join(names), *(",".join(cell(test[name]) for name in names) for test in tests), ""])


MARKDOWN = """\
ggml_cuda_init: found 1 CUDA devices:
| model                          |       size | backend    | ngl | threads |            test |      t/s |
| ------------------------------ | ---------: | ---------- | --: | ------: | --------------: | -------: |
| qwen2 7B Q4_K - Medium         |   4.36 GiB | CUDA       |  99 |       8 |           pp512 | 7100.00 ± 140.34 |
| qwen2 7B Q4_K - Medium         |   4.36 GiB | CUDA       |  99 |       8 |   tg128 @ d4096 | 118.88 ± 1.04 |

build: 8cf427ff (5163)
"""
FORMS = {
    "json": json.dumps([PROMPT, DECODE], indent=2),
    "one line": json.dumps([PROMPT, DECODE]),
    "jsonl": "".join(json.dumps(test) + "\n" for test in (PROMPT, DECODE)),
    "csv": as_csv(PROMPT, DECODE),
    "md": MARKDOWN,
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_tells_the_same_tests(form: str, tmp_path: Path) -> None:
    trace = opened(tmp_path, FORMS[form])
    several = 5 if form in ("json", "one line", "jsonl") else None
    assert rows(trace, "tests", *TESTS) == [
        ("pp512", 0, "prefill", 512, 0, 0, several),
        ("tg128 @ d4096", 1, "decode", 0, 128, 4096, several),
    ]
    rates = rows(trace, "tests", "tokens_per_s", "tokens_per_s_stddev")
    assert [pytest.approx(each, rel=2e-3) for each in [(7100.002165, 140.34152), (118.881588, 1.041811)]] == rates
    assert trace.facts.model == "qwen2 7B Q4_K - Medium"
    assert trace.facts.tool_version == "5163 (8cf427ff)"
    assert trace.facts.settings["n_threads"] == "8"
    assert "somebody" not in str(trace.facts)
    assert counted(trace) == {}


def test_the_statistics_are_those_of_the_repetitions(tmp_path: Path) -> None:
    trace = opened(tmp_path, FORMS["json"])
    samples = PROMPT["samples_ns"]
    rates = [512e9 / each for each in samples]
    found = rows(trace, "tests", "mean_ns", "stddev_ns", "tokens_per_s", "tokens_per_s_stddev")[0]
    assert found == pytest.approx(
        (statistics.mean(samples), statistics.stdev(samples), statistics.mean(rates), statistics.stdev(rates))
    )
    assert found == pytest.approx((72135640, 1453752, 7100.002165, 140.34152), rel=1e-6)  # as llama-bench rounds them
    steps = rows(trace, "steps", "process", "step", "dur_ns", "phase", "context_len", "decode_tokens")
    assert steps[4:6] == [(0, 4, 70745500, "prefill", 0, 0), (1, 0, 1075361300, "decode", 4096, 128)]
    assert [dur for process, _, dur, *_ in steps if process == 1] == DECODE["samples_ns"]
    assert trace.facts.devices[0].name == "NVIDIA GeForce RTX 4080"


def test_what_differs_among_tests_is_part_of_their_names(tmp_path: Path) -> None:
    other = DECODE | {"n_threads": 16, "model_type": "qwen2 0.5B F16"}
    both = DECODE | {"n_prompt": 256, "n_gen": 64, "n_depth": 0}
    trace = opened(tmp_path, json.dumps([DECODE, other, both]))
    assert rows(trace, "tests", "test") == [
        "tg128 @ d4096, qwen2 7B Q4_K - Medium, n_threads 8",
        "tg128 @ d4096, qwen2 0.5B F16, n_threads 16",
        "pp256+tg64, qwen2 7B Q4_K - Medium, n_threads 8",
    ]
    assert rows(trace, "tests", "phase") == ["decode", "decode", "mixed"]
    assert trace.facts.model is None
    assert "n_threads" not in trace.facts.settings


def test_a_file_of_a_cpu_names_the_cpu(tmp_path: Path) -> None:
    trace = opened(tmp_path, json.dumps([PROMPT | {"backends": "CPU", "gpu_info": ""}]))
    assert [(each.device, each.name) for each in trace.facts.devices] == [("cpu", ABOUT["cpu_info"])]


def test_what_is_logged_around_the_tests_is_kept(tmp_path: Path) -> None:
    text = "warning: slow build\r\n[1712] loading\n" + FORMS["json"] + "\nbye {\n"
    assert rows(opened(tmp_path, text), "log", "line", "text") == [
        *((1, "warning: slow build"), (2, "[1712] loading")),
        (text.count("\n"), "bye {"),
    ]


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        ({"samples_ns": [1, -1]}, {"wrong_type": 1}),
        ({"samples_ns": "many"}, {"wrong_type": 1}),
        ({"samples_ns": [10**30]}, {"wrong_type": 1}),
        ({"n_gen": "9" * 400}, {"wrong_type": 1, "unreadable_row": 1}),
        ({"n_gen": 1.5}, {"wrong_type": 1, "unreadable_row": 1}),
        ({"n_gen": 0}, {"unreadable_row": 1}),
        ({"model_type": "模型 \u202e", "test_time": "yesterdayZ"}, {}),
    ],
)
def test_a_value_of_another_type_is_null_and_counted(
    change: dict[str, Any], lost: dict[str, int], tmp_path: Path
) -> None:
    trace = opened(tmp_path, json.dumps([PROMPT, DECODE | change]))
    assert counted(trace) == lost
    assert len(rows(trace, "tests", "test")) == 2 - lost.get("unreadable_row", 0)


def test_an_unfinished_run_has_the_tests_before(tmp_path: Path) -> None:
    whole = FORMS["json"]
    trace = opened(tmp_path, whole[: whole.rindex("samples_ns")])
    assert rows(trace, "tests", "test") == ["pp512"]
    assert counted(trace) == {"truncated": 1}


def test_inf_and_nan_are_mended(tmp_path: Path) -> None:
    text = FORMS["json"].replace("118.881588", "inf").replace("1.041811", "-nan")
    assert counted(opened(tmp_path, text)) == {"not_finite": 2}


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_ends_at_any_byte_is_an_answer_or_refused(form: str, tmp_path: Path) -> None:
    few = [{"build_commit": "a", "n_prompt": n, "n_gen": 0, "avg_ns": 5, "samples_ns": [5, 6]} for n in (7, 8)]
    small = {"json": json.dumps(few, indent=1), "jsonl": "".join(json.dumps(each) + "\n" for each in few)}
    small |= {"csv": as_csv(*few), "md": MARKDOWN[MARKDOWN.index("|") :], "one line": json.dumps(few)}
    data, path = small[form].encode(), tmp_path / "bench"
    for size in range(len(data)):
        path.write_bytes(data[:size])
        whole_rows = form in ("jsonl", "csv", "md") and data[:size].endswith((b"\n", b"}"))
        with suppress(InputError):
            assert inferometer.open(path, {"tests"}, format="llama-bench").losses.total() > 0 or whole_rows


@pytest.mark.parametrize("text", ["", "[]", "{}", "[[[", "{" * 100_000, "\x00", '{"build_commit": "a"', "null"])
def test_a_text_without_a_test_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    path.write_text(text)
    with pytest.raises(FormatError, match="expected tests of llama-bench, found none"):
        inferometer.open(path, format="llama-bench")


def test_sql_is_refused_with_what_to_do(tmp_path: Path) -> None:
    text = "CREATE TABLE IF NOT EXISTS llama_bench (\n  build_commit TEXT,\n  n_gen INTEGER\n);\n"
    with pytest.raises(FormatError, match="found SQL statements\n  Run it again with -o json"):
        opened(tmp_path, text)


def test_json_of_others_is_not_taken_for_it() -> None:
    sniff = known_formats()["llama-bench"].sniff
    assert sniff(llama_bench())
    assert not sniff(b'{"build_commit": "abc", "traceEvents": []}')
    assert not sniff(b"| model | test |\n")
