"""`inferometer bench` as users meet it."""

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
        (["rms_norm", "--shapes", "99"], 3, "rms_norm has no shape 99"),
        (["rms_norm", "--shapes", "soon"], 3, 'found "soon"'),
        (["rms_norm", "--candidate", "none.py"], 3, "none.py: no such file"),
        (["rms_norm", "--candidate", str(CANDIDATE.parent)], 3, "no such file"),
        (["rms_norm", "--on", "banana"], 3, 'found "banana"'),
        (["rms_norm", "--on", "cuda:99"], 4, "there is no GPU cuda:99 here"),
        ([], 2, "name an OPERATOR"),
        (["--candidate", str(CANDIDATE)], 2, "name an OPERATOR"),
        (["rms_norm", "--cases", "0"], 2, "--cases"),
        (["rms_norm", "--arch", "sm_90"], 2, "--arch needs --stage builds"),
        (["rms_norm", "--stage", "builds"], 2, "--stage builds needs one OPERATOR and a --candidate"),
        (["rms_norm", "--stage", "builds", "--candidate", str(CANDIDATE), "--arch", "sm_12"], 3, "sm_12"),
    ],
)
def test_what_cannot_be_done_is_said(
    options: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, said, err = run("bench", *options, capsys=capsys)
    assert (found, said) == (code, "")
    assert words in err


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


def test_without_torch_it_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, _, err = run("bench", "rms_norm", capsys=capsys)
    assert code == 4
    assert "pip install 'inferometer[torch]'" in err
