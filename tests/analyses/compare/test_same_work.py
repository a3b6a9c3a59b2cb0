from typing import Any

import polars as pl
import pytest
from tests.analyses.compare.run_traces import adds_up, changes, kernel_run, kinds, line, some, timed_run
from tests.traces import trace_of

from inferometer.analyses.compare.activity.sources import activity

LAYERS = 8


def layer_run(*, steps=4, layer_ns=1_000_000, skip=(), marks=True, first=0, gap_ns=0, process=1):
    """The same steps as `step_run` makes, recorded a layer a cycle; recording begins at cycle `first` of a step."""
    rows: list[dict[str, Any]] = []
    starts: list[dict[str, Any]] = []
    now = 0
    for number in range(first, steps * LAYERS):
        cycle = number - first + 1
        of = {"cycle": cycle, "process": process, "anchor": "layer", "cycle_dur_ns": layer_ns}
        if number not in skip:
            rows.append({"function": "gemm_kernel", "device": "gpu:0", "calls": 2, "dur_ns": 20_000, **of})
            rows.append({"function": "norm_kernel", "device": "gpu:0", "calls": 1, "dur_ns": 3_000, **of})
            rows.append({"function": "oncpu", "device": "host", "calls": 10, "dur_ns": layer_ns, **of})
            if marks and number % LAYERS == LAYERS - 1:
                mark = {"device": "gpu:0", "calls": 1, "dur_ns": 5_000, **of}
                rows += [{"function": name, **mark} for name in ("argmax_kernel", "sample_kernel")]
        starts.append({"step": cycle, "process": process, "start_ns": now, "dur_ns": layer_ns, "source": "recorded"})
        now += layer_ns + gap_ns
    return trace_of(function_times=rows, steps=starts)


def step_run(*, cycles=12, step_ns=4_000_000, seed=0):
    functions = {
        "gemm_kernel": ("gpu:0", 2 * LAYERS, 10_000),
        "norm_kernel": ("gpu:0", LAYERS, 3_000),
        "oncpu": ("host", 10 * LAYERS, 50_000),
        "argmax_kernel": ("gpu:0", 1, 5_000),
        "sample_kernel": ("gpu:0", 1, 5_000),
    }
    return timed_run(functions, cycles=cycles, cycle_ns=step_ns, seed=seed)


def test_layers_become_steps_between_the_kernels_called_once_a_step():
    found = changes(step_run(), layer_run())
    repair = some(found.repair)
    assert (repair.kind, repair.side, repair.whole_steps, repair.cycles_per_step) == ("merged", "candidate", 3, LAYERS)
    assert repair.marks == ("argmax_kernel", "sample_kernel")
    assert repair.step_times_ns == (8_000_000,) * 3
    assert found.amounts.ratio == pytest.approx(1 / LAYERS)
    assert (found.amounts.shared, found.amounts.sharing, found.amounts.is_same_unit) == (4, 4, False)
    assert found.step_ratio == pytest.approx(2, rel=0.02)
    low, high = some(found.step_ratio_interval)
    assert low < 2 < high
    assert {one.kind for one in found.contributions if one.cls == "compute"} == {"same"}
    assert adds_up(found)


def test_the_base_may_be_the_one_cut_into_layers():
    found = changes(layer_run(), step_run())
    assert (some(found.repair).kind, some(found.repair).side) == ("merged", "base")
    assert found.step_ratio == pytest.approx(0.5, rel=0.02)


def test_a_recording_that_begins_amid_a_step_gives_whole_steps_only():
    assert some(changes(step_run(), layer_run(first=5)).repair).whole_steps == 3
    assert some(changes(step_run(), layer_run(first=5, steps=3)).repair).whole_steps == 2


def test_a_step_with_a_missing_layer_is_no_whole_step():
    assert some(changes(step_run(), layer_run(skip={11})).repair).whole_steps == 2


def test_steps_last_from_start_to_start():
    assert some(changes(step_run(), layer_run(gap_ns=1_000)).repair).step_times_ns == (8_008_000,) * 3


def test_without_marks_times_are_divided_by_the_ratio_of_calls():
    found = changes(step_run(), layer_run(marks=False))
    repair = some(found.repair)
    assert (repair.kind, repair.whole_steps) == ("normalised", 0)
    assert repair.why.startswith("No step boundary was found: no function is called once")
    assert found.step_ratio == pytest.approx(2, rel=0.02)
    assert line(found, "gemm_kernel").kind == "same"
    assert adds_up(found)
    back = changes(layer_run(marks=False), step_run())
    assert back.step_ratio == pytest.approx(0.5, rel=0.02)
    assert back.base_step_ns == 1_000_000  # of the base's own cycles


def test_partial_cycles_are_dropped_and_said():
    base = step_run()
    cut = base.function_times.collect().filter((pl.col("cycle") > 1) | (pl.col("function") == "norm_kernel"))
    found = changes(base, trace_of(function_times=cut.to_dicts()))
    assert (found.base_steps, found.candidate_steps) == (12, 11)
    assert found.notes == ("Candidate: 1 of 12 cycles are partial and left out.",)
    assert found.amounts.ratio == 1


def test_windows_of_different_numbers_of_steps_are_normalised():
    found = changes(kernel_run(steps=20, marked=False), kernel_run(steps=25, marked=False, seed=1))
    repair = some(found.repair)
    assert (repair.kind, repair.ratio) == ("normalised", 1.25)
    assert found.step_ratio == pytest.approx(1, rel=0.01)
    assert kinds(found) == {}
    assert adds_up(found)


def test_a_window_against_steps_is_normalised_to_a_step():
    found = changes(kernel_run(steps=20), kernel_run(steps=20, marked=False, seed=1))
    assert some(found.repair).ratio == 20
    assert found.step_ratio == pytest.approx(1, rel=0.01)
    assert kinds(found) == {}


def test_cycles_of_the_same_work_need_no_repair():
    found = changes(step_run(), step_run(seed=1))
    assert (found.repair, found.amounts.ratio) == (None, 1)


def test_one_more_call_in_few_functions_is_no_other_unit():
    rest = {f"kernel_{k}": ("gpu:0", 4, 1_000) for k in range(8)}
    base, candidate = (timed_run(rest | {"silu": ("gpu:0", n, 1_000)}) for n in (1, 4))
    found = changes(base, candidate)
    assert (found.repair, found.amounts.sharing, found.amounts.shared) == (None, 8, 9)
    assert kinds(found) == {"silu": "more calls"}


def test_functions_without_a_common_ratio_are_said():
    names = [f"kernel_{k}" for k in range(6)]
    base, candidate = (
        timed_run({name: ("gpu:0", calls, 1_000) for name, calls in zip(names, counts, strict=True)})
        for counts in ([10] * 6, [10, 20, 40, 80, 160, 320])
    )
    found = changes(base, candidate)
    assert (found.amounts.ratio, found.repair) == (None, None)
    assert "Most of the 6 shared functions have no common ratio of calls: cycles may be different work." in found.notes
    assert adds_up(found)


def test_processes_of_one_run_are_merged_each_by_its_own_marks():
    both = [layer_run(process=process).function_times.collect() for process in (1, 2)]
    starts = [layer_run(process=process).steps.collect() for process in (1, 2)]
    trace = trace_of(function_times=pl.concat(both).to_dicts(), steps=pl.concat(starts).to_dicts())
    found = changes(step_run(), trace)
    assert (some(found.repair).whole_steps, found.candidate_steps) == (6, 6)
    assert found.step_ratio == pytest.approx(2, rel=0.02)


def test_repair_of_real_cycles_keeps_their_functions():
    run = activity(layer_run())
    found = changes(step_run(), layer_run())
    merged = line(found, "gemm_kernel")
    assert merged.candidate_ns == 20_000 * LAYERS
    assert run.cycles.height == 4 * LAYERS
