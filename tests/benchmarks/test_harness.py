"""The benchmark's harness works from end to end, and tells no time where an answer is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks import trace_files
from benchmarks.answers import (
    WrongAnswer,
    check_calls,
    check_import,
    check_kernels,
    check_spans,
    check_summary,
    check_timeline,
    read_peer,
)
from benchmarks.bars import judge
from benchmarks.cases import Case, schedule
from benchmarks.processes import Measurement, ProcessFailed, Run, measure_process
from benchmarks.run import SUITES
from benchmarks.trace_files import Truth

ROOT = Path(__file__).resolve().parents[2]
ROWS = {"launches": 4, "calls": 4, "ops": 5, "frames": 6, "spans": 7}
TRUTH = Truth(
    launches=3,
    kernel_ns=60,
    events=26,
    rows=ROWS,
    tables={
        "kernels": {"gemm": {"count": 2, "total_ns": 50}, "silu": {"count": 1, "total_ns": 10}},
        "calls": {"cudaLaunchKernel": {"count": 3, "median_ns": 5.5, "mean_ns": 1e9 / 3, "stddev_ns": 0.0}},
        "spans": {"step": {"instances": 2, "launches": 3}},
        "devices": {"gpu:0": {"busy_ns": 60}},
    },
)


def run_small(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    usual = ["--size", "small", "--repetitions", "1", "--cache", f"{folder}/cache", "--results", f"{folder}/results"]
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.run", *usual, *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def kernels_output(total_ns: int, *rows: tuple[str, int, int]) -> bytes:
    found = [{"kernel": name, "count": count, "total_ns": ns} for name, count, ns in rows]
    return json.dumps({"total_ns": total_ns, "rows": found}).encode()


def calls_output(**other: float) -> bytes:
    right = {"api": "cudaLaunchKernel", "count": 3, "median_ns": 5.5, "mean_ns": 1e9 / 3, "stddev_ns": 0.0}
    return json.dumps({"rows": [right | other]}).encode()


def test_a_small_run_measures_every_case_and_a_wrong_answer_ends_the_next_one(tmp_path: Path) -> None:
    done = run_small(tmp_path)
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "results").glob("ingest-*.json")
    data = json.loads(path.read_text("utf-8"))
    cases = {case["name"]: case for case in data["cases"]}
    names = "kernels kernels-gz kernels-large import import-large summary findings report help"
    assert {*names.split()} <= cases.keys()
    for case in cases.values():
        (run,) = case["runs"]
        assert run["user_ns"] + run["system_ns"] > 0
        assert 0 < run["wall_ns"] == case["wall_ns"]["median"]
        assert run["peak_bytes"] > 1 << 20
        assert case["kernel_ns"] in (None, case["true_kernel_ns"])
    assert cases["kernels-large"]["kernel_ns"] > cases["kernels"]["kernel_ns"] > 0
    assert {bar["met"] for bar in data["bars"]} == {None}, "such files are too small for a verdict"
    page = (tmp_path / "results" / "ingest.md").read_text("utf-8")
    assert page in done.stdout
    assert str(tmp_path) not in page + path.read_text("utf-8"), "results name no path of this machine"

    path.unlink()
    (truth,) = (tmp_path / "cache").glob("eager-1.truth.json")
    said = json.loads(truth.read_text("utf-8"))
    said["call_sites"][0]["kernel_ns"] += 1
    truth.write_text(json.dumps(said), "utf-8")
    refused = run_small(tmp_path)
    assert refused.returncode == 1
    assert "refused: inferometer kernels eager-1.json --json: kernels: expected" in refused.stderr
    assert refused.stdout == ""
    assert not list((tmp_path / "results").glob("ingest-*.json"))


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel of Linux what it keeps in memory")
def test_a_file_that_is_to_come_from_disk_is_not_in_memory(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "file"
    file.parent.mkdir()
    file.write_bytes(bytes(1 << 20))
    trace_files.warm(tmp_path)
    assert trace_files.cached_share(file) == 1
    try:
        trace_files.chill(tmp_path)
    except RuntimeError:
        pytest.skip("temporary files are in memory here")
    assert trace_files.cached_share(file) == 0


def test_a_small_run_on_exports_checks_every_answer_and_every_peer_s(tmp_path: Path) -> None:
    done = run_small(tmp_path, "--suite", "nsys", "--peer-python", sys.executable)
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "results").glob("nsys-*.json")
    data = json.loads(path.read_text("utf-8"))
    cases = {case["name"]: case for case in data["cases"]}
    assert {"kernels", "summary", "calls", "timeline", "spans", "kernels-large", "import-large"} <= cases.keys()
    assert {name for name, case in cases.items() if case["peer"]} == {"columns", "two", "grouped", "aggregate", "text"}
    assert all(case["kernel_ns"] in (None, case["true_kernel_ns"]) for case in cases.values())
    assert None not in {bar["value"] for bar in data["bars"]}, "every bar finds its cases"
    assert data["versions"]["peers"].keys() == {"python", "sqlite", "numpy"}
    assert (tmp_path / "results" / "nsys.md").read_text("utf-8") in done.stdout


def test_right_answers_pass_the_gate() -> None:
    assert check_kernels(kernels_output(60, ("gemm", 2, 50), ("silu", 1, 10)), TRUTH).kernel_ns == 60
    assert check_import(json.dumps({"rows": ROWS | {"steps": 9}}).encode(), TRUTH).agreed == "26 rows"
    check_summary(b"Rows  4 launches, 4 calls, 5 ops, 6 frames, 7 spans\n", TRUTH)
    check_calls(calls_output(), TRUTH)
    check_calls(calls_output(mean_ns=333_333_333.3, stddev_ns=0), TRUTH)
    check_spans(json.dumps({"rows": [{"span": "step", "instances": 2, "launches": 3}]}).encode(), TRUTH)
    check_timeline(json.dumps({"devices": [{"device": "gpu:0", "busy_ns": 60}]}).encode(), TRUTH)


@pytest.mark.parametrize(
    "output",
    [
        kernels_output(60, ("gemm", 2, 51), ("silu", 1, 9)),
        kernels_output(60, ("gemm", 2, 50)),
        kernels_output(60, ("gemm", 2, 50), ("silu", 1, 10), ("relu", 1, 0)),
        kernels_output(60, ("gemm", 3, 50), ("silu", 1, 10)),
        kernels_output(61, ("gemm", 2, 50), ("silu", 1, 10)),
        kernels_output(60, ("gemm", 2, 50), ("silu", 1, 10), ("silu", 1, 10)),
        b"Traceback (most recent call last):",
        b"[]",
    ],
    ids=[
        "a ns moved",
        "a kernel missing",
        "a kernel too many",
        "a launch too many",
        "sum off",
        "a kernel twice",
        "no JSON",
        "a list",
    ],
)
def test_the_gate_refuses_wrong_kernels(output: bytes) -> None:
    with pytest.raises(WrongAnswer):
        check_kernels(output, TRUTH)


@pytest.mark.parametrize(
    "other", [{"count": 4}, {"median_ns": 5.500000001}, {"mean_ns": 333_333_332.0}, {"stddev_ns": 0.1}]
)
def test_the_gate_refuses_another_number(other: dict[str, float]) -> None:
    with pytest.raises(WrongAnswer, match="of cudaLaunchKernel"):
        check_calls(calls_output(**other), TRUTH)


def test_the_gate_refuses_a_range_or_a_device_that_is_not_there() -> None:
    with pytest.raises(WrongAnswer, match="of decode"):
        check_spans(json.dumps({"rows": [{"span": "decode", "instances": 2, "launches": 3}]}).encode(), TRUTH)
    with pytest.raises(WrongAnswer, match="rows of devices: expected 1, found 0"):
        check_timeline(b'{"devices": []}', TRUTH)


def test_the_gate_refuses_a_table_that_is_short_of_a_row() -> None:
    with pytest.raises(WrongAnswer, match="rows of frames: expected 6, found 5"):
        check_import(json.dumps({"rows": ROWS | {"frames": 5}}).encode(), TRUTH)
    with pytest.raises(WrongAnswer, match="5 ops, 6 frames"):
        check_summary(b"Rows  4 launches, 4 calls, 5 ops, 5 frames, 7 spans\n", TRUTH)


def test_a_peer_must_answer_but_need_not_be_exact() -> None:
    assert read_peer(b'reading...\n{"kernel_ns": 59}\n').kernel_ns == 59
    for output in (b"", b'{"kernel_ns": 0}', b'{"kernel_ns": null}', b"warning"):
        with pytest.raises(WrongAnswer):
            read_peer(output)


def test_a_command_that_fails_is_not_measured(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed, match=r"(?s)exit code 3.*no such trace"):
        measure_process(
            [sys.executable, "-c", "import sys; print('no such trace', file=sys.stderr); sys.exit(3)"], tmp_path
        )


def test_memory_and_cpu_are_the_child_s_own(tmp_path: Path) -> None:
    size = 200 << 20
    code = f"x = b'1' * {size}; sum(range(3_000_000)); print('done')"
    run, output = measure_process([sys.executable, "-c", code], tmp_path)
    assert output == b"done\n"
    assert run.peak_bytes > size
    assert run.user_ns > 0
    assert run.cpu_ns <= 1.5 * run.wall_ns, "one thread"


def test_repetitions_are_interleaved_and_spread() -> None:
    often, seldom = (make_case(name, number) for name, number in (("often", 4), ("seldom", 2)))
    turns = [(turn, case.name) for turn, case in schedule([often, seldom])]
    assert turns == [(0, "often"), (1, "seldom"), (1, "often"), (2, "often"), (3, "seldom"), (3, "often")]


def make_case(name: str, repetitions: int) -> Case:
    return Case(name, name, (), None, read_peer, repetitions)


def test_bars_take_the_median_time_and_the_greatest_peak() -> None:
    results = {
        "kernels": measured(wall_s=(1, 9, 1.2), peak_mib=(299, 301, 290)),
        "kernels-large": measured(wall_s=(4.8,), peak_mib=(600,)),
        "hta": measured(wall_s=(60,), peak_mib=(3000,)),
    }
    bars = SUITES["ingest"].bars
    sizes = {"kernels": 500, "kernels-large": 2000, "hta": 500}
    verdicts = {verdict.title: verdict for verdict in judge(bars, results, sizes, binding=True)}
    assert shown(verdicts["`kernels`: time over HTA's"]) == ("at most 1/50", "1/50", "met")
    assert shown(verdicts["`kernels`: peak memory"]) == ("at most 220 MiB", "301 MiB", "**not met**")
    assert shown(verdicts["`kernels`, large file: peak memory"]) == ("at most 600 MiB", "600 MiB", "met")
    assert verdicts["`kernels`: time ratio over size ratio, large file"].value == pytest.approx(1.0)
    assert shown(verdicts["`import`: time over HTA's"]) == ("at most 1/16", "–", "not measured")
    assert all(verdict.met is None for verdict in judge(bars, results, sizes, binding=False))


def measured(wall_s: tuple[float, ...], peak_mib: tuple[int, ...]) -> Measurement:
    runs = [Run(round(wall * 1e9), 1, 1, peak << 20) for wall, peak in zip(wall_s, peak_mib, strict=True)]
    return Measurement(tuple(runs))


def shown(verdict: Any) -> tuple[str | None, str, str]:
    return verdict.limit, verdict.shown, verdict.word
