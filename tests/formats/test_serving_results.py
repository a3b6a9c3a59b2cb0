"""Benchmarks' results: fields of each tool to one record, in ns; what is broken is reported with its place."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tools.make_serving import Options, make_result

from inferometer.errors import FormatError, InputError
from inferometer.formats.serving_results import read_serving, read_serving_runs
from inferometer.formats.serving_results.serving import Latency
from inferometer.formats.source import Limits

VLLM: dict[str, Any] = {  # the fields of `vllm bench serve --save-result`, values made up
    "date": "20260101-120000",
    "endpoint_type": "vllm",
    "backend": "vllm",
    "label": None,
    "model_id": "meta-llama/Llama-3.1-8B",
    "num_prompts": 100,
    "request_rate": "inf",
    "burstiness": 1.0,
    "max_concurrency": 32,
    "duration": 12.5,
    "completed": 100,
    "failed": 0,
    "total_input_tokens": 51_200,
    "total_output_tokens": 12_800,
    "request_throughput": 8.0,
    "request_goodput": None,
    "output_throughput": 1024.0,
    "total_token_throughput": 5120.0,
    "max_output_tokens_per_s": 1500.0,
    "max_concurrent_requests": 32,
    "mean_ttft_ms": 150.25,
    "median_ttft_ms": 120.5,
    "std_ttft_ms": 30.0,
    "p99_ttft_ms": 310.125,
    "mean_tpot_ms": 20.5,
    "median_tpot_ms": 20.25,
    "std_tpot_ms": 1.0,
    "p99_tpot_ms": 23.0,
    "mean_itl_ms": 20.4,
    "median_itl_ms": 19.9,
    "std_itl_ms": 4.0,
    "p99_itl_ms": 60.0,
    "p99.9_itl_ms": 75.5,
}
SGLANG: dict[str, Any] = {  # the fields of `sglang.bench_serving --output-file`
    "backend": "sglang",
    "dataset_name": "random",
    "request_rate": float("inf"),
    "max_concurrency": None,
    "duration": 10.0,
    "completed": 50,
    "total_input_tokens": 5_000,
    "total_output_tokens": 2_500,
    "request_throughput": 5.0,
    "input_throughput": 500.0,
    "output_throughput": 250.0,
    "total_throughput": 750.0,
    "mean_e2e_latency_ms": 900.0,
    "median_e2e_latency_ms": 880.0,
    "mean_ttft_ms": 40.0,
    "median_ttft_ms": 38.0,
    "p99_ttft_ms": 90.0,
    "mean_tpot_ms": 17.5,
    "median_tpot_ms": 17.0,
    "mean_itl_ms": 17.25,
    "median_itl_ms": 17.0,
    "p95_itl_ms": 21.0,
    "max_itl_ms": 55.0,
    "concurrency": 4.5,
    "accept_length": 2.5,
}


def write(folder: Path, *runs: Any, name: str = "run.json", text: str | None = None) -> Path:
    path = folder / name
    path.write_text("\n".join(map(json.dumps, runs)) if text is None else text, "utf-8")
    return path


def test_vllm_serve_is_read_in_ns(tmp_path: Path) -> None:
    path = write(tmp_path, VLLM)
    serving = read_serving(path)
    assert (serving.tool, serving.model, serving.source) == ("vllm bench serve", "meta-llama/Llama-3.1-8B", str(path))
    assert (serving.run, serving.runs, serving.date) == (0, 1, "20260101-120000")
    assert serving.ttft == Latency(150_250_000.0, 120_500_000.0, 30_000_000.0, None, {99.0: 310_125_000.0})
    assert serving.tpot.mean_ns == 20_500_000
    assert serving.itl.percentiles_ns == {99.0: 60_000_000.0, 99.9: 75_500_000.0}
    assert not serving.e2e.is_known
    assert (serving.duration_ns, serving.completed, serving.failed) == (12.5e9, 100, 0)
    assert (serving.input_tokens, serving.output_tokens, serving.prompt_tokens) == (51_200, 12_800, 512.0)
    assert (serving.requests_per_s, serving.output_tokens_per_s, serving.total_tokens_per_s) == (8.0, 1024.0, 5120.0)
    assert (serving.request_rate_per_s, serving.max_concurrency, serving.peak_concurrency) == (None, 32, 32)
    assert (serving.accept_length, serving.itl_of, serving.notes) == (None, "chunk", ())
    assert serving.requests.is_empty()


def test_sglang_serving_is_read_in_ns(tmp_path: Path) -> None:
    serving = read_serving(write(tmp_path, SGLANG))
    assert (serving.tool, serving.model, serving.backend) == ("sglang bench_serving", None, "sglang")
    assert serving.e2e.mean_ns == 900_000_000
    assert (serving.itl.max_ns, serving.itl.percentiles_ns) == (55_000_000, {95.0: 21_000_000.0})
    assert (serving.input_tokens_per_s, serving.total_tokens_per_s) == (500.0, 750.0)
    assert (serving.concurrency, serving.accept_length, serving.itl_of) == (4.5, 2.5, "token")
    assert serving.request_rate_per_s is None
    assert serving.most_requests is None


@pytest.mark.parametrize(
    ("backend", "accept", "itl_of"),
    [
        ("sglang", None, "token"),
        ("sglang-oai", None, "chunk"),
        ("sglang-oai", 2.5, "token"),
        ("sglang-oai-chat", 3.0, "token"),
        ("vllm", 2.5, "chunk"),
    ],
)
def test_whether_inter_token_latency_is_of_tokens_depends_on_the_endpoint(
    tmp_path: Path, backend: str, accept: float | None, itl_of: str
) -> None:
    serving = read_serving(write(tmp_path, SGLANG | {"backend": backend, "accept_length": accept}))
    assert serving.itl_of == itl_of


def test_the_other_benchmarks_of_both_engines_are_read(tmp_path: Path) -> None:
    latency = {"avg_latency": 0.5, "std_latency": 0.01, "latencies": [0.5], "percentiles": {"50": 0.49, "99": 0.6}}
    throughput = {"elapsed_time": 4.0, "num_requests": 10, "total_num_tokens": 4000, "requests_per_second": 2.5}
    batch = {"run_name": "x", "batch_size": 8, "input_len": 256, "output_len": 32, "prefill_latency": 0.05}
    batch |= {"prefill_throughput": 40960.0, "median_decode_latency": 0.012, "median_decode_throughput": 666.6}
    batch |= {"total_latency": 0.422, "overall_throughput": 5459.7}
    server = {"run_name": "y", "batch_size": 4, "input_len": 100, "output_len": 50, "latency": 1.25}
    server |= {"input_throughput": 2000.0, "output_throughput": 190.0, "overall_throughput": 480.0, "last_ttft": 0.2}
    server |= {"last_gen_throughput": 200.0, "acc_length": -1, "total_output_tokens": 200}
    offline = {"backend": "engine", "successful_requests": 20, "total_latency": 2.0, "total_input_tokens": 400}
    offline |= {"total_output_tokens": 600, "request_throughput": 10.0, "input_throughput": 200.0}
    offline |= {"output_throughput": 300.0, "total_throughput": 500.0}
    path = write(tmp_path, latency, throughput | {"tokens_per_second": 1000.0}, batch, server, offline)
    one, two, three, four, five = read_serving_runs(path)
    assert [each.run for each in (one, two, three, four, five)] == [0, 1, 2, 3, 4]
    assert one.e2e == Latency(5e8, 4.9e8, 1e7, None, {50.0: 4.9e8, 99.0: 6e8})
    assert (two.duration_ns, two.completed, two.total_tokens_per_s) == (4e9, 10, 1000.0)
    assert (three.ttft.mean_ns, three.tpot.median_ns, three.prompts_together) == (5e7, 1.2e7, True)
    assert (three.input_tokens, three.max_concurrency, three.decode_tokens_per_s) == (2048, 8, 666.6)
    assert (four.ttft.max_ns, four.accept_length, four.decode_tokens_per_s) == (2e8, None, 190.0)
    assert (four.output_tokens_per_s, four.output_tokens) == (None, 200)
    assert four.notes == ("Of the times to the first token, only the last is known: 200.000 ms.",)
    assert (five.duration_ns, five.completed, five.output_tokens_per_s) == (2e9, 20, 300.0)


def test_details_are_one_row_a_request_and_fill_what_is_missing(tmp_path: Path) -> None:
    details = {
        "input_lens": [512, 256, 100],
        "output_lens": [3, 2, 0],
        "ttfts": [0.1, 0.2, 0.0],
        "itls": [[0.01, 0.03], [0.02], []],
        "start_times": [5.0, 5.5, 6.0],
    }
    serving = read_serving(write(tmp_path, VLLM | details))
    assert serving.requests.rows() == [
        (512, 3, 5.0e9, 1e8, 4e7, 2),
        (256, 2, 5.5e9, 2e8, 2e7, 1),
        (100, 0, 6.0e9, None, None, 0),
    ]
    assert serving.itl.median_ns == 19_900_000  # as the file has it
    assert serving.itl.percentiles_ns[95.0] == pytest.approx(29e6)
    assert serving.itl.max_ns == 3e7
    assert serving.ttft.percentiles_ns[99.0] == 310_125_000


def test_what_is_zero_nan_or_absent_is_null(tmp_path: Path) -> None:
    text = json.dumps(VLLM | {"mean_itl_ms": 0.0, "median_itl_ms": -0.0, "std_itl_ms": 0.0, "p99_itl_ms": 0.0})
    text = text.replace('"p99.9_itl_ms": 75.5', '"p99.9_itl_ms": 0.0').replace("150.25", "NaN").replace("120.5", "null")
    serving = read_serving(write(tmp_path, text=text))
    assert serving.itl == Latency()
    assert (serving.ttft.mean_ns, serving.ttft.median_ns) == (None, None)
    assert serving.notes == ("The benchmark measured no itl: its file has 0 there.",)


def test_one_of_several_runs_is_chosen_by_its_number(tmp_path: Path) -> None:
    path = write(tmp_path, VLLM, VLLM | {"max_concurrency": 64, "request_rate": 4.0}, name="runs.jsonl")
    assert read_serving(path, 1).max_concurrency == 64
    assert (read_serving(path, 1).run, read_serving(path, 1).runs) == (1, 2)
    for run, wanted in (
        (None, "expected one run of several, found 2"),
        (2, "expected run 2, found 2"),
        (-1, "expected run -1"),
    ):
        with pytest.raises(InputError, match=wanted) as caught:
            read_serving(path, run)
        assert "1: vllm bench serve, meta-llama/Llama-3.1-8B, vllm" in str(caught.value)
        assert "4 requests/s sent, at most 64 at once" in str(caught.value)


@pytest.mark.parametrize("layout", ["pretty", "list", "lines with blanks", "packed", "byte order mark"])
def test_layouts_do_not_matter(tmp_path: Path, layout: str) -> None:
    path = tmp_path / "run.json"
    text = {
        "pretty": json.dumps(VLLM, indent=4) + "\n\n",
        "list": json.dumps([VLLM]),
        "lines with blanks": "\n\n" + json.dumps(VLLM) + "\r\n\n",
        "packed": json.dumps(VLLM),
        "byte order mark": "\ufeff" + json.dumps(VLLM),
    }[layout]
    path.write_bytes(gzip.compress(text.encode()) if layout == "packed" else text.encode())
    assert read_serving(path).tpot.mean_ns == 20_500_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found an empty file"),
        ("[]", "found an empty file"),
        (" \n", "found an empty file"),
        (json.dumps(VLLM)[:200], "line 1: expected .* found the end of the file in the middle of an object"),
        (json.dumps(VLLM) + "\n" + json.dumps(VLLM)[:-1], "run 1: line 2: .*the end of the file in the middle"),
        ("{}", "found an object with the fields none"),
        ('{"a": 1}', 'found an object with the fields "a"'),
        ('{"traceEvents": []}', "found a trace"),
        ("{", "found the end of the file in the middle"),
        ('{"mean_ttft_ms": 1,', "found the end of the file in the middle"),
        ("x", "line 1, column 1: .*found no JSON"),
        ("hello", "line 1, column 1: .*found no JSON"),
        ("3", "found 3"),
        ('[{"a": 1}, null]', 'run 0: expected .* fields "a"|run 1: expected .* null'),
        ('"' + "x" * 500 + '"', "found .xxxxx"),
        ("[" * 100_000, "can't be read|the end of the file"),
        ('{"a": ' + "9" * 5_000 + "}", "can't be read"),
        (json.dumps(VLLM | {"mean_itl_ms": "12 ms"}), 'mean_itl_ms: expected a number, found "12 ms"'),
        (json.dumps(VLLM | {"mean_itl_ms": True}), "mean_itl_ms: expected a number, found true"),
        (json.dumps(VLLM | {"completed": 1.5}), "completed: expected a whole number, found 1.5"),
        (json.dumps(VLLM | {"completed": 10**30}), "completed: expected a number"),
        (json.dumps(VLLM | {"model_id": 3}), "model_id: expected text, found 3"),
        (json.dumps(VLLM | {"itls": {"a": 1}}), "itls: expected a list"),
        (json.dumps(VLLM | {"itls": [["x"]]}), "itls: expected lists of numbers"),
        (json.dumps(VLLM | {"itls": [[]]})[:-3] + "[" * 500 + "]" * 502 + "}", "itls: expected lists of numbers"),
        (json.dumps(VLLM | {"ttfts": [{}, 1]}), "ttfts: expected numbers"),
        (json.dumps(VLLM | {"itls": [[1e308]]}), "itls: expected numbers up to 9.22337e\\+18"),
        (
            json.dumps(VLLM | {"ttfts": [0.1], "input_lens": [1, 2]}),
            r"input_lens, ttfts: expected one item a request, found \[2, 1\]",
        ),
        (json.dumps({"avg_latency": 1, "percentiles": [1]}), "percentiles: expected an object"),
    ],
)
def test_a_broken_file_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text=text)
    with pytest.raises(FormatError, match=message) as caught:
        read_serving_runs(path)
    assert str(caught.value).startswith(str(path))
    assert caught.value.hint


ODD: tuple[object, ...] = (
    None,
    "x",
    "",
    [],
    {},
    [1],
    -1,
    0,
    True,
    1e308,
    10**400,
    float("nan"),
    float("inf"),
    "\ud800",
    [[None]],
    [{}],
)


@pytest.mark.parametrize("base", [VLLM, SGLANG], ids=["vllm", "sglang"])
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: str(odd)[:10])
def test_an_odd_value_is_refused_or_null_in_every_field(tmp_path: Path, base: dict[str, Any], odd: object) -> None:
    result = make_result(Options(requests=3, concurrency=2, output=4))
    lists = {name: value for name, value in result.items() if isinstance(value, list)}
    for name in {**base, **lists}:
        said = name
        try:
            read_serving(write(tmp_path, base | lists | {name: odd})).as_json()
        except FormatError as error:
            said = str(error)
        assert name in said


def test_odd_bytes_and_names_are_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "läuft 模型.json"
    path.write_bytes(json.dumps(VLLM | {"model_id": "模型\u202e"}, ensure_ascii=False).encode() + b"\n")
    assert read_serving(path).model == "模型\u202e"
    path.write_bytes(json.dumps(VLLM).encode().replace(b"Llama", b"Ll\xffma"))
    assert read_serving(path).tpot.mean_ns == 20_500_000


def test_damaged_and_too_large_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.json.gz"
    path.write_bytes(gzip.compress(json.dumps(VLLM).encode())[:-20])
    with pytest.raises(FormatError, match="the compressed data"):
        read_serving(path)
    with pytest.raises(FormatError, match="expected at most 100 bytes, since it is held in memory, found more"):
        read_serving(write(tmp_path, VLLM), limits=Limits(held_bytes=100))
    with pytest.raises(InputError, match="No such file"):
        read_serving(tmp_path / "none.json")
    with pytest.raises(InputError, match="Is a directory"):
        read_serving(tmp_path)


@pytest.mark.parametrize("tool", ["vllm", "sglang"])
def test_details_and_statistics_of_a_made_up_run_agree(tmp_path: Path, tool: str) -> None:
    result = make_result(Options(tool=tool, requests=20, accept=2))
    plain = {name: value for name, value in result.items() if not isinstance(value, list)}
    bare = {name: value for name, value in result.items() if not name.endswith(("_itl_ms", "_ttft_ms"))}
    whole, same = read_serving(write(tmp_path, plain)), read_serving(write(tmp_path, bare, name="other.json"))
    for name in ("ttft", "itl"):
        one, other = getattr(whole, name), getattr(same, name)
        assert other.mean_ns == pytest.approx(one.mean_ns)
        assert other.percentiles_ns[99.0] == pytest.approx(one.percentiles_ns[99.0])
    assert whole.prompt_tokens == 512


def test_json_of_a_run_is_plain(tmp_path: Path) -> None:
    data = read_serving(write(tmp_path, SGLANG)).as_json()
    assert json.loads(json.dumps(data)) == data
    assert data["itl"]["percentiles_ns"] == {"95": 21_000_000.0}
