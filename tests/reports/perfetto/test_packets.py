"""A Perfetto trace, decoded by Google's library, holds every row at its exact time, nested and tied as in the trace."""

import io
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.formats.kineto.test_real_files import FILES
from tests.perfetto_files import Decoded, decode
from tests.traces import trace_of

import inferometer
from inferometer import Trace
from inferometer.reports.perfetto.packets import write_perfetto
from inferometer.trace.facts import Device, NamedId

NAMES = {
    "launches": "kernel",
    "calls": "api",
    "ops": "op",
    "frames": "frame",
    "spans": "span",
    "host_events": "kind",
}
CALL = {"api": "cudaLaunchKernel", "process": 9, "thread": 11}
SMALL = st.integers(0, 12)
ROW = {"start_ns": SMALL, "dur_ns": SMALL}
ON_HOST = ROW | {"process": st.sampled_from([None, 1, -5]), "thread": st.sampled_from([None, 0, 2])}
LAUNCHES = st.fixed_dictionaries(
    ROW
    | {
        "kernel": st.sampled_from(["a", "b", "é😀\n", ""]),
        "stream": st.sampled_from([None, 7, 8]),
        "device": st.sampled_from([None, "gpu:0", "webgpu:1"]),
        "context": st.sampled_from([None, 1, 2]),
        "process": st.sampled_from([None, 1]),
        "rank": st.sampled_from([None, 0, 1]),
        "correlation_id": st.none() | SMALL,
        "bytes": st.none() | st.integers(-(2**63), 2**63 - 1),
        "grid": st.none() | st.lists(SMALL, min_size=3, max_size=3),
        "occupancy": st.none() | st.floats(0, 1),
    }
)
CALLS = st.fixed_dictionaries(ON_HOST | {"api": st.just("launch"), "correlation_id": st.none() | SMALL})
OPS = st.fixed_dictionaries(ON_HOST | {"op": st.sampled_from(["x", "y"]), "input_dims": st.none() | st.text()})
FRAMES = st.fixed_dictionaries(ON_HOST | {"frame": st.just("f.py(1): f"), "parent": st.none() | SMALL})
SPANS = st.fixed_dictionaries(
    ON_HOST
    | {
        "span": st.just("s"),
        "domain": st.sampled_from([None, "instant", "cuda_sync"]),
        "device": st.sampled_from([None, "gpu:0"]),
    }
)
HOST_EVENTS = st.fixed_dictionaries(ON_HOST | {"kind": st.just("oncpu")})


def written(trace: Trace, folder: Path) -> Decoded:
    path = folder / "out.pftrace"
    with path.open("wb") as file:
        rows = write_perfetto(trace, file)
    found = decode(path)
    assert sum(rows.values()) == len(found.slices) + sum(map(len, found.samples.values()))
    return found


def of_trace(trace: Trace, table: str) -> Counter[tuple[str, int, int]]:
    end = pl.col("start_ns") + pl.col("dur_ns")
    return Counter(trace.tables[table].select(NAMES[table], "start_ns", end.alias("end")).collect().rows())


def of_file(found: Decoded, *categories: str) -> Counter[tuple[str, int, int | None]]:
    return Counter((one.name, one.start_ns, one.end_ns) for one in found.slices if one.category in categories)


def test_a_launch_is_a_slice_on_its_stream_with_an_arrow_from_its_call(tmp_path: Path) -> None:
    trace = trace_of(
        [
            {"start_ns": 110, "dur_ns": 5, "process": 9, "correlation_id": 3, "grid": [1, 2, 3], "occupancy": 0.5},
            {"kernel": "copy", "kind": "memcpy", "start_ns": 116, "dur_ns": 1, "process": 9, "bytes": 64},
        ],
        calls=[CALL | {"start_ns": 100, "dur_ns": 2, "correlation_id": 3}],
        ops=[{"op": "aten::mm", "process": 9, "thread": 11, "start_ns": 99, "dur_ns": 9, "input_dims": "[[1],[2]]"}],
        facts={"devices": (Device("gpu:0", "H100"),), "processes": (NamedId(9, name="python"),)},
    )
    op, call, kernel, copy = written(trace, tmp_path).slices
    assert (op.name, op.track, op.depth) == ("aten::mm", ("python (process 9)", "thread 11"), 0)
    assert op.args == {"input_dims": "[[1],[2]]"}
    assert (call.track, call.depth, call.start_ns, call.end_ns) == (op.track, 1, 100, 102)
    assert (kernel.track, kernel.category) == (("gpu:0 H100", "stream 7"), "kernel")
    grid = {"grid_x": 1, "grid_y": 2, "grid_z": 3}
    assert kernel.args == {"process": 9, "correlation_id": 3, "occupancy": 0.5, **grid}
    assert (copy.category, copy.args) == ("memcpy", {"process": 9, "bytes": 64})
    assert call.flows == kernel.flows == (1,)
    assert copy.flows == ()


def test_every_kernel_of_a_graph_has_an_arrow_of_its_own_from_the_one_call(tmp_path: Path) -> None:
    trace = trace_of(
        [{"start_ns": 10 * i, "correlation_id": 3} for i in range(4)],
        calls=[{"api": "cudaGraphLaunch", "start_ns": 0, "dur_ns": 2, "correlation_id": 3}],
    )
    call, *kernels = written(trace, tmp_path).slices
    assert call.flows == (1, 2, 3, 4)
    assert [kernel.flows for kernel in kernels] == [(1,), (2,), (3,), (4,)]


def test_ranks_with_one_process_number_are_groups_of_their_own(tmp_path: Path) -> None:
    trace = trace_of(
        [{"rank": rank, "process": 9} for rank in (0, 1)],
        calls=[CALL | {"rank": rank, "start_ns": 1, "dur_ns": 1} for rank in (0, 1)],
    )
    found = written(trace, tmp_path)
    assert sorted(one.track[0] for one in found.slices) == [
        "gpu:0, rank 0",
        "gpu:0, rank 1",
        "process 9, rank 0",
        "process 9, rank 1",
    ]


def test_slices_that_cross_lie_on_further_tracks_of_one_name(tmp_path: Path) -> None:
    trace = trace_of([{"kernel": "a", "start_ns": 0, "dur_ns": 10}, {"kernel": "b", "start_ns": 5, "dur_ns": 10}])
    a, b = written(trace, tmp_path).slices
    assert (a.end_ns, b.end_ns) == (10, 15)
    assert a.track == b.track == ("gpu:0", "stream 7")
    assert a.uuid != b.uuid


def test_samples_are_counter_tracks_and_those_without_a_number_are_left_out(tmp_path: Path) -> None:
    base: dict[str, Any] = {"metric": "power", "device": "gpu:0", "unit": "W"}
    counters = [base | {"time_ns": 4, "value": 0.5}, base | {"time_ns": 2, "value": 3}, base | {"time_ns": 5}]
    counters.append({"metric": "memory", "process": 9, "unit": "bytes", "time_ns": 7, "value": float("nan")})
    found = written(trace_of(counters=counters), tmp_path)
    assert found.samples == {("gpu:0", "power"): [(2, 3.0), (4, 0.5)]}


def test_times_before_zero_are_moved_and_the_wall_clock_is_told(tmp_path: Path) -> None:
    trace = trace_of([{"start_ns": -7}, {"start_ns": 3}], facts={"clock_base_ns": 10**18})
    found = written(trace, tmp_path)
    assert [one.start_ns for one in found.slices] == [0, 10]
    (snapshot,) = [packet.clock_snapshot for packet in found.packets if packet.HasField("clock_snapshot")]
    assert {clock.clock_id: clock.timestamp for clock in snapshot.clocks} == {6: 0, 1: 10**18 - 7}


def test_a_step_is_a_slice_with_its_numbers(tmp_path: Path) -> None:
    step = {"step": 4, "phase": "decode", "start_ns": 1, "dur_ns": 2, "batch": 16, "source": "recorded"}
    (one,) = written(trace_of(steps=[step]), tmp_path).slices
    assert (one.name, one.args) == ("step 4", {"batch": 16, "phase": "decode", "source": "recorded"})


def test_an_empty_trace_is_a_file_without_events() -> None:
    assert write_perfetto(trace_of(), io.BytesIO()) == {}


@given(
    launches=st.lists(LAUNCHES, max_size=12),
    calls=st.lists(CALLS, max_size=8),
    ops=st.lists(OPS, max_size=8),
    frames=st.lists(FRAMES, max_size=8),
    spans=st.lists(SPANS, max_size=8),
    host_events=st.lists(HOST_EVENTS, max_size=4),
    batch=st.sampled_from([1, 3, 1 << 15]),
)
@examples(40)
def test_every_row_is_a_slice_at_its_time_whatever_overlaps(
    tmp_path_factory: pytest.TempPathFactory, batch: int, **tables: Any
) -> None:
    trace = trace_of(tables.pop("launches"), **tables)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("inferometer.reports.perfetto.packets.BATCH_ROWS", batch)
        found = written(trace, tmp_path_factory.mktemp("any"))
    of_tables = sum((of_trace(trace, table) for table in NAMES), Counter())
    assert of_file(found, *{one.category for one in found.slices}) == of_tables
    expected = trace.launches.select("bytes", "correlation_id", "occupancy", pl.col("grid").arr.get(2).alias("grid_z"))
    kernels = [one.args for one in found.slices if one.category == "kernel"]
    got = Counter(tuple(args.get(name) for name in expected.collect_schema()) for args in kernels)
    assert got == Counter(expected.collect().rows())


@pytest.mark.parametrize("name", FILES)
def test_a_real_capture_is_there_to_the_nanosecond(name: str, shared_data: Path, tmp_path: Path) -> None:
    trace = inferometer.open(shared_data / "traces" / "kineto" / f"{name}.json.gz")
    found = written(trace, tmp_path)
    domains = trace.spans.select(pl.col("domain").fill_null("span").unique()).collect().to_series()
    assert of_file(found, "kernel", "memcpy", "memset") == of_trace(trace, "launches")
    for table, categories in (("calls", ["call"]), ("ops", ["op"]), ("frames", ["frame"]), ("spans", domains)):
        assert of_file(found, *categories) == of_trace(trace, table)
    assert sum(map(len, found.samples.values())) == trace.counters.select(pl.len()).collect().item()
    calls = trace.calls.filter(pl.col("correlation_id").is_not_null())
    tied = trace.launches.join(calls, on=("rank", "process", "correlation_id"), how="semi", nulls_equal=True)
    arrows = Counter(flow for one in found.slices for flow in one.flows)
    assert set(arrows.values()) <= {2}
    assert len(arrows) == tied.select(pl.len()).collect().item()
