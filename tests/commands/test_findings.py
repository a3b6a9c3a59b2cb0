"""`inferometer findings` as users and CI meet it, and what `summary` shows of it."""

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.commands.test_command_line import run
from tests.generated_traces import generated_trace
from tests.kineto_files import event, write_file
from tests.webgpu_log_files import write_log
from tools.kineto_maker import Options
from tools.kineto_maker.faults import Fault

SMALL = Options(steps=6, layers=2, prefill_every=0, mode="graph", lean=True)
LATE = Options(steps=6, layers=2, prefill_every=0, lean=True, fault="host-late")


def write(path: Path, options: Options) -> Path:
    path.write_bytes(generated_trace(options)[0])
    return path


@pytest.fixture(autouse=True)
def _wide_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")  # no sentence is wrapped


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("late") / "late.json", LATE)


def test_each_finding_has_number_severity_evidence_and_a_next_step(
    late: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run("findings", late, capsys=capsys)
    assert (code, err) == (0, "")
    assert re.search(r"^ ?1\.  high +\S.* \(\d.* %; idle_device\)$", out, re.MULTILINE)
    assert out.count("Next: ") == len(re.findall(r"^ ?\d+\.  ", out, re.MULTILINE))
    assert "late.json" in out.splitlines()[0]


def test_json_is_complete(late: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("findings", late, "--json", capsys=capsys)
    told = json.loads(out)
    told_of_rules = ["device_time_budget", "examined", "findings", "left_out", "thresholds"]
    assert sorted(told) == sorted([*told_of_rules, "losses", "schema", "source"])
    assert told["thresholds"] == []
    window_ns = told["examined"]["window_ns"]
    assert sum(row["time_ns"] for row in told["device_time_budget"]) == window_ns
    explained_ns = sum(each["idle_ns"] or 0 for each in told["findings"])
    assert explained_ns + told["examined"]["unexplained_idle_ns"] == told["examined"]["idle_ns"]
    first = told["findings"][0]
    assert (first["rule"], first["severity"], first["explained_by"]) == ("idle_device", "high", None)
    assert all(each["evidence"] and each["next"] for each in told["findings"])


def test_a_spreadsheet_gets_evidence_and_next_steps(late: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("findings", late, "--csv", capsys=capsys)
    header, first, *_ = out.splitlines()
    assert header == "Number,Severity,Rule,Finding,Time (ns),Share (%),Evidence,Next,Explained by"
    assert first.startswith("1,high,idle_device,")


def test_markdown_has_a_table_and_the_evidence_below(late: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("findings", late, "--markdown", capsys=capsys)
    assert "### What to look at first" in out
    assert " Next: " in out


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--check", "high"], 1),
        (["--check", "low"], 1),
        (["--check", "low", "--rule", "split_k_reductions"], 0),
        (["--check", "high", "--rule", "idle_device", "--rule", "sync_points"], 1),
        (["--check", "high", "--top", "1", "--json"], 1),
        (["--check", "info"], 2),
        (["--rule", "idle_devices"], 3),
        (["--top", "0"], 2),
    ],
)
def test_ci_learns_whether_there_is_anything(
    late: Path, options: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("findings", late, *options, capsys=capsys)[0] == code


def test_a_rule_that_is_unknown_is_answered_with_those_known(late: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = run("findings", late, "--rule", "idle_devices", capsys=capsys)
    assert "Known, nearest first: idle_device, " in err


def test_the_first_alone_are_shown_on_request_and_all_are_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "engine.log"
    log.write_text(write_log(gap_ms=25.0, decode={"sample_phase2": 0.6}, zero_byte_load=True), encoding="utf-8")
    _, everything, _ = run("findings", log, "--json", capsys=capsys)
    _, first, _ = run("findings", log, "--top", "1", "--json", capsys=capsys)
    whole, part = json.loads(everything), json.loads(first)
    assert part["findings"] == whole["findings"][:1]
    assert part["left_out"] == len(whole["findings"]) - 1
    _, out, _ = run("findings", log, "--top", "1", capsys=capsys)
    assert f"{part['left_out']} more are not listed." in out


def test_a_run_without_findings_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "good.json", SMALL)
    code, out, _ = run("findings", path, "--rule", "fallbacks", "--check", "low", capsys=capsys)
    assert (code, "What to look at first: none." in out) == (0, True)
    examined = r"1 rule looked at [\d,]+ launches, .* on 1 device: nothing is above their thresholds\."
    assert re.fullmatch(examined, out.splitlines()[-1])


def test_the_idle_time_that_no_finding_is_about_is_stated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("findings", write(tmp_path / "good.json", SMALL), capsys=capsys)
    assert re.search(r"^Idle time is .* % of the device's window(; no finding|: the findings).*\.$", out, re.MULTILINE)


def test_help_opens_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("findings", "--help", capsys=capsys)
    assert "inferometer findings trace.json.gz --check medium" in out


def test_summary_shows_the_first_and_names_the_command_for_the_rest(
    late: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, everything, _ = run("findings", late, "--json", capsys=capsys)
    _, out, _ = run("summary", late, capsys=capsys)
    found = json.loads(everything)["findings"]
    assert "What to look at first" in out
    causes = [each for each in found if each["explained_by"] is None]
    assert found[0]["title"] in out
    more = len(found) - min(5, len(causes))
    assert (f"{more} more, and all evidence: inferometer findings" in out) == (more > 0)
    _, told, _ = run("summary", late, "--json", capsys=capsys)
    assert json.loads(told)["findings"] == found


@pytest.mark.parametrize(
    ("fault", "rule", "remark"),
    [
        ("host-late", "idle_device", " is idle "),
        ("launch-storm", "launch_bound", " kernels take less than "),
        ("exposed-copy", "exposed_copies", "Copies run alone for "),
    ],
)
def test_summary_leaves_a_remark_out_where_a_finding_says_it_better(
    fault: Fault, rule: str, remark: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "trace.json", replace(SMALL, fault=fault))
    _, told, _ = run("summary", path, "--json", capsys=capsys)
    assert any(remark in each for each in json.loads(told)["remarks"])
    _, out, _ = run("summary", path, capsys=capsys)
    assert (rule in out, remark in out) == (True, False)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.99])
def test_a_check_of_a_file_that_is_cut_off_fails(
    share: float, shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = gzip.decompress((shared_data / "traces" / "kineto" / "mi300_vllm_gpt-oss_decode.json.gz").read_bytes())
    path = tmp_path / "cut.json"
    path.write_bytes(text)
    assert run("findings", path, "--check", "medium", capsys=capsys)[0] == 0
    path.write_bytes(text[: int(share * len(text))])
    code, _, err = run("findings", path, "--check", "medium", capsys=capsys)
    assert code == 1
    assert "not checked: the file is cut off or damaged" in err
    assert run("findings", path, capsys=capsys)[0] == 0


def test_a_check_of_a_file_without_device_work_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "host.json"
    path.write_bytes(write_file([event("cuda_runtime", "cudaMalloc", "1", "5")]))
    code, out, err = run("findings", path, "--check", "low", "--json", capsys=capsys)
    assert (code, json.loads(out)["findings"]) == (1, [])
    assert "not checked: the file has no device work" in err
