"""The synthetic benchmark is what it claims to be, and the bundled one is what its command makes."""

import json
from pathlib import Path

import pytest
from tools.make_serving import Options, main, make_result

from inferometer.formats.serving_results import read_serving, read_serving_runs

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "serving.json"


def test_the_bundled_sample_is_what_its_command_makes() -> None:
    made = make_result(Options(step_ms=6.25, output=128))
    kept = json.loads(SAMPLE.read_text("utf-8"))
    assert kept == {
        name: pytest.approx(value) if isinstance(value, float) else value
        for name, value in made.items()
        if not isinstance(value, list)
    }


@pytest.mark.parametrize("tool", ["vllm", "sglang"])
@pytest.mark.parametrize("accept", [1, 3])
def test_the_clock_is_found_again(tmp_path: Path, tool: str, accept: int) -> None:
    path = tmp_path / "run.json"
    options = ["--tool", tool, "--accept", str(accept), "--output", "61", "--requests", "20", "--step-ms", "8"]
    assert main([*options, "--out", str(path)]) == 0
    run = read_serving(path)
    assert run.itl_of == ("token" if tool == "sglang" else "chunk")
    a_step = run.itl.times(accept if tool == "sglang" else 1)
    assert a_step.median_ns == pytest.approx(8e6, rel=0.02)
    assert run.accept_length == (accept if accept > 1 else None)
    assert (run.completed, run.max_concurrency, run.requests.height) == (20, 16, 20)
    assert run.ttft.mean_ns is not None
    assert run.ttft.mean_ns > 24e6


def test_the_command_overwrites_only_by_force_and_appends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.jsonl"
    assert main(["--requests", "3", "--out", str(path), "--plain"]) == 0
    with pytest.raises(SystemExit) as stopped:
        main(["--requests", "3", "--out", str(path)])
    assert stopped.value.code == 2
    assert "--force" in capsys.readouterr().err
    assert main(["--requests", "4", "--out", str(path), "--append"]) == 0
    assert [run.completed for run in read_serving_runs(path)] == [3, 4]
    assert main(["--requests", "5", "--out", str(path), "--force"]) == 0
    assert read_serving(path).completed == 5
