"""The answers of docs/guide/faq.md, tried on files that have the problem: real captures where there are any."""

import gzip
import json
import re
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest
from tests.commands.test_command_line import run

import inferometer
from inferometer.errors import InputError, Unavailable
from inferometer.hardware.measure import nvml

ROOT = Path(__file__).resolve().parents[2]
PAGE = " ".join((ROOT / "docs/guide/faq.md").read_text("utf-8").split())


def test_a_recording_of_the_host_alone_has_no_kernels_and_says_what_to_record(
    shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run("kernels", shared_data / "traces/kineto/cpu_only.json.gz", capsys=capsys)
    assert code == 0
    words = " ".join(out.split())
    assert "No kernels: only the host was recorded, or recording the device failed." in words
    assert "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]" in words
    assert "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]" in PAGE


def test_without_shapes_nothing_has_a_bound_and_each_row_says_why(
    shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = shared_data / "traces/kineto/a100_simple_add.json.gz"
    code, out, _ = run("roofline", file, "--json", capsys=capsys)
    rows = json.loads(out)["rows"]
    assert (code, {row["bound_ns"] for row in rows}) == (0, {None})
    assert sum(row["reason"] == "its shapes weren't recorded" for row in rows) > 5
    with inferometer.open(file) as trace:
        assert not trace.facts.recorded.get("shapes")
    assert "its shapes weren't recorded" in PAGE


@pytest.mark.parametrize("name", ["mi300_vllm_gpt-oss_decode", "mi300_sglang_qwen3-8b_decode"])
def test_a_graph_s_replay_has_no_modules_and_names_the_option_that_finds_them(
    name: str, shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = shared_data / f"traces/kineto/{name}.json.gz"
    code, out, _ = run("launches", file, "--by", "module", capsys=capsys)
    assert code == 0
    assert "graph_replay" in out
    assert "--capture FILE finds them" in " ".join(out.split())


def test_a_capture_gives_most_of_a_replay_its_modules(capsys: pytest.CaptureFixture[str]) -> None:
    folder = ROOT / "samples/h200"
    words = ("launches", folder / "kineto_graph.json.gz", "--by", "module", "--json")
    shares = []
    for more in ((), ("--capture", folder / "kineto_eager.json.gz")):
        code, out, _ = run(*words, *more, capsys=capsys)
        found = json.loads(out)
        assert code == 0
        shares.append(found["attributed_ns"] / found["total_ns"])
    assert shares[0] == 0
    assert shares[1] > 0.8


def test_a_trace_of_rocm_has_launches_calls_of_hip_and_decoded_names(shared_data: Path) -> None:
    with inferometer.open(shared_data / "traces/kineto/mi300_qwen1.5-0.5b.json.gz") as trace:
        apis = trace.calls.select("api").unique().collect()["api"]
        families = inferometer.kernel_table(trace, by="family").to_polars()
    assert {"hipLaunchKernel"} <= set(apis)
    assert not apis.str.starts_with("cuda").any()
    assert families.filter(pl.col("kernel") == "gemm")["total_ns"].item() > 0


def test_files_of_rocprofv3_are_read(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("kernels", shared_data / "traces/rocprof/mi350_600_dispatches.json.gz", "--json", capsys=capsys)
    assert (code, sum(row["total_ns"] for row in json.loads(out)["rows"])) == (0, 98_428_776)
    assert "rocprofv3's own files are read" in PAGE


def test_a_file_that_unpacks_to_too_much_is_refused_and_the_limit_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents": [' + b" " * 40_000_000 + b"]}"))
    limits = inferometer.Limits(expansion=50.0, expansion_floor_bytes=1 << 20)
    with pytest.raises(InputError, match=r"unpacks to more than 50 times its size \(limit") as refused:
        inferometer.open(path, limits=limits)
    assert "--no-limits" in str(refused.value)
    assert "times its size (limit" in PAGE


@pytest.mark.skipif(find_spec("pynvml") is None, reason="needs the extra `record`")
@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("NVML_ERROR_NO_PERMISSION", "NVML: Insufficient Permissions"),
        ("NVML_ERROR_LIBRARY_NOT_FOUND", "NVML: NVML Shared Library Not Found"),
    ],
)
def test_why_nvml_can_t_be_read_is_said_in_the_words_of_the_page(
    code: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pynvml

    def refuse() -> None:
        raise pynvml.NVMLError(getattr(pynvml, code))

    monkeypatch.setattr(pynvml, "nvmlInit", refuse)
    with pytest.raises(Unavailable, match=message):
        nvml.list_gpus()
    assert message in PAGE


def test_the_times_of_a_big_file_are_those_that_were_measured() -> None:
    measured = (ROOT / "benchmarks/results/ingest.md").read_text("utf-8")

    def seconds(command: str) -> float:
        (found,) = re.findall(rf"{re.escape(command)}` \| \d+ \| ([\d.]+) \(", measured)
        return float(found)

    whole = seconds("import eager-860.json -o eager-860.ifm --json")
    assert f"On a file of 2 GB that takes {whole:.1f} s on two cores" in PAGE
    quarter = seconds("json_load.py eager-215.json")
    assert f"(Python's `json.load` takes {quarter:.1f} s for a quarter of it)" in PAGE
    assert f"`kernels` of the store {seconds('kernels eager-860.ifm --json'):.2f} s" in PAGE
