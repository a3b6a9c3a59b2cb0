"""Statuses, errors and times: only what was measured, and what it is in words."""

from pathlib import Path
from typing import Any

import pytest
from tests.bench.exchange.samples import NORM, against, read_lines, result, run_of, timing

from inferometer.bench.exchange import write_exchange
from inferometer.bench.exchange.evaluations import FUNCTIONAL_ONLY, status_of
from inferometer.bench.results import Run, ShapeResult


def evaluation(run: Run, folder: Path, author: str = "torch") -> dict[str, Any]:
    """Of the only trace."""
    write_exchange(run, folder, force=False)
    (path,) = (folder / "traces" / author).glob("*/*.jsonl")
    (line,) = read_lines(path)
    found = line["evaluation"]
    assert isinstance(found, dict)
    return found


def test_latency_is_cold_and_speedup_is_that_of_calls_in_turns(tmp_path: Path) -> None:
    mine = result(candidate="mine.py", timings=(timing("cold", 8_000), timing("warm", 1)), versus=against("torch", 2.4))
    found = evaluation(run_of(result(), mine), tmp_path, "mine")
    assert found["performance"] == {"latency_ms": 0.008, "reference_latency_ms": 0.02, "speedup_factor": 2.4}
    assert "caches cold, timer cupti" in found["log"]
    assert "reference_latency_ms: torch; speedup_factor 2.16 to 2.64" in found["log"]
    assert found["environment"] == {"hardware": "NVIDIA H200", "libs": {"torch": "2.13.0", "inferometer": "1.0"}}
    assert found["timestamp"] == "2026-11-22T10:00:00+00:00"


def test_the_base_is_as_fast_as_itself(tmp_path: Path) -> None:
    found = evaluation(run_of(result(), result(candidate="mine.py", versus=against("torch"))), tmp_path)
    assert found["performance"] == {"latency_ms": 0.02, "reference_latency_ms": 0.02, "speedup_factor": 1.0}


def test_a_candidate_alone_has_no_speedup_and_warm_is_said(tmp_path: Path) -> None:
    found = evaluation(run_of(result(timings=(timing("warm", 5_000),))), tmp_path)
    assert found["performance"] == {"latency_ms": 0.005, "reference_latency_ms": 0.0, "speedup_factor": 0.0}
    assert "caches warm" in found["log"]
    assert "not measured" in found["log"]


def test_errors_are_shares_of_the_answer_and_what_was_not_measured_is_nan(tmp_path: Path) -> None:
    found = evaluation(run_of(result(error=0.25)), tmp_path)["correctness"]
    assert found["max_relative_error"] == 0.25 * 1e-2  # bf16 is allowed 1 %
    assert found["max_absolute_error"] == "NaN"
    assert found["extra"]["max_absolute_error"] == "not measured"
    assert (found["extra"]["error_of_allowed"], found["extra"]["cases"]) == (0.25, 3)


def test_outputs_of_several_tolerances_have_no_one_relative_error(tmp_path: Path) -> None:
    args = {"token_count": 3, "hidden_size": 128, "group_size": 64}
    found = evaluation(run_of(result("per_token_group_quant_fp8", args)), tmp_path)["correctness"]
    assert found["max_relative_error"] == "NaN"  # fp8 values and fp32 scales
    assert found["extra"]["error_of_allowed"] == 0.25


def test_outputs_that_are_right_to_the_bit_have_no_error(tmp_path: Path) -> None:
    args = {"shape": [5, 2, 8], "block_size": 4}
    found = evaluation(run_of(result("reshape_and_cache", args, error=None, row_error=None)), tmp_path)["correctness"]
    assert (found["max_relative_error"], found["max_absolute_error"]) == (0.0, 0.0)


def test_times_of_a_cpu_say_so_in_the_hardware(tmp_path: Path) -> None:
    found = evaluation(run_of(result(), functional_only=True, device="a CPU"), tmp_path)
    assert found["environment"]["hardware"] == f"a CPU ({FUNCTIONAL_ONLY})"


@pytest.mark.parametrize(
    ("failure", "status", "parts"),
    [
        ("out: the error is 0.5 of the answer, expected at most 0.01", "INCORRECT_NUMERICAL", {"correctness"}),
        ("ZeroDivisionError: division by zero (line 3)", "RUNTIME_ERROR", set()),
    ],
)
def test_a_failure_has_its_reason_and_no_times(failure: str, status: str, parts: set[str], tmp_path: Path) -> None:
    wrong: ShapeResult = result(failure=failure, error=50.0)
    found = evaluation(run_of(wrong), tmp_path)
    assert (found["status"], found["log"]) == (status, failure)
    assert set(found) & {"correctness", "performance"} == parts


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        ("took longer than 20 s", "TIMEOUT"),
        ("expected a function rms_norm or a class Model in it, found neither", "COMPILE_ERROR"),
        ("SyntaxError: invalid syntax (line 1)", "COMPILE_ERROR"),
        ("out: expected dtype bfloat16, found float32", "INCORRECT_DTYPE"),
        ("out: expected shape (5, 64), found (5, 63)", "INCORRECT_SHAPE"),
        ("out: expected 2 outputs (out, residual), found 1", "INCORRECT_SHAPE"),
        ("out: row 1,234 is 0.9 off, expected at most 0.08", "INCORRECT_NUMERICAL"),
        ("out: number 3 of row 1,234 is 0.9 off, expected at most 0.16", "INCORRECT_NUMERICAL"),
        ("out: 0 in row 2, the reference has NaN (3 such numbers at least)", "INCORRECT_NUMERICAL"),
        ("ids: 3 of 1,024 values differ, and must be exact", "INCORRECT_NUMERICAL"),
        ("q: a value is 2 units of the last place off, expected at most 1", "INCORRECT_NUMERICAL"),
        ("q: 3.00% of the values are rounded the other way, expected at most 1.00%", "INCORRECT_NUMERICAL"),
        ("x: this input was changed, and is none that production updates in place", "RUNTIME_ERROR"),
        ("out: expected a dense tensor, found strides (1, 5)", "RUNTIME_ERROR"),
        ("its process ended with -9", "RUNTIME_ERROR"),
    ],
)
def test_reasons_map_to_statuses(failure: str, status: str) -> None:
    assert status_of(failure) == status


def test_a_candidate_of_one_operator_is_no_solution_for_another(tmp_path: Path) -> None:
    run = run_of(
        result(candidate="mine.py"), result("l2_norm", {"num_tokens": 2, "hidden_size": 8}, candidate="mine.py")
    )
    text = "import triton\n\n\ndef rms_norm(x, weight, *, eps):\n    return x\n"
    write_exchange(run, tmp_path, force=False, sources={"mine.py": text})
    (path,) = (tmp_path / "solutions").glob("*/*/*/*")
    assert path.relative_to(tmp_path).as_posix() == "solutions/mine/rmsnorm/rms_norm_H64/mine_rms_norm_H64.json"
    assert NORM["hidden_size"] == 64
