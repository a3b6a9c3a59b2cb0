"""A tiny model recorded by `inferometer record --`: everything is there, and every command answers from it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import polars as pl
import pytest
from tests.commands.test_command_line import run

import inferometer

SCRIPT = """
    import sys
    import torch
    from torch import nn
    import inferometer


    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.up = nn.Linear(32, 64)
            self.down = nn.Linear(64, 32)

        def forward(self, x):
            return x + self.down(torch.relu(self.up(x)))


    def generate(model, steps):
        x = torch.randn(8, 32)
        for i in range(steps):
            with inferometer.step(phase="decode" if i else "prefill", batch=8):
                with torch.inference_mode():
                    x = model(x)


    generate(nn.Sequential(Block(), Block()), int(sys.argv[1]))
"""


def test_help_is_quick_and_names_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    code, said, _ = run("record", "--help", capsys=capsys)
    assert code == 0
    assert "inferometer record -o run.ifm -- python generate.py --batch 8" in said


@pytest.mark.parametrize(
    "words", [("--no-ops", "--", "true"), ("--server", "http://127.0.0.1:1"), ("--join", "run.ifm.parts")]
)
def test_one_step_of_n_needs_a_command_whose_ops_are_seen(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, said = run("record", "--ops-every", "8", *words, capsys=capsys)
    assert code == 2
    assert "--ops-every needs a COMMAND whose ops are seen." in said


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="torch isn't installed")
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "tiny.py").write_text(dedent(SCRIPT))
    ran = subprocess.run(
        [sys.executable, "-m", "inferometer", "record", "--json", "--", sys.executable, "tiny.py", "20"],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    told = json.loads(ran.stdout)
    assert (told["remarks"], told["store"], told["rows"]["steps"]) == ([], "run.ifm", 20)
    assert any(line.startswith("Interception: ") for line in told["overhead"])
    assert any(line.startswith("Counters: ") for line in told["overhead"])
    return folder / "run.ifm"


def test_ops_modules_frames_steps_and_counters_are_there(recorded: Path) -> None:
    with inferometer.open(str(recorded)) as trace:
        linear = trace.ops.filter(pl.col("op") == "aten::linear").collect()
        assert linear.height == 20 * 4
        assert set(linear["input_dims"].str.json_decode(pl.List(pl.List(pl.Int64))).list.first().list.last()) == {
            32,
            64,
        }
        assert trace.spans.filter(pl.col("domain") == "modules").collect()["span"].n_unique() > 4
        assert "generate" in " ".join(trace.frames.collect()["frame"])
        assert trace.steps.collect()["phase"].value_counts().sort("count").rows() == [("prefill", 1), ("decode", 19)]
        assert trace.launches.collect()["device"].unique().to_list() == ["cpu"]
        assert trace.counters.collect().height > 10
        facts = trace.facts
    assert (facts.tool, facts.framework, facts.recorded["ops"]) == ("inferometer", "PyTorch", True)
    assert set(facts.versions) >= {"python", "torch"}
    assert any(note.endswith("tiny.py 20") for note in facts.notes)
    assert {named.name for named in facts.processes} >= {"tiny.py"}


def test_ops_of_one_step_lie_in_it_on_one_clock_with_the_counters(recorded: Path) -> None:
    with inferometer.open(str(recorded)) as trace:
        step = trace.steps.filter(pl.col("step") == 7).collect().row(0, named=True)
        end_ns = step["start_ns"] + step["dur_ns"]
        within = trace.ops.filter(pl.col("start_ns").is_between(step["start_ns"], end_ns)).collect()
        counters = trace.counters.select(
            pl.col("time_ns").min().alias("a"), pl.col("time_ns").max().alias("b")
        ).collect()
    assert within["op"].to_list() == ["aten::linear", "aten::relu", "aten::linear", "aten::add"] * 2
    assert counters["a"].item() < step["start_ns"] < counters["b"].item()


@pytest.mark.parametrize(
    "command", ["summary", "kernels", "launches", "tree", "steps", "timeline", "spans", "findings"]
)
def test_commands_answer_from_it(recorded: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, said, err = run(command, recorded, capsys=capsys)
    assert code == 0, err
    assert said


def test_compared_with_itself_there_is_no_difference(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said, err = run("compare", recorded, recorded, "--check", capsys=capsys)
    assert code == 0, err
    assert "no difference" in said


def test_the_report_page_is_made(recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run("report", recorded, "-o", tmp_path / "page.html", capsys=capsys)
    assert code == 0, err
    assert "aten::linear" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(("files", "code"), [(((0, "rank0.json"),), 0), ((), 3)])
def test_a_server_that_gave_no_trace_is_no_success(
    files: tuple[tuple[int, str], ...],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from inferometer.record.server import recording, server

    made = recording.ServerRecording(str(tmp_path / "run.ifm"), "vllm", "0.13", "m", 1, 2, files, None, ())
    monkeypatch.setattr(server, "record_server", lambda *args, **options: made)
    words = ("record", "--server", "http://127.0.0.1:1", "-o", str(tmp_path / "run.ifm"))
    exit_code, _, said = run(*words, capsys=capsys)
    assert exit_code == code
    assert f"{len(files)} traces of vllm" in said
