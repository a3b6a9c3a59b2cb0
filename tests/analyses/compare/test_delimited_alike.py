"""Cycles that one function delimits in both runs are one amount of work, so more calls in them are a change."""

import json
import math
import zlib
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.analyses.compare.run_traces import LAYER, kernel_run, timed_run
from tests.commands.test_command_line import run
from tests.traces import trace_of

from inferometer import Trace
from inferometer.analyses.compare.check import check_steps
from inferometer.analyses.compare.comparison import compare

LAYERS = 8
OF_LAYER = ("gemm_kernel", "norm_kernel", "rope_kernel")
OUTSIDE = ("argmax_kernel", "softmax_kernel", "sample_kernel", "copy_kernel", "cast_kernel")


def steps(*, layers: int = LAYERS, times: int = 1, cycle_ns: int = 4_000_000, seed: int = 0) -> Trace:
    """Engine steps: a few kernels in each layer, more of other names outside of them."""
    functions = dict.fromkeys(OF_LAYER, ("gpu:0", times * layers, 10000))
    functions |= dict.fromkeys(OUTSIDE, ("gpu:0", times, 5000))
    return timed_run(functions, cycle_ns=cycle_ns, seed=seed)


def layers_of(count: int, ends: tuple[int, ...]) -> Trace:
    """Decoder layers as cycles, of which `ends` are the last of their step."""
    rows: list[dict[str, Any]] = []
    starts = []
    for cycle in range(1, count + 1):
        of = {"cycle": cycle, "process": 1, "anchor": "layer", "cycle_dur_ns": 1_000_000 + cycle % 7 * 1_000}
        names = (*OF_LAYER, *(OUTSIDE if cycle in ends else ()))
        rows += [{"function": name, "device": "gpu:0", "calls": 1, "dur_ns": 10_000, **of} for name in names]
        times = {"start_ns": cycle * 1_010_000, "dur_ns": 1_000_000}
        starts.append({"step": cycle, "process": 1, "source": "recorded", **times})
    return trace_of(function_times=rows, steps=starts)


@pytest.mark.parametrize("with_host", [False, True])
def test_a_step_that_does_its_work_twice_is_slower_and_fails_the_check(*, with_host: bool) -> None:
    found = compare(steps(), steps(times=2, cycle_ns=4_400_000 if with_host else 8_000_000, seed=1))
    assert (found.verdict, found.comparable.repair) == ("software change", None)
    assert found.comparable.step_ratio == pytest.approx(1.1 if with_host else 2, rel=0.02)
    assert "The step is slower" in found.judged.why
    assert "Every function is called 2.00 times as often per step." in found.judged.why
    assert check_steps(found, 0.0).failed


def test_more_layers_are_named_though_most_names_are_outside_of_them() -> None:
    found = compare(steps(), steps(layers=12, cycle_ns=6_000_000, seed=1))
    assert found.verdict == "software change"
    assert found.judged.why.endswith(
        "3 of 8 functions are called 1.50 times as often per step: 12 in place of 8 times, or multiples of that, "
        "as with more layers."
    )
    assert check_steps(found, 0.0).failed


def test_what_only_the_end_of_a_step_calls_gives_windows_of_layers_no_ratio() -> None:
    """Five kernels called once in 20 and once in 60 layers are most of the names, and tell of no other unit."""
    short, long = layers_of(20, (10,)), layers_of(60, (30,))
    for found in (compare(short, long), compare(long, short)):
        assert (found.verdict, found.comparable.repair) == ("no difference", None)
        assert found.changes.amounts.ratio == pytest.approx(1)


def test_what_is_called_as_often_is_counted() -> None:
    base = steps()
    other = timed_run(dict.fromkeys(OF_LAYER, ("gpu:0", LAYERS, 10000)) | {"argmax_kernel": ("gpu:0", 1, 5_000)})
    assert compare(base, base).comparable.why == "Same functions, called as often in a step."
    assert compare(base, other).comparable.why == "4 of 4 functions of both runs are called as often in a step."


def test_one_step_that_may_be_cut_is_no_change_of_software() -> None:
    whole, cut = steps(), steps(layers=5, times=1)
    first = pl.col("cycle") == 1
    known = (pl.col("function") != "argmax_kernel") & first
    tables = {name: cut.tables[name] for name in cut.tables}
    tables["function_times"] = tables["function_times"].filter(known)
    only = Trace(cut.facts, tables, cut.losses)
    for found in (compare(whole, only), compare(only, whole)):
        assert found.verdict == "too few samples"
        assert not check_steps(found, 0.0).failed


def test_times_that_were_divided_are_said_to_be() -> None:
    """Without marks nobody knows whether twice the calls are another unit of work."""
    base, candidate = (kernel_run(steps=count, marked=False, noise=0.0) for count in (10, 20))
    found = compare(base, candidate)
    repair = found.changes.repair
    assert repair is not None
    assert repair.kind == "normalised"
    assert f"Times of the candidate are divided by {repair.ratio:.3g}: it calls most functions" in found.judged.why


def test_marked_steps_of_other_programs_are_not_comparable() -> None:
    """A profiler's mark says nothing of what a step has to do."""
    names = [f"kernel_{number}" for number in range(12)]
    base = kernel_run([], [(name, 1_000) for name in names for _ in range(3)])
    candidate = kernel_run(
        [], [(name, 1_000) for place, name in enumerate(names) for _ in range(1 + zlib.crc32(name.encode()) % 9)]
    )
    found = compare(base, candidate)
    assert found.verdict == "not comparable"
    assert "in no common ratio" in found.judged.why


def test_a_kernel_of_most_of_the_time_may_be_replaced_in_marked_steps() -> None:
    base = kernel_run([*LAYER, ("ncclDevKernel_AllReduce_Sum_f16_RING_LL", 200_000)])
    candidate = kernel_run([*LAYER, ("void rms_norm_kernel<float>(float*)", 400_000)], seed=1)
    found = compare(base, candidate)
    assert (found.verdict, found.comparable.ok) == ("software change", True)
    assert check_steps(found, 0.0).failed


@pytest.mark.parametrize(("times", "fails"), [(1, False), (2, True)])
def test_counted_work_fails_the_check_however_much_steps_vary(times: int, *, fails: bool) -> None:
    base = steps(cycle_ns=4_000_000)
    candidate = timed_run(
        dict.fromkeys(OF_LAYER, ("gpu:0", times * LAYERS, 10000)) | dict.fromkeys(OUTSIDE, ("gpu:0", times, 5000)),
        cycle_ns=5_000_000,
        noise=0.45,
        seed=4,
    )
    found = compare(base, candidate)
    low, high = found.comparable.step_ratio_interval or (math.nan, math.nan)
    assert low < 1 < 1.05 < (found.comparable.step_ratio or 0) < high
    assert found.judged.why.startswith("Whether the step is longer can't be told from noise: ")
    assert (found.verdict, check_steps(found, 0.0).failed) == ("software change" if fails else "too few samples", fails)


def test_a_published_run_that_does_its_work_twice_fails_the_check(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    normal = shared_data / "latencyprism" / "SGLang" / "cpu_frequency_reduction" / "normal"
    rows = pl.read_csv(normal / "perf_data.csv", infer_schema_length=0)
    twice = [(pl.col(name).cast(pl.Float64) * 2).alias(name) for name in ("duration", "anchor_dur_us")]
    calls = (pl.col("instances_count").cast(pl.Int64) * 2).alias("instances_count")
    rows.with_columns(*twice, calls).write_csv(tmp_path / "perf_data.csv")
    code, out, _ = run("compare", normal, tmp_path, "--check", "--json", capsys=capsys)
    assert (code, json.loads(out)["verdict"]) == (1, "software change")
    assert json.loads(out)["comparable"]["step_ratio"] == pytest.approx(2)
