"""`inferometer bench --suite` as users meet it."""

import json
from pathlib import Path

import pytest
from tests.bench.problems.datasets import GEMM, NORM, solution, write, write_dataset, write_solution
from tests.commands.test_command_line import run

RIGHT = "def run(A, B):\n    return (A.float() @ B.float().T).half()\n"


@pytest.fixture
def dataset(warm: None, tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "dataset", (GEMM, NORM))


def test_a_solution_of_a_data_set_is_checked_timed_and_written(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_solution(dataset, GEMM, solution(GEMM, RIGHT, "right"))
    traces = tmp_path / "traces"
    options = ["--stage", "fast", "--seconds", 0.02, "--cases", 1, "--shapes", 0, "--check"]
    export = ["--export", "flashinfer-bench", "--export-to", traces]
    code, said, _ = run("bench", "gemm_*", "--suite", dataset, *options, *export, "--json", capsys=capsys)
    found = json.loads(said)
    assert code == 0
    assert [each["contender"] for each in found["results"]] == ["reference", "right"]
    assert found["right"] is True
    (path,) = traces.glob("traces/tests/gemm/*.jsonl")
    assert json.loads(path.read_text())["evaluation"]["status"] == "PASSED"


def test_a_wrong_file_exits_with_1(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    candidate = write(tmp_path / "mine.py", RIGHT.replace("@", "* 2 @"))
    options = ["--candidate", candidate, "--cases", 1, "--shapes", 1, "--check"]
    code, said, _ = run("bench", "gemm_*", "--suite", dataset, *options, capsys=capsys)
    assert code == 1
    assert "C: the error is 1 of the answer" in said


def test_a_solution_says_which_definition_it_is_for(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    candidate = write(tmp_path / "mine.json", json.dumps(solution(GEMM, RIGHT, "mine")))
    options = ["--candidate", candidate, "--cases", 1, "--shapes", 0, "--json", "--check"]
    code, said, _ = run("bench", "--suite", dataset, *options, capsys=capsys)
    found = json.loads(said)
    assert (code, found["refused"]) == (0, {})
    assert [(each["operator"], each["contender"]) for each in found["results"]] == [(GEMM["name"], "mine")]


def test_a_suite_s_candidates_are_held_as_strictly_as_others(
    dataset: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_solution(dataset, GEMM, solution(GEMM, "import os\nos.fork() or os._exit(0)\n" + RIGHT, "forking"))
    options = ["--cases", 1, "--shapes", 0, "--strict", "--check"]
    code, said, _ = run("bench", "gemm_*", "--suite", dataset, *options, capsys=capsys)
    assert code == 1
    assert "with --strict: it starts processes (os.fork)" in said
    monkeypatch.setenv("PATH", "")
    code, said, err = run("bench", "gemm_*", "--suite", dataset, "--sandbox", capsys=capsys)
    assert (code, said) == (4, "")
    assert "--sandbox needs bubblewrap" in err


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--suite", "none"], 3, "none: no such file or folder"),
        (["nothing*", "--suite", "DATASET"], 3, "no problem is called nothing*"),
        (["--suite", "DATASET", "--candidate", "none.json"], 3, "none.json: no such file or folder"),
        (["--suite", "DATASET", "--candidate", "/dev/zero"], 3, "expected a file or folder, found something else"),
        (["gemm*", "--suite", "DATASET", "--shapes", "7"], 3, "gemm_n24_k40 has no shape 7"),
        (["gemm*", "--suite", "DATASET", "--shapes", "tiny"], 3, 'found "tiny"'),
        (["--suite", "DATASET", "--backend", "torch"], 2, "--suite can't be used with --workload, --backend"),
        (["--suite", "DATASET", "--stage", "builds"], 2, "--stage builds"),
    ],
)
def test_what_cannot_be_done_is_said(
    options: list[str], code: int, words: str, dataset: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(dataset) if each == "DATASET" else each for each in options]
    found, said, err = run("bench", *given, capsys=capsys)
    assert (found, said) == (code, "")
    assert words in err
