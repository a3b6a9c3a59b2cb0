"""`inferometer bench` as users meet it: processes are started as theirs are, but where a test is `forked`."""

import json
from pathlib import Path

import pytest
from tests.commands.test_command_line import run

CANDIDATE = Path(__file__).parents[1] / "bench" / "candidates" / "right.py"


@pytest.fixture
def torch() -> None:
    pytest.importorskip("torch", reason="torch isn't installed")


@pytest.mark.usefixtures("torch")
def test_a_right_kernel_is_right_and_a_missing_one_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    code, said, err = run(
        "bench", "rms_norm", "--candidate", CANDIDATE, "--cases", 1, "--json", "--check", capsys=capsys
    )
    assert (code, err, json.loads(said)["right"]) == (0, "", True)
    code, said, _ = run("bench", "l2_norm", "--candidate", CANDIDATE, "--check", capsys=capsys)
    assert code == 1
    assert "Verdict   wrong: 0 of 3 shapes" in said


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["rms_nrm"], 3, 'unknown operator "rms_nrm"'),
        (["rms_norm", "--shapes", "99"], 3, "rms_norm has no shape 99\n  It has 0-55; "),
        (["rms_norm", "--shapes", "soon"], 3, 'found "soon"'),
        (["rms_norm", "--candidate", "none.py"], 3, "none.py: no such file"),
        (["rms_norm", "--candidate", str(CANDIDATE.parent)], 3, "expected a file, found something else"),
        (["rms_norm", "--candidate", "/dev/zero"], 3, "/dev/zero: expected a file, found something else"),
        (["rms_norm", "--on", "banana"], 3, 'found "banana"'),
        (["rms_norm", "--on", "cuda:99"], 4, "there is no GPU cuda:99 here"),
        ([], 2, "name an OPERATOR"),
        (["--candidate", str(CANDIDATE)], 2, "name an OPERATOR"),
        (["rms_norm", "--cases", "0"], 2, "--cases"),
        (["rms_norm", "--arch", "sm_90"], 2, "--arch needs --stage builds"),
        (["rms_norm", "--stage", "builds"], 2, "--stage builds needs one OPERATOR, and a --candidate or one --backend"),
        (["rms_norm", "--stage", "builds", "--backend", "triton,torch"], 2, "or one --backend"),
        (["all", "--stage", "builds", "--backend", "triton"], 2, "needs one OPERATOR"),
        (["rms_norm", "--stage", "builds", "--backend", "torch"], 3, "To build are: triton"),
        (["mrope", "--stage", "builds", "--backend", "triton"], 3, "triton has no kernel for mrope"),
        (["rms_norm", "--stage", "builds", "--candidate", str(CANDIDATE), "--arch", "sm_12"], 3, "sm_12"),
        (["rms_norm", "--on", "meta"], 3, "expected cpu, cuda or cuda:1"),
        (["rms_norm", "--timer", "events"], 2, "--timer and --seconds need --stage fast"),
        (["rms_norm", "--stage", "fast", "--timer", "cupti"], 3, "--timer cupti is for GPUs"),
        (
            ["rms_norm", "--stage", "builds", "--candidate", str(CANDIDATE), "-o", "x.json"],
            2,
            "aren't for --stage builds",
        ),
        (["rms_norm", "--workload", "x.jsonl", "--shapes", "0"], 2, "are mutually exclusive"),
        (["--workload", "none.jsonl"], 3, "none.jsonl"),
        (["rms_norm", "--export-to", "x"], 2, "--export-to needs --export"),
        (["rms_norm", "--backend", "torhc"], 3, 'unknown backend "torhc"'),
        (["rms_norm", "--backend", "aiter"], 4, "aiter can't run on cpu"),
        (["rms_norm", "--memory", "1MiB"], 2, "expected at least 256MiB"),
        (["rms_norm", "--memory", "much"], 3, 'found "much"'),
        (["rms_norm", "--hardware-file", "none.json"], 3, "none.json"),
        (["rms_norm", "-o", str(CANDIDATE)], 3, "already exists"),
        (["rms_norm", "-o", "no/such/folder/x.json"], 3, "no such folder"),
    ],
)
def test_what_cannot_be_done_is_said(
    options: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, said, err = run("bench", *options, capsys=capsys)
    assert (found, said) == (code, "")
    assert words in err


@pytest.mark.usefixtures("torch", "forked")
def test_times_are_kept_ranked_exported_and_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, traces = tmp_path / "results.json", tmp_path / "traces"
    options = ["--candidate", CANDIDATE, "--stage", "fast", "--seconds", 0.05, "--cases", 1, "-o", results]
    export = ["--export", "flashinfer-bench", "--export-to", traces]
    code, said, err = run("bench", "moe_sum_reduce", *options, *export, "--json", capsys=capsys)
    found = json.loads(said)
    assert (code, err) == (0, "")
    assert found["functional_only"] is True
    assert {each["contender"] for each in found["results"]} == {"torch", "right.py"}
    assert {each["failure"] for each in found["results"]} == {None}
    assert all(each["timings"] for each in found["results"])
    assert {each["sha256"] is None for each in found["contenders"]} == {True, False}

    code, said, _ = run("leaderboard", results, capsys=capsys)
    assert code == 0
    assert "functional only" in said
    assert "right.py" in said

    (workload,) = {path.parent for path in traces.glob("workloads/*/*.jsonl")}
    files = sorted(workload.glob("*.jsonl"))
    code, said, _ = run("bench", "--workload", files[0], "--cases", 1, "--json", capsys=capsys)
    assert code == 0
    again = json.loads(said)["results"][0]["args"]
    assert again in [each["args"] for each in found["results"]]


@pytest.mark.usefixtures("torch", "forked")
def test_results_of_a_run_are_read_back_as_they_were(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from inferometer.bench.results import encode_run, read_run

    path = tmp_path / "results.json"
    run("bench", "l2_norm", "--cases", 1, "-o", path, capsys=capsys)
    found = read_run(path)
    assert encode_run(found) == path.read_bytes()
    assert found.stage == "correct"
    assert {each.candidate for each in found.results} == {"torch"}


@pytest.mark.usefixtures("torch", "forked")
def test_bounds_of_a_device_file_stand_beside_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said, _ = run("hardware", "H100 SXM", "--json", capsys=capsys)
    device = tmp_path / "device.json"
    device.write_text(said)
    code, said, _ = run("bench", "l2_norm", "--cases", 1, "--hardware-file", device, "--json", capsys=capsys)
    assert code == 0
    assert all(each["bound"]["bound_ns"] > 0 for each in json.loads(said)["results"])


@pytest.mark.usefixtures("torch")
def test_a_triton_kernel_is_built_for_the_architectures_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("triton", reason="triton isn't installed")
    kernel = CANDIDATE.with_name("triton_rms_norm.py")
    options = ["--stage", "builds", "--candidate", kernel, "--arch", "sm_80", "--arch", "gfx942", "--json", "--check"]
    code, said, err = run("bench", "rms_norm", *options, capsys=capsys)
    found = json.loads(said)
    assert (code, err) == (0, "")
    assert [each["architecture"] for each in found["architectures"]] == ["sm_80", "gfx942"]
    assert all(kernel["registers"] > 0 for each in found["architectures"] for kernel in each["kernels"])


@pytest.mark.usefixtures("torch", "forked")
def test_our_own_kernels_are_built_without_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("triton", reason="triton isn't installed")
    options = ["--backend", "triton", "--stage", "builds", "--arch", "gfx950", "--arch", "sm_120", "--json", "--check"]
    code, said, err = run("bench", "silu_and_mul", *options, capsys=capsys)
    found = json.loads(said)
    assert (code, err, found["candidate"]) == (0, "", "triton")
    assert [each["architecture"] for each in found["architectures"]] == ["gfx950", "sm_120"]
    assert all(each["kernels"] for each in found["architectures"])


def test_without_torch_it_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, _, err = run("bench", "rms_norm", capsys=capsys)
    assert code == 4
    assert "pip install 'inferometer[torch]'" in err
