"""The generated log is what it claims to be, and the bundled one is what its command makes."""

import gzip
import io
from pathlib import Path

import pytest
from tests.traces import counted, rows
from tools.make_webgpu_log import LAYERS, MODEL, Options, main, write_log

import inferometer

ROOT = Path(__file__).resolve().parents[2]


def text_of(options: Options) -> str:
    out = io.StringIO()
    write_log(options, out)
    return out.getvalue()


def test_the_bundled_sample_is_what_its_command_makes() -> None:
    kept = gzip.decompress((ROOT / "samples" / "webgpu.log.gz").read_bytes()).decode()
    assert kept == text_of(Options(batches=40, tail=3, faults=("attention", "neighbour")))


def test_it_reads_without_a_loss(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    assert main(["--batches", "3", "--out", str(path)]) == 0
    trace = inferometer.open(path)
    assert counted(trace) == {}
    assert trace.facts.model == MODEL
    assert rows(trace, "steps", "decode_tokens", "context_len") == [(None, 0), (4, 21), (4, 25), (4, 29), (2, 33)]
    downs = {layer for layer, role in rows(trace, "totals", "layer", "role") if role == "blk.down"}
    assert downs == {str(layer) for layer in range(LAYERS)}
    assert ("gemm:unembed", None, "unembed") in rows(trace, "totals", "kernel", "layer", "role")
    assert trace.facts.engine_metrics["decode_tokens"] == 15


def test_the_command_overwrites_only_by_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--batches", "1", "--out", str(tmp_path / "run.log")]
    assert main(arguments) == 0
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "exists already; --force replaces it" in capsys.readouterr().err
    assert main([*arguments, "--force"]) == 0
