"""JSON of rocprofv3: sums equal a brute-force read, ids are looked up, and nothing of the command is kept."""

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from tests.rocprof_files import REAL, SMALL, by_force, counted_by_force, needs_real, small_runs, write_small
from tests.traces import counted, rows
from tools.rocprof_maker.program import KERNELS, truth_of

import inferometer
from inferometer import Trace
from inferometer.errors import FormatError, InputError
from inferometer.hardware.known import find_device


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small(tmp_path_factory.mktemp("rocprof") / "run.json")


@pytest.fixture(scope="module")
def trace(small: Path) -> Trace:
    return inferometer.open(small)


@pytest.fixture(scope="module")
def real() -> Trace:
    return inferometer.open(REAL)


def sums(trace: Trace, kind: str = "kernel") -> dict[str, tuple[int, int]]:
    launches = trace.tables["launches"].filter(pl.col("kind") == kind).collect()
    found = launches.group_by("kernel").agg(pl.len(), pl.col("dur_ns").sum())
    return {name: (n, ns) for name, n, ns in found.rows()}


def changed(path: Path, target: Path, change: Any) -> Path:
    document = json.loads(path.read_bytes())
    change(document["rocprofiler-sdk-tool"])
    target.write_text(json.dumps(document))
    return target


@needs_real
def test_sums_of_the_real_file_are_those_of_a_brute_force_read(real: Trace) -> None:
    assert sums(real) == by_force(REAL)
    assert sum(ns for _, ns in sums(real).values()) == 98_428_776
    assert sums(real)["ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)"][1] == 94_130_930
    assert counted(real).keys() <= {"overlaps_in_stream", "zero_duration_launch"}


@needs_real
def test_streams_and_queues_of_the_real_file_are_two_things(real: Trace) -> None:
    pairs = Counter(rows(real, "launches", "stream", "queue"))
    assert pairs == {(567, 18): 529, (566, 19): 38, (565, 20): 18, (570, 19): 8, (568, 17): 5, (0, 16): 2}


@needs_real
def test_devices_of_the_real_file_are_known_by_name(real: Trace) -> None:
    assert {device.name for device in real.facts.devices} == {"AMD Instinct MI350X"}
    first = real.facts.devices[0]
    assert (first.target, first.compute_capability, first.multiprocessors) == ("gfx950", "9.5", 256)
    known = find_device(first.name or "", multiprocessors=first.multiprocessors, memory_bytes=first.memory_bytes)
    assert known is not None
    assert known.arch == first.target
    assert set(rows(real, "launches", "device")) == {"gpu:0"}


def test_sums_are_those_that_the_program_has(trace: Trace, small: Path) -> None:
    truth: Any = truth_of(small_runs())
    work = {name: tuple(times) for name, times in truth["work"].items()}
    assert sums(trace) | sums(trace, "memcpy") == work
    assert sums(trace) == by_force(small)
    assert (trace.tables["calls"].collect().height, trace.tables["spans"].collect().height) == (
        truth["calls"],
        truth["spans"],
    )


def test_a_grid_of_work_items_becomes_blocks_rounded_up(trace: Trace) -> None:
    found = {
        (kernel, tuple(grid), tuple(block))
        for kernel, grid, block in rows(trace, "launches", "kernel", "grid", "block")
        if grid is not None
    }
    used = {kernel for kernel, *_ in found}
    assert found == {(each.name, each.blocks, each.workgroup) for each in KERNELS if each.name in used}
    assert any(work % size for each in KERNELS for work, size in zip(each.grid, each.workgroup, strict=True))


def test_registers_are_the_symbols_and_lds_the_dispatchs(trace: Trace) -> None:
    columns = ("kernel", "registers", "accum_registers", "scalar_registers", "shared_bytes", "scratch_bytes")
    found = {row[0]: row[1:] for row in rows(trace, "launches", *columns) if row[4] is not None}
    for each in KERNELS:
        if each.name in found and not each.name.startswith("[kernel"):
            assert found[each.name] == (
                each.vgpr,
                each.agpr,
                each.sgpr,
                each.static_lds + each.dynamic_lds,
                each.scratch,
            )


def test_calls_are_joined_by_process_and_id(trace: Trace) -> None:
    calls = trace.tables["calls"].filter(pl.col("api").str.starts_with("hip")).collect()
    joined = trace.tables["launches"].collect().join(calls, on=["process", "correlation_id"], how="inner")
    assert joined.height == calls.height == trace.tables["launches"].collect().height
    assert set(joined["process"]) == {run.pid for run in small_runs()}


def test_ranges_have_the_users_texts_and_rccls_calls_their_names(trace: Trace) -> None:
    ranges = Counter(name for run in small_runs() for name in (call.name for call in [*run.ranges, *run.rccl]))
    assert Counter(rows(trace, "spans", "span")) == ranges
    assert set(rows(trace, "spans", "domain")) <= {"ROCTx", "RCCL"}


def test_copies_have_bytes_and_the_gpus_device(trace: Trace) -> None:
    found = {(*row,) for row in rows(trace, "launches", "process", "device", "bytes", "kind") if row[3] == "memcpy"}
    assert found == {(run.pid, f"gpu:{copy.gpu}", copy.bytes, "memcpy") for run in small_runs() for copy in run.copies}


def test_counters_are_summed_over_instances(trace: Trace, small: Path) -> None:
    found: Counter[tuple[str, str]] = Counter()
    for kernel, metric, value in rows(trace, "kernel_counters", "kernel", "metric", "value"):
        found[kernel, metric] += int(value)
    assert found == counted_by_force(small)
    launches = rows(trace, "kernel_counters", "launch")
    assert sorted(set(launches)) == list(range(SMALL.dispatches))


def test_a_kernel_without_a_symbol_is_called_by_its_number(tmp_path: Path, small: Path) -> None:
    def forget(processes: Any) -> None:
        processes[0]["kernel_symbols"] = []

    trace = inferometer.open(changed(small, tmp_path / "a.json", forget), {"launches"})
    names = {name for name in rows(trace, "launches", "kernel") if name.startswith("[kernel ")}
    assert names
    without = sum(row["dispatch_info"]["kernel_id"] != 0 for row in _dispatches(small, 0))
    assert counted(trace)["without_symbol"] >= without


def test_a_key_that_stands_twice_and_no_stream_are_read(tmp_path: Path) -> None:
    path = write_small(tmp_path / "old.json", "6.3")
    assert '"group_segment_size": 37664, "group_segment_size": 37664' in path.read_text()
    trace = inferometer.open(path, {"launches"})
    assert sums(trace) == by_force(path)
    kernels = trace.tables["launches"].filter(pl.col("kind") == "kernel").collect()
    assert kernels["stream"].to_list() == kernels["queue"].to_list()


@pytest.mark.parametrize("order", ["sorted", "reversed"])
def test_records_may_stand_before_what_they_need(tmp_path: Path, small: Path, trace: Trace, order: str) -> None:
    document = json.loads(small.read_bytes())
    processes = document["rocprofiler-sdk-tool"]
    keys = [sorted(each) if order == "sorted" else list(reversed(each)) for each in processes]
    path = tmp_path / "a.json"
    turned = [{key: each[key] for key in names} for each, names in zip(processes, keys, strict=True)]
    path.write_text(json.dumps({"rocprofiler-sdk-tool": turned}, indent=1))
    again = inferometer.open(path)
    assert again.facts.devices == trace.facts.devices
    for table in ("launches", "calls", "spans", "kernel_counters"):
        assert (
            again.tables[table]
            .collect()
            .sort(pl.all().exclude("grid", "block"))
            .equals(trace.tables[table].collect().sort(pl.all().exclude("grid", "block")))
        )


@pytest.mark.parametrize(
    ("place", "value", "loss"),
    [
        ("start_timestamp", "soon", "wrong_type"),
        ("start_timestamp", 2**70, "number_out_of_range"),
        ("end_timestamp", 0, "negative_duration"),
        ("end_timestamp", None, "without_duration"),
        ("dispatch_info", None, "wrong_type"),
        ("dispatch_info", {"kernel_id": 8, "grid_size": {"x": "many"}}, "wrong_type"),
        ("correlation_id", 7, "wrong_type"),
        ("thread_id", 1.5, "wrong_type"),
    ],
)
def test_odd_values_cost_a_field_and_are_counted(
    tmp_path: Path, small: Path, place: str, value: Any, loss: str
) -> None:
    def spoil(processes: Any) -> None:
        processes[0]["buffer_records"]["kernel_dispatch"][1][place] = value

    trace = inferometer.open(changed(small, tmp_path / "a.json", spoil))
    assert counted(trace)[loss] == 1
    rest = len(_dispatches(small, 0)) + len(_dispatches(small, 1)) - trace.losses.dropped("kernel_dispatch")
    assert trace.tables["launches"].filter(pl.col("kind") == "kernel").collect().height == rest


def test_an_external_id_may_be_wrapped(tmp_path: Path, small: Path) -> None:
    def wrap(processes: Any) -> None:
        first, second = processes[0]["buffer_records"]["kernel_dispatch"][:2]
        first["correlation_id"]["external"] = {"value": 41}
        second["correlation_id"]["external"] = 42

    trace = inferometer.open(changed(small, tmp_path / "a.json", wrap), {"launches"})
    assert [n for n in rows(trace, "launches", "external_id") if n is not None] == [41, 42]


@pytest.mark.parametrize("text", ["[]", '{"rocprofiler-sdk-tool": 7}', '{"rocprofiler-sdk-tool": []}', "{}"])
def test_what_is_no_such_file_says_what_was_expected(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=r"a.json: expected .*, found"):
        inferometer.open(path, format="rocprof")


@pytest.mark.parametrize("text", ['{"rocprofiler-sdk-tool"', '{"rocprofiler-sdk-tool":', '{"rocprofiler-sdk-tool": ['])
def test_a_file_that_ends_before_its_first_process_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cut.json"
    path.write_text(text)
    with pytest.raises(FormatError, match="with a process in it, found b'none'"):
        inferometer.open(path, format="rocprof")


def test_a_file_that_ends_anywhere_is_a_part_of_the_whole(tmp_path: Path, small: Path) -> None:
    data, whole = small.read_bytes(), inferometer.open(small, {"launches"}).tables["launches"].collect().height
    path = tmp_path / "cut.json"
    random, before = Random(3), 0
    for size in sorted(random.sample(range(len(data) - 2), 20)):
        path.write_bytes(data[:size])
        try:
            trace = inferometer.open(path, {"launches"}, format="rocprof")
        except InputError:
            assert not before
            continue
        assert counted(trace)["truncated"] == 1
        height = trace.tables["launches"].collect().height
        assert before <= height <= whole
        before = height


def test_the_command_and_its_secrets_stay_in_the_file(small: Path, trace: Trace, tmp_path: Path) -> None:
    assert SMALL.token in small.read_text()
    assert counted(trace)["secret"] == 4
    inferometer.import_trace(small, tmp_path / "a.ifm")
    kept = b"".join(path.read_bytes() for path in (tmp_path / "a.ifm").rglob("*") if path.is_file())
    assert b"serve.py" not in kept
    assert SMALL.token.encode() not in kept
    assert SMALL.token not in repr(trace.facts)


def _dispatches(path: Path, process: int) -> list[Any]:
    found: list[Any] = json.loads(path.read_bytes())["rocprofiler-sdk-tool"][process]["buffer_records"][
        "kernel_dispatch"
    ]
    return found
