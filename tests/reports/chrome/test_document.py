"""Kineto to trace to Chrome trace to trace: the same rows, in any file that PyTorch writes."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conformance.samples import kineto
from tests.effort import examples
from tests.formats.kineto.test_properties import RANKS, TRACES, found, opened
from tests.formats.kineto.test_real_files import FILES
from tests.kineto_files import Event, call, event, kernel, write_file
from tests.traces import rows, trace_of

import inferometer
from inferometer import Trace
from inferometer.reports.chrome.document import find_ranks, write_chrome
from inferometer.trace.facts import NamedId

EVENT_TABLES = ("launches", "collectives", "calls", "ops", "frames", "spans", "counters")
SAMPLE = Path(__file__).parents[3] / "samples" / "decode.json.gz"


def exported(trace: Trace) -> bytes:
    file = io.BytesIO()
    (rank,) = find_ranks(trace)
    write_chrome(trace, {rank: file})
    return file.getvalue()


def in_order(frame: pl.LazyFrame) -> pl.DataFrame:
    """The rows in one order: a reader takes up categories in batches, so theirs is no promise."""
    flat = pl.col(pl.Array(pl.Int64, 3)).arr.to_struct().struct.json_encode()
    return frame.with_columns(flat).collect().sort(pl.all())


def assert_same(first: Trace, second: Trace) -> None:
    for table in EVENT_TABLES:
        assert in_order(first.tables[table]).equals(in_order(second.tables[table])), table


def assert_survives(path: Path, folder: Path) -> None:
    trace = inferometer.open(path)
    out = folder / "again.json"
    out.write_bytes(exported(trace))
    again = inferometer.open(out)
    assert_same(trace, again)
    for name in trace.facts.__struct_fields__:
        if name != "source":
            assert getattr(again.facts, name) == getattr(trace.facts, name), name
    dropped = {loss.name for loss in again.losses if loss.dropped}
    assert dropped <= {"metadata_event"}
    lines = [inferometer.render_markdown(inferometer.summarize(each)).splitlines() for each in (trace, again)]
    shown = [[line for line in each if "**File**" not in line] for each in lines]
    not_exported = ("flow_event", " environment ", r" masked\_secret ")
    assert [line for line in shown[0] if not any(word in line for word in not_exported)] == shown[1]


def test_the_sample_survives_a_round_trip(tmp_path: Path) -> None:
    assert_survives(SAMPLE, tmp_path)


@pytest.mark.parametrize("name", [name for name in FILES if name != "mi300_sglang_qwen3-8b_graph_capture_bs32"])
def test_a_real_capture_survives_a_round_trip(name: str, shared_data: Path, tmp_path: Path) -> None:
    assert_survives(shared_data / "traces" / "kineto" / f"{name}.json.gz", tmp_path)


def test_a_large_real_capture_keeps_its_rows(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "traces" / "kineto" / "mi300_sglang_qwen3-8b_graph_capture_bs32.json.gz"
    (tmp_path / "again.json").write_bytes(exported(inferometer.open(path)))
    assert_same(inferometer.open(path), inferometer.open(tmp_path / "again.json"))


def test_every_kind_of_event_survives_a_round_trip(tmp_path: Path) -> None:
    (tmp_path / "sample.json").write_bytes(kineto())
    trace = inferometer.open(tmp_path / "sample.json")
    (tmp_path / "again.json").write_bytes(exported(trace))
    assert_same(trace, inferometer.open(tmp_path / "again.json"))


def test_recorded_collectives_are_written_back(shared_data: Path, tmp_path: Path) -> None:
    trace = inferometer.open(shared_data / "traces" / "kineto" / "a100_nccl.json.gz")
    (tmp_path / "again.json").write_bytes(exported(trace))
    assert len(rows(trace, "collectives")) == 21
    assert_same(trace, inferometer.open(tmp_path / "again.json"))


@given(written=TRACES, rank=RANKS, batch=st.sampled_from([1, 2, 1 << 16]))
@examples(60)
def test_any_trace_survives_a_round_trip(
    tmp_path_factory: pytest.TempPathFactory, written: list[Event], rank: dict[str, Any], batch: int
) -> None:
    folder = tmp_path_factory.mktemp("round")
    trace = opened(write_file(written, before={"schemaVersion": 1} | rank), folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("inferometer.reports.chrome.document.BATCH_ROWS", batch)
        data = exported(trace)
    json.loads(data)
    again = opened(data, folder)
    for table in EVENT_TABLES:
        assert found(again, table) == found(trace, table)
    assert again.facts.ranks == trace.facts.ranks


@given(written=TRACES)
@examples(25)
def test_a_second_export_is_the_first(tmp_path_factory: pytest.TempPathFactory, written: list[Event]) -> None:
    folder = tmp_path_factory.mktemp("twice")
    first = exported(opened(write_file(written), folder))
    assert events_of(exported(opened(first, folder))) == events_of(first)


def events_of(data: bytes) -> list[str]:
    return sorted(json.dumps(each, sort_keys=True) for each in json.loads(data)["traceEvents"])


def test_the_quick_scan_for_launches_reads_an_export_too(read: Callable[..., Trace]) -> None:
    data = exported(read(write_file([call(), *(kernel(f"k{i}", str(100 + i), "0.5") for i in range(9))])))
    assert rows(read(data, {"launches"}), "launches", "kernel") == [f"k{i}" for i in range(9)]


def test_times_are_exact_where_a_float_is_not(read: Callable[..., Trace]) -> None:
    trace = read(write_file([kernel("k", "1767225600000000.123", "0.001"), kernel("early", "-0.001", "2")]))
    assert b'"ts":1767225600000000.123,"dur":0.001' in exported(trace)
    assert rows(read(exported(trace)), "launches", "start_ns", "dur_ns") == [
        (1767225600000000123, 1),
        (-1, 2000),
    ]


def test_process_and_thread_ids_that_were_text_are_text_again(read: Callable[..., Trace]) -> None:
    trace = read(write_file([event("Trace", "window", "1", "2", pid="Spans", tid="PyTorch Profiler")]))
    data = exported(trace)
    assert b'"pid":"Spans","tid":"PyTorch Profiler"' in data
    assert_same(trace, read(data))


def test_several_ranks_are_a_document_each_in_one_pass() -> None:
    launches = [{"kernel": f"k{rank}", "rank": rank} for rank in (1, 0, None, 1)]
    names = (NamedId(5, name="first", rank=0), NamedId(5, name="second", rank=1))
    trace = trace_of(launches, facts={"processes": names, "world_size": 2})
    assert find_ranks(trace) == [0, 1, None]
    files = {rank: io.BytesIO() for rank in find_ranks(trace)}
    assert write_chrome(trace, files) == {0: {"launches": 1}, 1: {"launches": 2}, None: {"launches": 1}}
    documents = {rank: json.loads(file.getvalue()) for rank, file in files.items()}
    assert documents[1]["distributedInfo"] == {"rank": 1, "world_size": 2}
    assert documents[None]["distributedInfo"] == {"world_size": 2}
    assert [each["name"] for each in documents[1]["traceEvents"]] == ["process_name", "k1", "k1"]
    assert documents[0]["traceEvents"][0]["args"] == {"name": "first"}


def test_an_empty_trace_is_a_document_without_events() -> None:
    assert json.loads(exported(trace_of()))["traceEvents"] == []
