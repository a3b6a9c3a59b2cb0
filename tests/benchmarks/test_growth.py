"""Exponents are those of the costs, the start doesn't hide growth, and every command of the registry has a case."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.answers import Answer
from benchmarks.cases import Case, Point
from benchmarks.growth import Growth, find_growths, find_ratios, fit_exponent, growth_lines, ratio_lines
from benchmarks.kineto_truth import main as kineto_truth
from benchmarks.log_truth import main as log_truth
from benchmarks.processes import Measurement, Run
from benchmarks.run import SUITES, main
from benchmarks.scaling import _check_coverage, _registered

ROOT = Path(__file__).resolve().parents[2]
SIZES = (16, 64, 256)
COST = 1_000_000


def test_a_power_is_found_and_its_error_is_that_of_the_scatter() -> None:
    exact = fit_exponent([(size, 7.0 * size**1.25) for size in SIZES])
    assert exact is not None
    assert exact.value == pytest.approx(1.25)
    assert exact.error == pytest.approx(0, abs=1e-9)

    fit = fit_exponent([(1, 1.0), (math.e, math.e**1.5), (math.e**2, math.e**1.5)])  # on logarithms: 0, 1.5, 1.5
    assert fit is not None
    assert fit.value == pytest.approx(0.75)
    assert fit.error == pytest.approx(math.sqrt(0.375 / 1 / 2)), "the rest's squares over n - 2, over the spread of x"


@pytest.mark.parametrize(
    "points", [[(1, 2.0), (2, 4.0)], [(1, 2.0), (1, 2.1), (1, 2.2)], [(1, 0.0), (2, 1.0), (3, 2.0)]]
)
def test_too_few_sizes_and_costs_of_nothing_have_no_exponent(points: list[tuple[int, float]]) -> None:
    assert fit_exponent(points) is None


def test_a_start_hides_growth_only_until_it_is_taken_off() -> None:
    (growth,) = measured(lambda size: 5 * COST + COST * (size / 256) ** 1.5 * 10)
    assert exponent(growth, "whole") < 1
    assert exponent(growth, "above_start") == pytest.approx(1.5, abs=1e-3)
    assert growth.faster_than_linear == ["time"]
    assert "**time**" in "\n".join(growth_lines([growth]))


def test_what_hardly_grows_has_no_exponent_above_its_start() -> None:
    (growth,) = measured(lambda size: 5 * COST + size)
    assert growth.above_start["time"] is None
    assert growth.faster_than_linear == []


def test_a_linear_cost_is_not_flagged() -> None:
    (growth,) = measured(lambda size: COST + COST * size)
    assert exponent(growth, "above_start") == pytest.approx(1, abs=1e-3)
    assert growth.faster_than_linear == []


def test_an_exponent_that_noise_could_have_made_says_so() -> None:
    runs = {16: (10, 30), 64: (90, 200), 256: (300, 2_000)}
    (growth,) = growths_of({size: [cost * COST for cost in costs] for size, costs in runs.items()})
    assert growth.faster_than_linear == ["time, within its error"]


def test_a_ratio_spans_from_the_quickest_over_our_slowest_to_the_slowest_over_our_quickest() -> None:
    cases = [case("ours", "kernels", 64), case("theirs", "HTA", 64, peer=True), case("large", "kernels", 256)]
    results = {"ours": runs_of([2, 4, 3]), "theirs": runs_of([30, 36, 60], peak=300), "large": runs_of([9])}
    (ratio,) = find_ratios(cases, results, ("kernels",))
    assert (ratio.time, ratio.time_range) == (12, (30 / 4, 60 / 2))
    assert ratio.memory == 3
    assert "| 12.0 × (7.5 to 30.0) | 3.0 × |" in "\n".join(ratio_lines([ratio]))
    assert find_ratios(cases, results, ("summary",)) == []


def test_a_command_without_a_case_and_a_case_without_a_command_stop_the_run() -> None:
    known = _registered()
    _check_coverage(known)
    with pytest.raises(LookupError, match="no case for the command dance"):
        _check_coverage(known | {"dance"})
    with pytest.raises(LookupError, match="no such command: steps"):
        _check_coverage(known - {"steps"})


def test_a_small_run_measures_the_chosen_commands(tmp_path: Path) -> None:
    usual = ["--suite", "scaling", "--size", "small", "--repetitions", "1"]
    folders = ["--cache", f"{tmp_path}/cache", "--results", f"{tmp_path}/results"]
    argv = [sys.executable, "-m", "benchmarks.run", *usual, *folders, "--only", "decode", "capture"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "results").glob("scaling-*.json")
    data = json.loads(path.read_text("utf-8"))
    assert {(one["kind"], one["what"]) for one in data["growth"]} == {
        ("list", "names decode"),
        ("graph", "launches --capture"),
    }
    assert all(one["whole"]["time"] and len(one["bytes"]) == len(SIZES) for one in data["growth"])
    page = (tmp_path / "results" / "scaling.md").read_text("utf-8")
    assert "## Growth" in page
    assert "## Bars" not in page
    assert str(tmp_path) not in page + path.read_text("utf-8")


def test_no_case_of_that_name_is_a_mistake_in_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["--size", "small", "--cache", str(tmp_path), "--results", str(tmp_path), "--only", "dance"])
    assert code == 2
    assert "no case has a part named dance" in capsys.readouterr().err


def test_every_suite_has_a_page_of_its_own() -> None:
    assert SUITES.keys() == {"ingest", "nsys", "scaling"}


def test_launches_join_their_calls_and_ranges_in_a_kineto_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host = {"ph": "X", "pid": 9, "tid": 9}
    device = {"ph": "X", "pid": 0, "tid": 7}
    events = [
        {**host, "cat": "user_annotation", "name": "step", "ts": 1612377604156.001, "dur": 50.5},
        {**host, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1612377604160.0, "dur": 5.25,
         "args": {"correlation": 3}},
        {**device, "cat": "kernel", "name": "gemm", "ts": 1612377604170.0, "dur": 20.0, "args": {"correlation": 3}},
        {**device, "cat": "gpu_memset", "name": "Memset", "ts": 1612377604180.0, "dur": 20.001,
         "args": {"correlation": 4}},
        {**host, "cat": "cuda_runtime", "name": "cudaGraphLaunch", "ts": 1612377604165.0, "dur": 2.0,
         "args": {"correlation": 5}},
        {**device, "cat": "kernel", "name": "gemm", "ts": 1612377604210.0, "dur": 7.0, "args": {"correlation": 5}},
        {**device, "cat": "kernel", "name": "silu", "ts": 1612377604220.0, "dur": 1.5, "args": {"correlation": 5}},
        {"ph": "M", "name": "process_name", "pid": 9},
    ]  # fmt: skip
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}), "utf-8")
    kineto_truth(str(path), "kernels", "calls", "spans", "devices", "replays")
    said = json.loads(capsys.readouterr().out)
    assert (said["launches"], said["kernel_ns"]) == (3, 28_500)
    assert said["tables"]["calls"]["cudaLaunchKernel"]["total_ns"] == 5_250
    assert said["tables"]["spans"]["step"] == {
        "instances": 1, "host_total_ns": 50_500, "launches": 3, "summed_ns": 28_500, "own_launches": 3,
        "own_summed_ns": 28_500,
    }  # fmt: skip
    assert said["tables"]["devices"]["gpu:0"]["busy_ns"] == 30_001 + 8_500
    assert said["tables"]["replays"] == {"cudaGraphLaunch": {"launches": 2, "summed_ns": 8_500}}


def test_a_log_s_times_are_added_up_without_its_totals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.log"
    lines = ["Kernel    Time (ms)    %", "gemm  2.268  98.0", "rope  0.044  2.0", "TOTAL  2.312  100.0"]
    titles = ("[browser:log] [1.1ms][Profile] Prefill (prefill):", "[browser:log] [9.5ms][Profile] Batch decode (N=4):")
    path.write_text("".join(f"{line}\n" for title in titles for line in (title, *lines)), "utf-8")
    log_truth(str(path))
    said = json.loads(capsys.readouterr().out)
    assert said["kernel_ns"] == 2 * 2_312_000
    assert said["rows"] == {"totals": 4, "steps": 2}
    assert said["tables"]["steps"] == {"prefill": {"steps": 1}, "decode": {"steps": 1}}


def measured(cost: object) -> list[Growth]:
    assert callable(cost)
    return growths_of({size: [round(cost(size))] for size in SIZES}, start=round(cost(0)))


def growths_of(costs: dict[int, list[int]], start: int | None = None) -> list[Growth]:
    cases = [case(f"{size}", "kernels", size) for size in costs]
    results = {f"{size}": Measurement(tuple(Run(ns, ns, 0, 100) for ns in some)) for size, some in costs.items()}
    if start is not None:
        cases.append(case("start", "kernels", 1, start=True))
        results["start"] = Measurement((Run(start, start, 0, 100),))
    return find_growths(cases, results)


def runs_of(wall: list[int], peak: int = 100) -> Measurement:
    return Measurement(tuple(Run(ns * COST, 1, 0, peak) for ns in wall))


def case(name: str, what: str, size: int, *, start: bool = False, peer: bool = False) -> Case:
    return Case(name, name, (), None, _no_check, 1, peer=peer, point=Point(what, "eager", size, start))


def _no_check(output: bytes) -> Answer:  # never called: nothing runs here
    raise AssertionError(output)


def exponent(growth: Growth, which: str) -> float:
    fit = getattr(growth, which)["time"]
    assert fit is not None
    value: float = fit.value
    return value
