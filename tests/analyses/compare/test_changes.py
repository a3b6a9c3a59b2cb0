import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analyses.compare.run_traces import (
    GEMM,
    HEAD,
    LAYER,
    adds_up,
    changes,
    kernel_run,
    kinds,
    line,
    some,
    timed_run,
)
from tests.effort import examples
from tests.traces import trace_of

import inferometer
from inferometer.analyses.compare.activity.sources import activity
from inferometer.analyses.compare.changes import find_changes
from inferometer.analyses.compare.comparison import compare

ROOT = Path(__file__).resolve().parents[3]


def slower(kernel, factor):
    return [(name, round(ns * factor) if name == kernel else ns) for name, ns in LAYER]


def test_a_kernel_that_slowed_is_named_with_its_change_a_step():
    found = changes(kernel_run(seed=1), kernel_run(slower("silu", 1.3), seed=2))
    assert kinds(found) == {"silu": "slower"}
    silu = found.contributions[0]
    assert (silu.name, silu.base_calls, silu.candidate_calls) == ("silu", 4, 4)
    low, high = some(silu.interval_ns)
    assert low < 0.3 * 4 * 3_000 < high
    assert low > 0
    assert adds_up(found)


@pytest.mark.parametrize("marked", [True, False])
def test_identical_runs_are_the_same_in_every_line(marked):
    run = kernel_run(marked=marked)
    found = changes(run, run)
    assert {one.kind for one in found.contributions} == {"same"}
    assert {one.delta_ns for one in found.contributions} == {0}
    assert (found.step_ratio, found.step_ratio_interval, found.unexplained_ns) == (1.0, (1.0, 1.0), 0)
    assert found.domain.cls is None


def test_two_runs_of_the_same_program_differ_in_no_line():
    for seed in range(5):
        assert kinds(changes(kernel_run(seed=seed, noise=0.05), kernel_run(seed=seed + 100, noise=0.05))) == {}


def test_swapped_runs_have_the_opposite_changes():
    base, candidate = kernel_run(seed=1), kernel_run(slower("silu", 1.3), seed=2)
    there, back = changes(base, candidate), changes(candidate, base)
    assert {one.name: one.delta_ns for one in there.contributions} == {
        one.name: -one.delta_ns for one in back.contributions
    }
    assert kinds(back) == {"silu": "faster"}
    assert some(there.step_ratio) * some(back.step_ratio) == pytest.approx(1)


def test_idle_time_is_a_line_of_its_own():
    found = changes(kernel_run(noise=0), kernel_run(noise=0, gap_ns=3_000))
    idle = line(found, "idle")
    assert (idle.cls, idle.kind, idle.base_ns, idle.candidate_ns) == ("idle", "slower", 21_000, 63_000)
    assert idle.share == 1
    assert found.step_delta_ns == idle.delta_ns


def test_overlap_is_negative_time_so_that_kernels_of_two_streams_add_up_to_the_window():
    rows = [
        {"kernel": "a", "stream": 7, "start_ns": 0, "dur_ns": 100},
        {"kernel": "b", "stream": 8, "start_ns": 60, "dur_ns": 100},
    ]
    apart = [rows[0], rows[1] | {"start_ns": 110}]
    found = changes(trace_of(rows), trace_of(apart))
    assert (found.base_step_ns, found.candidate_step_ns) == (160, 210)
    assert [line(found, name).delta_ns for name in ("a", "b", "overlap", "idle")] == [0, 0, 40, 10]
    assert found.unexplained_ns == 0


def test_an_empty_run_makes_everything_new_or_gone():
    full, empty = kernel_run(), trace_of()
    assert {one.kind for one in changes(full, empty).contributions if one.cls == "compute"} == {"gone"}
    found = changes(empty, full)
    assert {one.kind for one in found.contributions if one.cls == "compute"} == {"new"}
    assert (found.step_ratio, found.step_ratio_interval) == (None, None)
    assert adds_up(found)
    both = changes(empty, empty)
    assert (both.contributions, both.step_ratio, both.unexplained_ns) == ((), None, 0)


def test_one_launch_each_has_no_interval_and_is_judged_by_a_coarse_level():
    found = changes(trace_of([{"dur_ns": 1_000}]), trace_of([{"dur_ns": 1_050}]))
    (k,) = [one for one in found.contributions if one.name == "k"]
    assert (k.kind, k.delta_ns, k.interval_ns) == ("same", 50, None)
    assert found.step_ratio_interval is None
    found = changes(trace_of([{"dur_ns": 1_000}]), trace_of([{"dur_ns": 1_500}]))
    assert line(found, "k").kind == "slower"


def test_launches_of_no_time_and_unknown_places_are_no_error():
    nothing = {"dur_ns": 0, "device": None, "stream": None, "rank": None, "process": None}
    found = changes(trace_of([nothing]), trace_of([nothing, nothing | {"start_ns": 10, "dur_ns": 5}]))
    assert adds_up(found)


def test_steps_of_several_devices_are_a_mean_over_devices():
    def run(factor):
        one, two = (kernel_run(slower("silu", factor), rank=rank, device=f"gpu:{rank}", seed=rank) for rank in (0, 1))
        return trace_of(
            [*one.launches.collect().to_dicts(), *two.launches.collect().to_dicts()],
            calls=[*one.calls.collect().to_dicts(), *two.calls.collect().to_dicts()],
            spans=[*one.spans.collect().to_dicts(), *two.spans.collect().to_dicts()],
        )

    found = changes(run(1), run(1.5))
    assert (found.base_steps, found.candidate_steps) == (20, 20)
    assert kinds(found) == {"silu": "slower"}
    assert line(found, "silu").base_ns == pytest.approx(12_000, rel=0.01)
    assert adds_up(found)


def test_ranks_that_wait_in_a_collective_are_told_from_a_slower_collective():
    def run(late_ns):
        rows = []
        for k in range(50):
            for rank, spins in enumerate((k % 2, 1 - k % 2)):  # the late rank changes from call to call
                reduce = {"kernel": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "start_ns": 100_000 * k}
                rows.append(reduce | {"rank": rank, "device": f"gpu:{rank}", "dur_ns": 10_000 + spins * late_ns})
        return trace_of(rows)

    found = changes(run(2_000), run(20_000))
    name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
    assert (line(found, name).kind, line(found, name).delta_ns) == ("same", 0)
    waiting = line(found, f"{name}: waiting for other ranks")
    assert (waiting.kind, waiting.base_ns, waiting.candidate_ns) == ("slower", 50_000, 500_000)
    assert [one.cls for one in found.domain.classes if one.is_slower] == []
    assert adds_up(found)


def test_more_calls_of_a_function_are_told_from_slower_ones():
    once, twice = kernel_run(gap_ns=0), kernel_run([*LAYER, ("silu", 3_000)], gap_ns=0)
    found = changes(once, twice)
    assert kinds(found) == {"silu": "more calls"}
    assert (line(found, "silu").base_calls, line(found, "silu").candidate_calls) == (4, 8)
    assert kinds(changes(twice, once)) == {"silu": "fewer calls"}


def test_host_functions_have_lines_of_their_own_but_are_never_added():
    device = {"gemm_kernel": ("gpu:0", 64, 5_000)}
    base = timed_run({**device, "oncpu": ("host", 100, 15_000)})
    candidate = timed_run({**device, "oncpu": ("host", 100, 45_000)}, cycle_ns=3_000_000, seed=1)
    found = changes(base, candidate)
    host = line(found, "oncpu")
    assert (host.cls, host.kind, host.added, host.share) == ("host", "slower", False, None)
    assert line(found, "not on the device").kind == "slower"
    assert found.domain.cls == "host"
    assert found.step_ratio == pytest.approx(3, rel=0.02)
    assert adds_up(found)


def test_the_class_whose_calls_slowed_most_is_the_domain():
    functions = {"a_kernel": ("gpu:0", 10, 5_000), "Memcpy HtoD": ("gpu:0", 4, 2_000), "oncpu": ("host", 9, 9_000)}
    slow = functions | {"a_kernel": ("gpu:0", 10, 15_000), "Memcpy HtoD": ("gpu:0", 4, 3_000)}
    domain = changes(timed_run(functions), timed_run(slow, seed=1)).domain
    assert domain.cls == "compute"
    assert [(one.cls, round(one.ratio, 1)) for one in domain.classes] == [
        ("compute", 3.0), ("transfer", 1.5), ("host", 1.0),
    ]  # fmt: skip
    assert changes(timed_run(slow), timed_run(functions, seed=1)).domain.cls is None


def test_twice_the_calls_of_the_same_length_are_no_domain():
    base, candidate = ({"a_kernel": ("gpu:0", n, 5_000), "b_kernel": ("gpu:0", 9, 900)} for n in (10, 20))
    found = changes(timed_run(base), timed_run(candidate, seed=1))
    assert found.domain.cls is None
    assert line(found, "a_kernel").kind == "more calls"


def test_printed_totals_are_compared_with_their_deviations():
    def table(mean, stddev):
        rows = [("silu", 100, mean, stddev), ("softmax_kernel", 10, 5_000, 50.0)]
        return trace_of(
            totals=[{"section": 0, "kernel": k, "count": n, "total_ns": n * m, "stddev_ns": s} for k, n, m, s in rows]
        )

    found = changes(table(3_000, 30.0), table(3_900, 30.0))
    silu = line(found, "silu")
    assert (silu.kind, silu.delta_ns) == ("slower", 90_000)
    assert some(silu.interval_ns)[0] < 90_000 < some(silu.interval_ns)[1]
    assert (found.account, found.base_step_ns, found.unexplained_ns) == ("sums", 350_000, 0)
    assert kinds(changes(table(3_000, None), table(3_150, None))) == {}  # of unknown spread: below the coarse level


def test_launches_against_printed_totals_compare_what_both_have():
    totals = [{"section": 0, "kernel": "silu", "count": 4, "total_ns": 12_000}]
    rows = [{"kernel": "silu", "start_ns": 5_000 * k, "dur_ns": 3_000} for k in range(8)]
    found = changes(trace_of(rows), trace_of(totals=totals))
    assert (found.account, some(found.repair).kind, some(found.repair).ratio) == ("sums", "normalised", 0.5)
    assert [one.name for one in found.contributions] == ["silu"]
    assert found.contributions[0].delta_ns == 0


def test_launches_against_times_by_cycle_have_one_remainder():
    timed = timed_run({"silu": ("gpu:0", 4, 3_000), "softmax_kernel": ("gpu:0", 1, 5_000)}, cycle_ns=30_000)
    found = changes(kernel_run([("silu", 3_000)], HEAD), timed)
    assert {one.name for one in found.contributions} == {"silu", "softmax_kernel", "not on the device"}
    assert adds_up(found)


names = st.sampled_from(["silu", "mul_kernel", "silu_and_mul", GEMM, "ncclDevKernel_AllReduce_Sum", "Memcpy HtoD"])
launch = st.fixed_dictionaries(
    {
        "kernel": names,
        "start_ns": st.integers(0, 5_000),
        "dur_ns": st.integers(0, 500),
        "stream": st.integers(1, 2),
        "rank": st.sampled_from([None, 0, 1]),
        "device": st.sampled_from(["gpu:0", "gpu:1"]),
    }
)
span = st.builds(
    lambda n: [{"span": f"ProfilerStep#{k}", "start_ns": 1_000 * k, "dur_ns": 1_000} for k in range(n)],
    st.integers(0, 5),
)
traces = st.builds(lambda rows, marks: trace_of(rows, spans=marks), st.lists(launch, max_size=40), span)


@examples(25)
@given(traces, traces)
def test_contributions_and_what_is_unexplained_are_the_change_of_the_step(base, candidate):
    found = changes(base, candidate)
    assert adds_up(found)
    assert {one.delta_ns for one in changes(base, base).contributions} <= {0}
    json.dumps(found.as_json(), allow_nan=False)


cell = st.tuples(
    st.integers(1, 4),
    st.sampled_from(["oncpu", "silu", "mul_kernel", "ncclAllReduce"]),
    st.sampled_from(["host", "gpu:0", "gpu:1"]),
    st.one_of(st.none(), st.integers(0, 9)),
    st.integers(0, 1_000),
    st.integers(1, 2),
)
tables = st.lists(cell, max_size=30).map(
    lambda cells: trace_of(
        function_times=[
            {"cycle": c, "function": f, "device": d, "calls": n, "dur_ns": t, "process": p, "cycle_dur_ns": 2_000 * c}
            for c, f, d, n, t, p in cells
        ]
    )
)


@examples(25)
@given(tables, tables)
def test_times_by_cycle_are_conserved_too(base, candidate):
    found = changes(base, candidate)
    assert adds_up(found)
    json.dumps(found.as_json(), allow_nan=False)


def test_the_generator_s_slower_kernel_comes_first_and_nothing_else_changed(shared_data, tmp_path):
    tool = shared_data.parent / "tools" / "gen_kineto.py"
    if not tool.is_file():
        pytest.skip("needs the generator of traces in shared/tools next to the repository")
    traces = []
    for name, more in (("a.json", ()), ("b.json", ("--slow", "silu", "1.3"))):
        path = tmp_path / name
        subprocess.run([sys.executable, tool, path, "--steps", "4", "--no-stack", *more], check=True)
        traces.append(inferometer.open(path))
    found = compare(*traces).changes  # of decode steps: one of the four is a prefill
    (silu,) = found.changed
    assert "silu" in silu.of[0][0]
    assert silu == found.contributions[0]
    assert some(silu.interval_ns)[0] < 0.3 * silu.base_ns < some(silu.interval_ns)[1]
    assert adds_up(found)


def test_our_maker_s_slower_kernel_comes_first(tmp_path):
    traces = []
    for name, more in (("a.json", ()), ("b.json", ("--slow", "act_and_mul", "1.3"))):
        path = tmp_path / name
        arguments = ["--steps", "12", "--layers", "2", "--marks", "profiler", "--no-stack", *more]
        subprocess.run([sys.executable, ROOT / "tools/make_kineto.py", "--out", path, *arguments], check=True)
        traces.append(inferometer.open(path))
    found = changes(*traces)
    assert "act_and_mul" in found.contributions[0].of[0][0]
    assert found.contributions[0].kind == "slower"
    assert {one.kind for one in found.contributions[1:]} == {"same"}
    assert adds_up(found)


def test_real_steps_repaired_from_layers(shared_data):
    """The labelled pair whose candidate was cut into layers: 64 per step, two whole steps, 2.33 s against 0.63 s."""
    folder = shared_data / "latencyprism" / "SGLang" / "cpu_frequency_reduction"
    runs = []
    for side in ("normal", "abnormal"):
        try:
            trace = inferometer.open(folder / side)
        except inferometer.InputError:
            pytest.skip("this build reads no such folder")
        runs.append(activity(trace))
    found = find_changes(*runs)
    assert 3.3 <= some(found.step_ratio) <= 3.9
    assert (some(found.repair).kind, some(found.repair).side, some(found.repair).whole_steps) == (
        "merged",
        "candidate",
        2,
    )
    assert some(found.repair).cycles_per_step == 64
    assert found.domain.cls == "host"
    assert adds_up(found)
    back = find_changes(*reversed(runs))
    assert some(back.repair).side == "base"
    assert back.domain.cls is None
