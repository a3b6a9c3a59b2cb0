"""Profiles of JAX whose truth is known: by our generator, and by a second reader of real files."""

import sys
from pathlib import Path

import polars as pl
import pytest
from tests.traces import counted, rows
from tests.xplane_files import H200, MI300, PLANE, blocks, kernel_ps, name_of, real_files
from tools.make_xplane import BEGAN_NS, Kind, Options, Plane, block, text, whole, write_xplane

import inferometer
from inferometer.errors import FormatError, Unavailable
from inferometer.formats.source import Limits
from inferometer.formats.xplane import schema

KINDS: tuple[Kind, ...] = ("cuda", "rocm2025", "rocm2026", "tpu")
VARIANTS = [
    *(Options(kind, steps=2, devices=2) for kind in KINDS),
    Options("cuda", steps=2, unix=True),
    Options("tpu", steps=2, unix=True),
    Options("cuda", steps=2, derived=False),
]


def open_bytes(tmp_path: Path, data: bytes, **how: object) -> inferometer.Trace:
    path = tmp_path / "run.xplane.pb"
    path.write_bytes(data)
    return inferometer.open(path, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_all_that_a_file_holds_is_read_once(options: Options, tmp_path: Path) -> None:
    data, truth = write_xplane(options)
    trace = open_bytes(tmp_path, data)
    columns = ("kernel", "device", "start_ns", "dur_ns", "correlation_id", "grid", "registers", "shared_bytes")
    expected = [tuple(getattr(launch, name) for name in columns) for launch in truth.launches]
    found = [(*row[:5], row[5] and tuple(row[5]), *row[6:]) for row in rows(trace, "launches", *columns)]
    assert sorted(found) == sorted(expected)
    assert trace.facts.clock_base_ns == BEGAN_NS
    assert len(rows(trace, "steps", "step")) == truth.steps
    assert len(rows(trace, "calls", "api")) == truth.calls
    assert len(rows(trace, "counters", "metric")) == truth.samples
    losses = counted(trace)
    assert losses.get("derived_event", 0) == truth.derived
    assert losses["aggregate_event"] == truth.aggregates
    fine = [launch for launch in truth.launches if launch.dur_ps % 1_000]
    gained = sum(launch.dur_ns * 1_000 - launch.dur_ps for launch in fine)
    loss = next(each for each in trace.losses if each.name == "below_a_nanosecond")
    assert (loss.count, loss.example) == (len(fine), f"the sum of durations changes by {gained:+,} ps")


@pytest.mark.parametrize("kind", KINDS)
def test_each_launch_leads_to_its_instruction_and_program(kind: Kind, tmp_path: Path) -> None:
    data, truth = write_xplane(Options(kind, steps=2, devices=2))
    trace = open_bytes(tmp_path, data)
    expected = sorted((launch.kernel, launch.device, launch.start_ns, launch.op) for launch in truth.launches)
    launches = trace.launches.select("kernel", "device", "start_ns", "external_id")
    ops = trace.ops.select("external_id", "op")
    assert sorted(launches.join(ops, on="external_id").drop("external_id").collect().rows()) == expected
    modules = trace.frames.filter(pl.col("module").is_not_null()).select("module").collect()["module"].to_list()
    assert modules == ["jit_step"] * len(truth.launches)


def test_calls_that_xla_names_after_kernels_are_launches(tmp_path: Path) -> None:
    trace = open_bytes(tmp_path, write_xplane(Options(steps=1))[0])
    assert rows(trace, "calls", "api") == ["cuLaunchKernel", "[kernel launch]"] * 2


def test_work_that_xla_models_has_its_own_table(tmp_path: Path) -> None:
    trace = open_bytes(tmp_path, write_xplane(Options("tpu", steps=3))[0])
    columns = ("module", "op", "category", "framework_op", "source", "flops", "bytes_accessed")
    where = ("fusion", "jit(step)/dot_general", "/home/u/model.py:42")
    assert rows(trace, "hlo_ops", *columns) == [
        ("jit_step", "gemm_fusion_dot_general.2", *where, 2_000_000, 300_000),
        ("jit_step", "loop_add_fusion", *where, 4_000, 48_000),
        ("jit_step", "all-reduce.1", *where, 0, 16_000),
        ("jit_step", "input_reduce_fusion.1", *where, 8_000, 32_000),
    ]
    assert set(rows(trace, "launches", "bytes")) == {None}
    lines = trace.frames.filter(pl.col("frame").str.contains("model.py(42)", literal=True)).collect()
    assert lines["frame"].unique().to_list() == ["/home/u/model.py(42): jit(step)/dot_general"]


@real_files
def test_kernel_sums_are_those_of_a_second_reader(path: Path) -> None:
    count, took_ps = kernel_ps(path)
    device = pl.col("device").str.replace("gpu:", "/device:GPU:")
    sums = (
        inferometer.open(path, {"launches"}).launches.group_by(device, "kernel").agg(pl.len(), pl.col("dur_ns").sum())
    )
    found = {(plane, kernel): (n, ns * 1_000) for plane, kernel, n, ns in sums.collect().iter_rows()}
    assert found == {key: (count[key], took_ps[key]) for key in count}


@real_files
def test_every_launch_of_a_real_file_joins_its_call(path: Path) -> None:
    trace = inferometer.open(path, {"launches", "calls", "ops"})
    key = ["process", "correlation_id"]
    orphans = trace.launches.join(trace.calls, on=key, how="anti", nulls_equal=True).collect()
    assert orphans.is_empty()
    assert not {"launch_before_window", "truncated", "unreadable_plane", "unknown_category"} & set(counted(trace))


def test_the_sample_of_an_h200_is_what_its_program_did() -> None:
    trace = inferometer.open(H200)
    facts = trace.facts
    device = facts.devices[0]
    assert (device.name, device.multiprocessors, device.compute_capability) == ("NVIDIA H200", 132, "9.0")
    assert (facts.framework, facts.versions["jax"], facts.clock_base_ns) == ("JAX", "0.11.2", 1795670071216860235)
    assert [(step, anchor) for step, anchor in rows(trace, "steps", "step", "anchor")] == [
        (i, "decode") for i in range(5)
    ]
    assert trace.calls.filter(pl.col("api") == "[kernel launch]").collect().height == 20
    assert trace.ops.select("op").unique().collect().height == 4
    first = (
        trace.launches.sort("start_ns").select("grid", "block", "registers", "shared_bytes").head(1).collect().row(0)
    )
    assert [list(first[0]), list(first[1]), *first[2:]] == [[256, 1, 1], [128, 1, 1], 154, 98_328]
    assert facts.notes == ("jax.trace.json.gz was not read: it is made from this file, and cut at a million events.",)


@pytest.mark.skipif(not MI300.is_file(), reason="needs ../shared")
def test_the_sample_of_eight_mi300_is_as_its_facts_say() -> None:
    trace = inferometer.open(MI300)
    sums = trace.launches.group_by("device").agg(pl.len(), pl.col("dur_ns").sum()).sort("device").collect().rows()
    assert sums[:2] == [("gpu:0", 60, 4_000_165), ("gpu:1", 25, 3_345_845)]
    assert [n for _, n, _ in sums] == [60, *[25] * 7]
    assert trace.launches.filter(pl.col("external_id").is_not_null()).collect().height == 23 + 7 * 25
    assert trace.frames.filter(pl.col("frame").str.starts_with("$")).collect().is_empty()


def test_a_file_cut_between_planes_gives_those_before(tmp_path: Path) -> None:
    data, truth = write_xplane(Options(steps=2, devices=2))
    whole_planes = [plane for plane in blocks(data, PLANE) if name_of(plane).startswith("/device")]
    end = data.index(whole_planes[1]) + 20
    trace = open_bytes(tmp_path, data[:end])
    first = [launch for launch in truth.launches if launch.device == "gpu:0"]
    assert trace.launches.select(pl.len()).collect().item() == len(first)
    assert "truncated" in counted(trace)


def test_a_plane_that_cannot_be_decoded_costs_no_other(tmp_path: Path) -> None:
    broken = block(1, text(2, "/device:GPU:1") + block(3, block(4, b"\x08")))
    trace = open_bytes(tmp_path, write_xplane(Options(steps=1))[0] + broken)
    assert trace.launches.select(pl.len()).collect().item() == 4
    assert counted(trace)["unreadable_plane"] == 1


def test_a_file_that_a_text_tool_destroyed_is_refused_in_words(tmp_path: Path) -> None:
    data = write_xplane(Options())[0].decode(errors="replace").encode()
    with pytest.raises(FormatError, match=r"bytes that a text tool replaced by U\+FFFD") as caught:
        open_bytes(tmp_path, data)
    assert caught.value.hint == "Copy the file again from where it was recorded, as binary."


def test_a_file_larger_than_the_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="expected at most 100 bytes, since it is held in memory"):
        open_bytes(tmp_path, write_xplane(Options())[0], limits=Limits(held_bytes=100))


def test_without_protobuf_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(schema._SCHEMA.__dict__, "_classes", raising=False)
    monkeypatch.setitem(sys.modules, "google.protobuf.descriptor_pb2", None)
    with pytest.raises(Unavailable, match="protobuf, which is not installed") as caught:
        schema.decode("XPlane", b"")
    assert caught.value.hint == "Install it with: pip install 'inferometer[jax]'"


def test_odd_events_are_counted_and_the_others_read(tmp_path: Path) -> None:
    plane = Plane("/device:GPU:0", [("dropped_traces", 5)])
    events = [
        plane.event("good", 0, 1_000),
        plane.event("negative", 0, -1_000),
        plane.event("long", 0, 2**63 - 1),
        whole(1, 99) + whole(2, 0) + whole(3, 2_000),  # no name
    ]
    plane.line(1, "Stream #7(Kernel)", 0, events)
    plane.line(2, "_counters_", 0, [plane.event("util", 5_000, 0, [("value", 97)]), plane.event("none", 5_000, 0)])
    plane.line(
        3, "Stream #8(MemcpyH2D)", 0, [plane.event("MemcpyH2D", 0, 3_000, [("memcpy_details", "size:64 dest:0")])]
    )
    plane.line(4, "What is this", 0, [plane.event("odd", 0, 1)])
    trace = open_bytes(tmp_path, plane.encode())
    columns = ("kind", "kernel", "stream", "dur_ns", "bytes")
    assert rows(trace, "launches", *columns) == [
        ("kernel", "good", 7, 1, None),
        ("kernel", "[string 99]", 7, 2, None),
        ("memcpy", "MemcpyH2D", 8, 3, 64),
    ]
    assert rows(trace, "counters", "metric", "device", "time_ns", "value") == [("util", "gpu:0", 5, 97.0)]
    losses = counted(trace)
    assert {
        name: losses[name] for name in ("negative_duration", "time_out_of_range", "without_string")
    } == dict.fromkeys(("negative_duration", "time_out_of_range", "without_string"), 1)
    assert (losses["counter_without_value"], losses["unknown_category"], losses["dropped_by_profiler"]) == (1, 1, 5)
    assert trace.losses.seen.total() == 4 + trace.losses.dropped()
