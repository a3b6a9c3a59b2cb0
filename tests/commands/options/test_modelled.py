"""`kernels --model-config`, and `summary` of an engine's log, as users meet them."""

import json
from pathlib import Path

import pytest
from tests import kineto_files
from tests.commands.test_command_line import run
from tests.webgpu_log_files import Dims, write_log

LLAMA_1B = Dims(layers=16, hidden=2048, heads=32, kv_heads=8, head_dim=64, ffn=8192, vocab=128_256)


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "engine.log"
    path.write_text(write_log(model="Llama-3.2-1B-Instruct", dims=LLAMA_1B, prompt_tokens=20), encoding="utf-8")
    return str(path)


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.json"
    sizes = {"num_hidden_layers": 16, "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 8}
    more = {"head_dim": 64, "intermediate_size": 8192, "vocab_size": 128_256, "hidden_act": "silu"}
    path.write_text(json.dumps({"model_type": "llama", "tie_word_embeddings": True, **sizes, **more}))
    return str(path)


def test_kernels_of_a_healthy_log_are_near_their_bounds(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(
        "kernels", log, "--model-config", "Llama-3.2-1B", "--bandwidth", "100", "--json", capsys=capsys
    )
    assert (code, err) == (0, "")
    found = json.loads(out)
    rows = {row["kernel"]: row for row in found["rows"] if row["phase"] == "decode"}
    for kernel in ("matmul:ffn_down", "matmul:lm_head", "matmul:q_proj"):
        (bound,) = rows[kernel]["bounds"]
        assert (bound["bandwidth_bytes_per_s"], bound["bound"]) == (100e9, "memory")
        assert 0.9 < bound["sol_fraction"] <= 1.01, kernel
    assert rows["matmul:ffn_down"]["layers"] == 16


def test_a_config_file_is_as_good_as_a_name(log: str, config: str, capsys: pytest.CaptureFixture[str]) -> None:
    named, filed = (
        json.loads(run("kernels", log, "--model-config", each, "--json", capsys=capsys)[1])["rows"]
        for each in ("Llama-3.2-1B", config)
    )
    assert named == filed


def test_the_table_has_a_column_of_s_for_each_bandwidth(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(
        "kernels", log, "--model-config", "Llama-3.2-1B", "--bandwidth", "100", "--bandwidth", "400", capsys=capsys
    )
    assert code == 0
    assert "S @100 GB/s" in out
    assert "S @400 GB/s" in out
    assert "Decode, each token" in out


def test_a_device_gives_its_own_bandwidth(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--model-config", "Llama-3.2-1B", "--hardware", "Apple M3", "--top", "1")
    _, out, _ = run("kernels", log, *options, capsys=capsys)
    assert "Apple M3 (bandwidth 100 GB/s)" in out


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--model-config", "Llama-9"], 3, 'unknown model "Llama-9"'),
        (["--model-config", "no/such/config.json"], 3, "no/such/config.json"),
        (["--model-config", "Llama-3.2-1B", "--hardware", "abacus"], 3, 'unknown device "abacus"'),
        (["--model-config", "Llama-3.2-1B", "--by", "family"], 2, "only --by layer, --top and --section fit"),
        (["--bandwidth", "100"], 2, "need --model-config"),
        (["--weight-bits", "4"], 2, "need --model-config"),
        (["--model-config", "Llama-3.2-1B", "--bandwidth", "nan"], 2, "--bandwidth"),
        (["--model-config", "Llama-3.2-1B", "--bandwidth", "0"], 2, "--bandwidth"),
        (["--model-config", "Llama-3.2-1B", "--section", "4"], 3, 'unknown run "4"'),
    ],
)
def test_what_can_not_be_is_said(
    log: str, options: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, _, err = run("kernels", log, *options, capsys=capsys)
    assert (found, message in err) == (code, True), err


def test_a_trace_of_launches_has_no_sums_by_step(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run("kernels", "samples/decode.json.gz", "--model-config", "gemma-3-1b", capsys=capsys)
    assert (code, "expected sums by kernel and step" in err) == (3, True)


def test_summary_says_what_to_look_at_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slow = tmp_path / "slow.log"
    slow.write_text(
        write_log(model="Llama-3.2-1B", dims=LLAMA_1B, gap_ms=30.0, disturbed={7: {"*": 3.0}}), encoding="utf-8"
    )
    code, out, _ = run("summary", str(slow), capsys=capsys)
    assert (code, "What to look at first" in out, "Steps per phase" in out) == (0, True, True)
    _, text, _ = run("summary", str(slow), "--json", capsys=capsys)
    found = json.loads(text)
    assert {"host_gap", "disturbed_steps"} <= {each["rule"] for each in found["findings"]}
    keys = ["evidence", "explained_by", "idle_ns", "next", "parts", "rule", "severity", "share", "size_ns", "title"]
    assert sorted(found["findings"][0]) == keys
    assert [phase["phase"] for phase in found["phases"]] == ["prefill", "decode"]


def test_summary_of_a_healthy_log_raises_no_alarm(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, text, _ = run("summary", log, "--json", capsys=capsys)
    assert {each["severity"] for each in json.loads(text)["findings"]} <= {"info"}


def test_a_trace_without_findings_says_what_was_examined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "trace.json"
    launch = kineto_files.kernel("gemm", "100", "10", correlation=1)
    trace.write_bytes(kineto_files.write_file([kineto_files.call(ts="90", correlation=1), launch]))
    _, out, _ = run("summary", str(trace), capsys=capsys)
    assert "What to look at first: none\n37 rules looked at 1 launch, 1 call on 1 device: nothing is above" in out


def test_a_spreadsheet_gets_the_rows_of_all_phases(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("kernels", log, "--model-config", "Llama-3.2-1B", "--csv", "--top", "1", capsys=capsys)
    header, *rows = out.splitlines()
    assert (code, header.split(",")[:2]) == (0, ["Phase", "Each"])
    assert {tuple(row.split(",")[:2]) for row in rows} == {("prefill", "step"), ("decode", "token")}
    assert len(rows) > 2


@pytest.mark.parametrize("option", [("--stream", "0"), ("--stream", "7"), ("--match", "gemm"), ("--memory",)])
def test_options_that_a_model_has_no_use_for_are_refused(
    option: tuple[str, ...], log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run("kernels", log, "--model-config", "Llama-3.2-1B", *option, capsys=capsys)
    assert (code, out) == (2, "")
    assert "With --model-config, of the choices only --by layer, --top and --section fit." in err


@pytest.mark.parametrize("command", ["summary", "findings", "report"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--model-config", "Llama-3.2-1B"), "Leave --model-config out."),
        (("--model-config", "Llama-3.2-1B", "--bandwidth", "100"), "Leave --model-config and --bandwidth out."),
    ],
)
def test_a_model_is_refused_where_nothing_is_bounded_by_it(
    command: str, options: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace.json"
    trace.write_bytes(kineto_files.write_file([kineto_files.kernel()]))
    to = ["-o", str(tmp_path / "page.html")] if command == "report" else []
    code, out, err = run(command, trace, *to, *options, capsys=capsys)
    assert (code, out) == (3, "")
    assert "expected sums by kernel and step" in err
    assert said in err


def test_a_model_of_the_settings_is_no_reason_to_refuse_a_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trace.json").write_bytes(kineto_files.write_file([kineto_files.kernel()]))
    (tmp_path / "inferometer.toml").write_text("bandwidth = [100]\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("INFEROMETER_CONFIG", raising=False)
    assert run("findings", "trace.json", capsys=capsys)[0] == 0
