"""What a thread did in some stretches of time adds up to them, whatever overlaps whatever."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.traces import trace_of

from inferometer.analyses.timeline.host_activity import HostActivity, find_activity
from inferometer.names.compilers import is_compiling

ME: dict[str, Any] = {"rank": None, "process": 1, "thread": 2}
SLOW = 1_000_000


def stretches(*times: tuple[int, int], thread: int | None = 2) -> pl.DataFrame:
    rows = [ME | {"thread": thread, "start_ns": start, "end_ns": end} for start, end in times]
    schema = dict.fromkeys(("rank", "process", "thread", "start_ns", "end_ns"), pl.Int64)
    return pl.DataFrame(rows, schema=schema)


def at(start: int, end: int, **name: Any) -> dict[str, Any]:
    return ME | {"start_ns": start, "dur_ns": end - start} | name


def parts(activity: HostActivity) -> dict[str, int]:
    return dict(activity.parts.iter_rows())


def test_the_innermost_that_matters_takes_the_time() -> None:
    trace = trace_of(
        frames=[at(0, 100, frame="a.py(1): f")],
        ops=[at(10, 60, op="aten::mm")],
        calls=[
            at(20, 30, api="cudaLaunchKernel"),
            at(40, 45, api="cudaMalloc_v3020"),
            at(70, 80, api="cudaStreamSynchronize"),
            at(90, 95, api="cudaEventRecord"),
        ],
    )
    activity = find_activity(trace, stretches((0, 50), (60, 120)))
    assert activity.total_ns == 110
    assert parts(activity) == {
        "frame": 10 + 25,
        "op": 40 - 15,
        "launch": 10,
        "allocation": 5,
        "wait": 10,
        "call": 5,
        "unrecorded": 20,
    }
    assert activity.calls.select("api", "time_ns", "count", "first_ns", "last_ns").rows()[:2] == [
        ("cudaLaunchKernel", 10, 1, 20, 20),
        ("cudaStreamSynchronize", 10, 1, 70, 70),
    ]
    assert "cudaMalloc" in activity.calls["api"]


@pytest.mark.parametrize(
    ("api", "activity"), [("cudaLaunchKernel", "slow_call"), ("cudaFree", "slow_call"), ("cudaMemcpy", "copy")]
)
def test_a_call_of_a_millisecond_is_slow_unless_it_waits_or_copies(api: str, activity: str) -> None:
    trace = trace_of(calls=[at(0, SLOW, api=api)])
    assert parts(find_activity(trace, stretches((0, SLOW)))) == {activity: SLOW}
    short = parts(find_activity(trace_of(calls=[at(0, SLOW - 1, api="cudaFree")]), stretches((0, SLOW - 1))))
    assert short == {"allocation": SLOW - 1}


def test_a_capture_lasts_from_its_first_call_to_its_last() -> None:
    calls = [
        at(10, 12, api="cudaStreamBeginCapture_v10000"),
        at(20, 25, api="cudaLaunchKernel"),
        at(40, 42, api="cudaStreamEndCapture_v10000"),
    ]
    told = parts(find_activity(trace_of(calls=calls), stretches((0, 100))))
    assert told == {"capture": 32, "unrecorded": 68}


def test_captured_launches_tell_of_a_capture_whose_calls_are_missing() -> None:
    captured = pl.DataFrame(
        [ME | {"called_ns": time} for time in (10, 20, 30, 90)], schema_overrides={"rank": pl.Int64}
    )
    told = parts(find_activity(trace_of(), stretches((0, 50), (80, 100)), captured))
    assert told == {"capture": 20, "unrecorded": 50}


def test_other_threads_and_unknown_ones_are_not_asked() -> None:
    trace = trace_of(frames=[at(0, 100, frame="a.py(1): f")])
    assert parts(find_activity(trace, stretches((0, 100), thread=3))) == {"unrecorded": 100}
    assert parts(find_activity(trace, stretches((0, 100), thread=None))) == {"unrecorded": 100}
    assert find_activity(trace, stretches()).total_ns == 0


TIMES = st.tuples(st.integers(0, 40), st.integers(1, 20))


@given(
    calls=st.lists(st.tuples(TIMES, st.sampled_from(["cudaMemcpy", "cudaFree", "cudaDeviceSynchronize"])), max_size=6),
    ops=st.lists(TIMES, max_size=6),
    cuts=st.lists(st.integers(0, 60), min_size=2, max_size=6, unique=True),
)
def test_each_nanosecond_is_of_one_activity(
    calls: list[tuple[tuple[int, int], str]], ops: list[tuple[int, int]], cuts: list[int]
) -> None:
    edges = sorted(cuts)[: len(cuts) // 2 * 2]
    within = list(zip(edges[::2], edges[1::2], strict=True))
    trace = trace_of(
        calls=[at(start, start + dur, api=api) for (start, dur), api in calls],
        ops=[at(start, start + dur, op="aten::mm") for start, dur in ops],
    )
    expected: dict[str, int] = {}
    for time in (time for start, end in within for time in range(start, end)):
        open_now = {api for (start, dur), api in calls if start <= time < start + dur}
        order = (("cudaDeviceSynchronize", "wait"), ("cudaMemcpy", "copy"), ("cudaFree", "allocation"))
        in_op = any(start <= time < start + dur for start, dur in ops)
        kind = next((kind for api, kind in order if api in open_now), "op" if in_op else "unrecorded")
        expected[kind] = expected.get(kind, 0) + 1
    assert parts(find_activity(trace, stretches(*within))) == expected


@pytest.mark.parametrize(
    ("frame", "compiles"),
    [
        ("triton/compiler/compiler.py(230): compile", True),
        ("/src/triton/python/triton/compiler/code_generator.py(9): visit_For", True),
        ("triton/backends/nvidia/compiler.py(300): make_ttgir", True),
        ("triton/runtime/autotuner.py(88): _bench", True),
        ("torch/_inductor/compile_fx.py(700): _compile_fx_inner", True),
        ("torch/_dynamo/convert_frame.py(500): compile_inner", True),
        ("torch/_inductor/runtime/triton_heuristics.py(900): benchmark_all_configs", True),
        ("torch/utils/cpp_extension.py(1500): _jit_compile", True),
        ("triton/compiler/compiler.py:230 compile", True),
        ("triton/compiler/compiler.py(482): launch_metadata", False),
        ("triton/compiler/compiler.py(439): _init_handles", False),
        ("triton/backends/amd/compiler.py(174): get_arg_specialization", False),
        ("triton/runtime/autotuner.py(150): run", False),
        ("torch/_inductor/codecache.py(1): __call__", False),
        ("engine/compile.py(3): compile", False),
        ("nn.Module: Linear_0", False),
    ],
)
def test_frames_that_run_at_every_launch_compile_nothing(frame: str, compiles: bool) -> None:
    assert is_compiling(frame) is compiles
