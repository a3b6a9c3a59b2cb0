import polars as pl
from tests.traces import trace_of

from inferometer.analyses.compare.activity.activity import class_of
from inferometer.analyses.compare.activity.sources import activity


def cell(cycle, function, *, device="gpu:0", dur_ns=10, calls=1, **more):
    row = {"cycle": cycle, "function": function, "device": device, "dur_ns": dur_ns, "calls": calls}
    return row | {"cycle_dur_ns": 1_000, "process": 1} | more


def test_times_by_cycle_become_functions_and_cycles():
    run = activity(
        trace_of(
            function_times=[
                cell(1, "gemm", dur_ns=40, calls=4, **{"class": "gpu_compute"}),
                cell(1, "Memset (Device)", **{"class": "gpu_memcpy_h2d"}),
                cell(1, "write", device="host", dur_ns=700, calls=9, **{"class": "disk_read_and_write"}),
                cell(1, "ncclDevKernel_AllReduce", **{"class": "gpu_comm"}),
            ],
            steps=[{"step": 1, "process": 1, "start_ns": 5_000, "dur_ns": 1_000, "source": "recorded"}],
        )
    )
    assert run.basis == "function_times"
    assert run.functions.select("function", "cls", "device", "dur_ns", "calls").rows() == [
        ("gemm", "compute", "gpu:0", 40, 4),
        ("Memset (Device)", "transfer", "gpu:0", 10, 1),
        ("write", "host", "host", 700, 9),
        ("ncclDevKernel_AllReduce", "collective", "gpu:0", 10, 1),
    ]
    columns = ("cycle", "process", "device", "start_ns", "dur_ns", "complete")
    assert run.cycles.select(columns).rows() == [(1, 1, "gpu:0", 5_000, 1_000, True)]


def test_a_cycle_with_too_few_calls_on_the_device_is_partial_whatever_the_host_did():
    rows = [cell(cycle, "gemm", calls=calls) for cycle, calls in enumerate((85, 985, 985, 975, 985), 2)]
    rows += [cell(cycle, "oncpu", device="host", calls=9_999) for cycle in range(1, 7)]
    run = activity(trace_of(function_times=rows))
    assert run.cycles["complete"].to_list() == [False, False, True, True, True, True]


def test_cycles_without_a_length_are_not_complete():
    rows = [cell(1, "gemm"), cell(2, "gemm", cycle_dur_ns=0), cell(3, "gemm", cycle_dur_ns=None)]
    assert activity(trace_of(function_times=rows)).cycles["complete"].to_list() == [True, False, False]


def test_a_run_of_host_functions_has_cycles_of_no_device():
    run = activity(trace_of(function_times=[cell(cycle, "oncpu", device="host") for cycle in (1, 2)]))
    assert run.cycles.select("cycle", "device", "complete").rows() == [(1, None, True), (2, None, True)]


def test_a_bystander_device_has_no_lane():
    rows = [cell(1, "gemm", calls=100), cell(1, "Memcpy", device="gpu:1")]
    assert activity(trace_of(function_times=rows)).cycles["device"].to_list() == ["gpu:0"]
    run = activity(trace_of([*({"start_ns": k} for k in range(20)), {"device": "gpu:1"}]))
    assert run.cycles["device"].to_list() == ["gpu:0"]
    assert run.notes == ("1 devices did less than a tenth of the work of their process's busiest: left out.",)


def test_a_collective_of_several_ranks_costs_what_the_shortest_took():
    rows = [cell(1, "ncclAllReduce", dur_ns=ns, calls=2, rank=rank) for rank, ns in enumerate((100, 30, 50))]
    run = activity(trace_of(function_times=[*rows, cell(1, "gemm", rank=0)]))
    assert run.functions.select("function", "dur_ns", "cost_ns").rows() == [
        ("ncclAllReduce", 100, 30), ("ncclAllReduce", 30, 30), ("ncclAllReduce", 50, 30), ("gemm", 10, None),
    ]  # fmt: skip


def test_calls_that_were_not_recorded_count_as_one_and_are_said():
    run = activity(trace_of(function_times=[cell(1, "gemm", calls=None)]))
    assert run.functions["calls"].to_list() == [1]
    assert run.notes == ("Calls were not recorded: each row counts as one call.",)


def test_a_window_of_launches_is_one_cycle_from_first_start_to_last_end():
    run = activity(
        trace_of(
            [
                {"kernel": "a", "stream": 7, "start_ns": 100, "dur_ns": 50},
                {"kernel": "b", "stream": 8, "start_ns": 120, "dur_ns": 50},
                {"kernel": "a", "stream": 7, "start_ns": 200, "dur_ns": 10},
            ]
        )
    )
    assert run.functions.select("cycle", "function", "dur_ns", "calls").rows() == [(1, "a", 60, 2), (1, "b", 50, 1)]
    assert run.cycles.select("start_ns", "dur_ns", "idle_ns", "overlap_ns", "complete").rows() == [
        (100, 110, 30, 30, True)
    ]
    assert run.order.rows() == [(0, "a"), (0, "a"), (1, "b")]


def test_a_launch_is_in_the_step_that_called_for_it():
    spans = [{"span": f"ProfilerStep#{k}", "process": 1, "start_ns": 100 * k, "dur_ns": 100} for k in (1, 2, 3, 4)]
    calls = [
        {"api": "cudaLaunchKernel", "process": 1, "start_ns": 110 * k, "dur_ns": 1, "correlation_id": k}
        for k in (1, 2, 3, 4)
    ]
    launches = [{"process": 1, "start_ns": 100 * k + 95, "dur_ns": 20, "correlation_id": k} for k in (1, 2, 3, 4)]
    run = activity(trace_of(launches, calls=calls, spans=spans))
    assert run.functions.select("cycle", "calls").rows() == [(1, 1), (2, 1), (3, 1), (4, 1)]
    assert run.cycles.select("cycle", "dur_ns", "idle_ns", "complete").rows() == [
        (1, 115, 95, True),  # before the first launch the device was idle from the mark on
        (2, 100, 80, True),
        (3, 100, 80, True),
        (4, 100, 80, True),
    ]


def called(start_ns, number, **more):
    """A launch that begins as it is called for, and its call."""
    both = {"start_ns": start_ns, "correlation_id": number, **more}
    return both, {"api": "cudaLaunchKernel", "dur_ns": 1, **both}


def test_recorded_steps_count_before_profiler_steps():
    steps = [{"step": k, "start_ns": 100 * k, "dur_ns": 100, "source": "recorded"} for k in (7, 8)]
    spans = [{"span": "ProfilerStep#1", "start_ns": 0, "dur_ns": 2_000}]
    launches, calls = zip(called(710, 1), called(820, 2), strict=True)
    run = activity(trace_of(launches, calls=calls, steps=steps, spans=spans))
    assert run.functions["cycle"].to_list() == [7, 8]


def test_launches_outside_of_all_steps_are_left_out_and_said():
    spans = [{"span": "ProfilerStep#1", "start_ns": 100, "dur_ns": 100}]
    launches, calls = zip(called(0, 1), called(150, 2), called(999, 3), strict=True)
    run = activity(trace_of(launches, calls=calls, spans=spans))
    assert run.functions["calls"].sum() == 1
    assert run.notes == ("2 of 3 launches are in no step and are left out.",)
    assert activity(trace_of(launches[:1], calls=calls[:1], spans=spans)).functions.is_empty()


def test_a_launch_whose_call_is_not_in_the_file_is_in_no_step():
    spans = [{"span": f"ProfilerStep#{k}", "start_ns": 100 * k, "dur_ns": 100} for k in (1, 2)]
    launches, calls = zip(called(150, 1), called(250, 2), strict=True)
    earlier = {"start_ns": 110, "correlation_id": 99}  # queued before the recording
    run = activity(trace_of([earlier, *launches], calls=calls, spans=spans))
    assert run.functions.select("cycle", "calls").rows() == [(1, 1), (2, 1)]
    assert run.cycles["complete"].to_list() == [True, True]
    assert run.notes == ("1 of 3 launches are in no step and are left out.",)


def test_the_gap_before_a_first_launch_that_had_to_wait_is_not_counted():
    spans = [{"span": f"ProfilerStep#{k}", "start_ns": 10**6 * k, "dur_ns": 10**6} for k in (1, 2)]
    launches, calls = zip(called(1_100_000, 1), called(2_100_000, 2), strict=True)
    waited = [launch | {"start_ns": launch["start_ns"] + 700_000, "dur_ns": 9} for launch in launches]
    run = activity(trace_of(waited, calls=calls, spans=spans))
    assert run.cycles.select("dur_ns", "idle_ns", "complete").rows() == [(9, 0, True), (10**6, 999_991, True)]


def test_a_run_without_any_call_is_one_window():
    spans = [{"span": f"ProfilerStep#{k}", "start_ns": 100 * k, "dur_ns": 100} for k in (1, 2)]
    run = activity(trace_of([{"start_ns": 150}, {"start_ns": 250}], spans=spans))
    assert run.functions.select("cycle", "calls").rows() == [(1, 2)]


def test_work_on_a_cpu_is_in_the_step_in_which_it_runs():
    spans = [{"span": f"ProfilerStep#{k}", "start_ns": 100 * k, "dur_ns": 100} for k in (1, 2)]
    run = activity(trace_of([{"start_ns": 150, "device": "cpu"}, {"start_ns": 250, "device": "cpu"}], spans=spans))
    assert run.functions["cycle"].to_list() == [1, 2]


def test_steps_of_another_rank_are_not_this_rank_s():
    spans = [{"span": "ProfilerStep#1", "rank": 0, "start_ns": 0, "dur_ns": 100}]
    launches, calls = zip(called(5, 1, rank=0), called(5, 1, rank=1), strict=True)
    run = activity(trace_of(launches, calls=calls, spans=spans))
    assert run.functions["rank"].to_list() == [0]


def test_launches_of_a_window_are_in_stretches_for_resampling():
    run = activity(trace_of([{"kernel": "a", "start_ns": 10 * k, "dur_ns": 5} for k in range(130)]))
    blocks = run.blocks.filter(pl.col("function") == "a")
    assert (blocks["block"].to_list(), blocks["calls"].sum()) == (list(range(64)), 130)
    assert set(blocks["calls"]) == {2, 3}
    idle = run.blocks.filter(pl.col("cls") == "idle")
    assert (idle["dur_ns"].sum(), idle["calls"].sum()) == (129 * 5, 129)


def test_the_k_th_collectives_of_all_ranks_are_compared_call_by_call():
    launches = [
        {"kernel": "ncclDevKernel_AllReduce_Sum", "rank": rank, "start_ns": 1_000 * k, "dur_ns": dur_ns}
        for k, both in enumerate([(10, 90), (80, 20)])
        for rank, dur_ns in enumerate(both)
    ]
    run = activity(trace_of(launches))
    assert run.functions.select("rank", "dur_ns", "cost_ns").rows() == [(0, 90, 30), (1, 110, 30)]


def test_printed_totals_are_one_cycle_of_the_first_table():
    def row(section, kernel, **more):
        return {"section": section, "kernel": kernel, **more}

    run = activity(
        trace_of(
            totals=[
                row(0, "silu", count=10, total_ns=1_000, stddev_ns=2.0),
                row(0, "norm", count=4, mean_ns=25.0),
                row(0, "who", count=4),
                row(1, "silu", count=10, total_ns=900),
            ]
        )
    )
    assert run.functions.select("function", "dur_ns", "calls", "spread_ns").rows() == [
        ("silu", 1_000, 10, 2.0),
        ("norm", 100, 4, None),
    ]
    assert run.cycles.select("cycle", "dur_ns", "complete").rows() == [(1, 1_100, True)]
    assert run.notes == ("Of 2 printed tables the first is compared.", "1 printed rows without a time are left out.")


def test_an_empty_trace_has_no_activity():
    run = activity(trace_of())
    assert (run.is_empty, run.basis, run.cycles.height) == (True, "none", 0)
    assert activity(trace_of(tables=["launches"])).is_empty


def test_classes_of_device_functions():
    classes = {"gemm": "compute", "Memcpy DtoH": "transfer", "[CUDA memset]": "transfer", "ncclAllReduce": "collective"}
    assert {name: class_of(name) for name in classes} == classes
    assert class_of("k", "gpu_comm") == "collective"
    assert class_of("k", "memset") == "transfer"
