"""Bounds at the clocks that a recording sampled, by hand; samples of a real recording by loops."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.traces import trace_of

import inferometer
from inferometer import Trace
from inferometer.analyses.launched_by.attribution import attribute
from inferometer.analyses.roofline.sampled_clocks import with_clocks
from inferometer.analyses.roofline.table import Roofline, roofline
from inferometer.hardware.known import require_device
from inferometer.hardware.peak_clocks import peak_clock
from inferometer.reports.views.view import remarks_of, sections_of

SAMPLES = Path(__file__).parents[3] / "samples" / "h200"
MS = 1_000_000
H200 = require_device("H200 SXM")
MATRIX = {"op": "aten::mm", "input_dims": "[[4096,4096],[4096,4096]]"}
MEMORY = {"op": "aten::mm", "input_dims": "[[8,4096],[4096,4096]]"}


def made(samples: list[tuple[int, str, float]], ops: tuple[dict[str, Any], ...] = (MATRIX, MEMORY)) -> Trace:
    """A launch of each op every 100 ms; samples as (when in ms, metric, MHz)."""
    here = {"process": 1, "rank": 0}
    times = [100 * MS * (n + 1) for n in range(len(ops))]
    types = '["c10::BFloat16","c10::BFloat16"]'
    return trace_of(
        [{"kernel": "gemm", "start_ns": at + 20, "dur_ns": 500_000, "device": "gpu:0", "stream": 7,
          "correlation_id": at} | here for at in times],
        calls=[{"api": "cudaLaunchKernel", "start_ns": at + 5, "dur_ns": 1, "correlation_id": at, "thread": 1} | here
               for at in times],
        ops=[{**op, "input_dtypes": types, "start_ns": at, "dur_ns": 10, "thread": 1} | here
             for op, at in zip(ops, times, strict=True)],
        counters=[{"metric": metric, "device": "gpu:0", "time_ns": at * MS, "value": value, "unit": "MHz"}
                  for at, metric, value in samples],
    )  # fmt: skip


def found_in(trace: Trace) -> Roofline:
    return roofline(attribute(trace, with_op_calls=True), trace, device=H200)


def row_of(found: Roofline, op: dict[str, Any]) -> dict[str, Any]:
    return found.frame.filter(pl.col("input_dims") == op["input_dims"]).row(0, named=True)


def test_matrix_units_slow_down_with_their_clock_and_memory_does_not() -> None:
    found = found_in(made([(90, "gpu_sm_frequency", 1_000.0), (210, "gpu_sm_frequency", 1_000.0)]))

    matrix, memory = row_of(found, MATRIX), row_of(found, MEMORY)
    holds_at = peak_clock(H200, "bf16")
    assert holds_at == pytest.approx(1_830e6, rel=0.001)
    assert (matrix["binding"], memory["binding"]) == ("matrix", "memory")
    assert matrix["bound_ns"] == pytest.approx(2 * 4096**3 / 989.5e12 * 1e9)
    assert matrix["sampled_clock_bound_ns"] == pytest.approx(matrix["bound_ns"] * holds_at / 1e9)
    assert memory["sampled_clock_bound_ns"] == memory["bound_ns"]
    assert "Bound at Clock" in [field.title for field in sections_of(found)[0].fields]
    [remark] = [each for each in remarks_of(found) if "sampled nearby" in each]
    assert remark.startswith("Where the clock of the multiprocessors was sampled nearby (1,000 MHz), bounds are ")


def test_a_slow_clock_makes_products_the_limit_that_memory_was() -> None:
    middle = {"op": "aten::mm", "input_dims": "[[160,4096],[4096,4096]]"}
    found = found_in(made([(100, "gpu_sm_frequency", 500.0)], (middle,)))

    row = row_of(found, middle)
    assert row["binding"] == "memory"
    assert row["sampled_clock_bound_ns"] == pytest.approx(2 * 160 * 4096**2 / 989.5e12 * 1e9 * 1.83e9 / 5e8, rel=0.001)
    assert row["sampled_clock_bound_ns"] > row["bound_ns"]


def test_memory_slows_down_from_the_highest_clock_of_the_recording() -> None:
    samples = [(at, "gpu_sm_frequency", 1_980.0) for at in (100, 900)]
    slow = [(100, "gpu_mem_frequency", 3_201.0), (900, "gpu_mem_frequency", 1_600.5)]
    found = found_in(made([*samples, *slow], (MATRIX, *[MEMORY] * 8)))

    row = row_of(
        found, MEMORY
    )  # from 200 to 900 ms: three nearer to the fast sample, one as near, four to the slow one
    share = 1 / row["sampled_memory_clock_hz"] * 3_201e6
    assert share in (pytest.approx((3 + 2 * 5) / 8), pytest.approx((4 + 2 * 4) / 8))
    assert row["sampled_clock_bound_ns"] == pytest.approx(row["bound_ns"] * share)


@pytest.mark.parametrize("samples", [[], [(5_000, "gpu_sm_frequency", 1_000.0)], [(100, "gpu_sm_frequency", 0.0)]])
def test_without_a_sample_nearby_there_is_no_bound_at_it(samples: list[tuple[int, str, float]]) -> None:
    found = found_in(made(samples))

    assert found.frame["sampled_clock_bound_ns"].null_count() == found.frame.height
    assert not any("sampled" in each for each in remarks_of(found))
    assert "Bound at Clock" not in [field.title for field in sections_of(found)[0].fields]


def test_launches_of_a_real_recording_take_the_nearest_sample() -> None:
    with inferometer.open(SAMPLES / "gpu_contention.ifm") as trace:
        launches = trace.launches.filter(pl.col("start_ns") % 97 == 0).collect()
        samples = trace.counters.filter(pl.col("metric") == "gpu_sm_frequency").select("time_ns", "value").collect()
        found = with_clocks(launches, trace)

    assert found.height == launches.height > 1_000
    slowest = 0.0
    for start, hz in found.select("start_ns", "sm_hz").iter_rows():
        distance, _ = min((abs(time - start), time) for time, _ in samples.iter_rows())
        near = {value * 1e6 for time, value in samples.iter_rows() if abs(time - start) == distance}
        assert hz in near
        slowest = max(slowest, 1_980e6 - hz)
    assert slowest >= 100e6  # its power cap slowed it down


def test_a_recording_at_the_highest_clock_has_the_same_bound_where_memory_binds() -> None:
    with inferometer.open(SAMPLES / "normal.ifm") as trace:
        found = roofline(attribute(trace, with_op_calls=True), trace)

    rows = found.frame.filter(pl.col("sampled_clock_bound_ns").is_not_null())
    assert rows.height > 10
    assert rows["sampled_clock_hz"].unique().to_list() == [pytest.approx(1_980e6)]
    assert (rows["sampled_clock_bound_ns"] / rows["bound_ns"]).to_list() == pytest.approx([1.0] * rows.height)
