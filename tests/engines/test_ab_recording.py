"""The recorded pass: a store that other commands read, and the device's time of each path."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.traces import trace_of

from inferometer.engines.ab.device_time import DOMAIN, device_time
from inferometer.engines.ab.recording import add_calls, allocations, device_time_so_far, plan_stores, store_names
from inferometer.engines.paths import PathRecorder, scope
from inferometer.errors import InputError
from inferometer.record.journal.journal import Journal
from inferometer.reports.views.view import sections_of


def span(name: str, start_ns: int, dur_ns: int, thread: int = 1) -> dict[str, Any]:
    where = {"domain": DOMAIN, "process": 1, "thread": thread}
    return {"span": name, **where, "start_ns": start_ns, "dur_ns": dur_ns}


def work(number: int, called_ns: int, start_ns: int, dur_ns: int, thread: int = 1) -> tuple[dict[str, Any], ...]:
    """A call, and the launch that it queued."""
    call = {"api": "cudaLaunchKernel", "process": 1, "thread": thread, "start_ns": called_ns, "dur_ns": 1}
    launch = {"process": 1, "start_ns": start_ns, "dur_ns": dur_ns, "correlation_id": number}
    return call | {"correlation_id": number}, launch


def test_a_path_has_the_union_of_what_was_launched_in_its_calls_and_its_callees() -> None:
    calls, launches = zip(
        work(1, 12, 100, 10),  # a.b, first call
        work(2, 14, 105, 10),  # the same; overlaps on the device
        work(3, 25, 200, 5),  # a, between the calls of b
        work(4, 32, 300, 7),  # a.b, second call
        work(5, 12, 400, 50, thread=2),  # another thread at the time of a.b
        work(6, 70, 500, 3),  # c, whose b is a path of its own
        work(7, 99, 600, 9),  # in no path
        strict=True,
    )
    spans = [
        *(span("a", 10, 40), span("b", 11, 9), span("b", 31, 9), span("c", 60, 20), span("b", 65, 10)),
        span("b", 11, 30) | {"domain": "modules"},
        span("idle", 82, 5),
    ]
    trace = trace_of(launches, calls=calls, spans=spans)
    assert device_time(trace).rows() == [
        ("a", 15 + 5 + 7, 307 - 100, 4),
        ("a.b", 15 + 7, 15 + 7, 3),
        ("c", 3, 3, 1),
        ("c.b", 3, 3, 1),
        ("idle", 0, 0, 0),
    ]


def test_equal_spans_nest_in_the_order_of_the_rows_and_threads_apart() -> None:
    (call, launch), (far_call, far_launch) = work(1, 12, 100, 4), work(2, 13, 200, 6, thread=2)
    spans = [span("a", 10, 5), span("b", 10, 5), span("a", 10, 5, thread=2)]
    found = device_time(trace_of([launch, far_launch], calls=[call, far_call], spans=spans))
    assert found.select("path", "device_busy_ns", "kernels").rows() == [("a", 10, 2), ("a.b", 4, 1)]


def test_a_call_that_begins_where_one_ends_is_beside_it() -> None:
    call, launch = work(1, 15, 100, 4)
    found = device_time(trace_of([launch], calls=[call], spans=[span("a", 10, 5), span("b", 15, 5)]))
    assert found.select("path", "kernels").rows() == [("a", 0), ("b", 1)]


def test_without_device_work_that_was_called_for_there_are_no_times() -> None:
    for launches in ([], [{"device": "cpu", "process": 1, "start_ns": 12, "dur_ns": 2}]):  # an op on a CPU has no call
        assert device_time(trace_of(launches, spans=[span("a", 10, 5)])).rows() == []


def test_a_recording_that_runs_is_read_for_its_device_time(tmp_path: Path) -> None:
    import os
    import threading

    recorder = PathRecorder()
    with recorder.entered(), scope("completion"):
        for _ in range(2):
            with scope("decode"):
                pass
    where: dict[str, Any] = {"process": os.getpid(), "thread": threading.get_native_id()}
    with Journal(tmp_path / "a.ifm") as journal:
        add_calls(journal, recorder)
        at = [journal.clock.at(start) for start in recorder.start_ns]  # of decode, decode, completion
        ids = [1, 2, 3]
        called = {"api": "cudaLaunchKernel", **where, "start_ns": at, "dur_ns": 0, "correlation_id": ids}
        journal.add("calls", 3, called)
        ran = {"kind": "kernel", "kernel": "k", "device": "gpu:0", "process": where["process"], "correlation_id": ids}
        journal.add("launches", 3, {**ran, "start_ns": [1000, 1100, 1050], "dur_ns": [100, 100, 100]})
        found = device_time_so_far(journal)
    assert found.select("path", "device_busy_ns", "kernels").rows() == [
        ("completion", 200, 3),
        ("completion.decode", 200, 2),
    ]


def test_of_calls_at_the_same_time_the_caller_stands_first(tmp_path: Path) -> None:
    import inferometer

    recorder = PathRecorder()
    with recorder.entered(), scope("a"), scope("b"), scope("c"):
        pass
    recorder.start_ns, recorder.end_ns = [100] * 3, [200] * 3  # as a coarse clock has it
    with Journal(tmp_path / "a.ifm") as journal:
        add_calls(journal, recorder)
    with inferometer.open(tmp_path / "a.ifm") as trace:
        assert trace.spans.collect()["span"].to_list() == ["a", "b", "c"]
        assert trace.call_paths.collect().select("path_id", "parent_id", "name", "depth").rows() == [
            *((0, None, "a", 0), (1, 0, "b", 1), (2, 1, "c", 2)),
        ]


def test_each_arm_has_a_store_of_its_own(tmp_path: Path) -> None:
    assert store_names(["torch", "torch (2)", "rms_norm=triton,attention=compile", "a/b", "a b"]) == {
        "torch": "torch.ifm",
        "torch (2)": "torch_2.ifm",
        "rms_norm=triton,attention=compile": "rms_norm=triton,attention=compile.ifm",
        "a/b": "a_b.ifm",
        "a b": "a_b.2.ifm",
    }
    folder = tmp_path / "new" / "folder"
    assert plan_stores(["torch"], folder, force=False) == {"torch": folder / "torch.ifm"}
    (folder / "torch.ifm").mkdir()
    with pytest.raises(InputError, match=r"torch\.ifm: already exists"):
        plan_stores(["torch"], folder, force=False)
    with pytest.raises(InputError, match=r"torch\.ifm: exists and is not a store"):
        plan_stores(["torch"], folder, force=True)
    (folder / "torch.ifm" / "facts.json").write_text("")
    assert plan_stores(["torch"], folder, force=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="no folder can be made there"):
        plan_stores(["torch"], tmp_path / "file" / "below", force=False)


def test_stores_have_the_paths_their_sums_and_the_steps_and_compare_takes_them(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tests.engines.toy_engine import ToyEngine, arm, slow

    import inferometer
    from inferometer.analyses.compare.comparison import compare
    from inferometer.engines.ab import Plan, measure_ab
    from inferometer.engines.arms import TORCH_ONLY

    arms = [TORCH_ONLY, arm("lazy", ["silu_mul"], slow(1e-3))]
    plan = Plan(5, 4, 1, 1)
    found = measure_ab(ToyEngine(), arms, plan, stores=tmp_path)
    assert dict(found.stores) == {name: str(tmp_path / f"{name}.ifm") for name in ("torch", "lazy")}
    assert (found.ended, found.busy.height) == (None, 0)
    with inferometer.open(found.stores["lazy"]) as trace, inferometer.open(found.stores["torch"]) as base:
        assert trace.facts.model == "toy"
        assert any("by the arm lazy" in note for note in trace.facts.notes)
        paths = trace.call_paths.collect()
        totals = trace.path_totals.collect()
        root = totals.row(0, named=True)
        assert (root["calls"], root["device_busy_ns"], root["backend"]) == (1, None, None)
        assert totals["self_ns"].sum() == root["host_ns"]
        named = totals.join(paths, on="path_id").filter(pl.col("name") == "silu_mul")
        assert named.select("calls", "backend").rows() == [(1, "lazy"), (1, "lazy"), (3, "lazy"), (3, "lazy")]
        assert (named["host_ns"] >= named["calls"] * 1_000_000).all()
        spans = trace.spans.filter(pl.col("domain") == DOMAIN).collect()
        assert spans.height == totals["calls"].sum()
        assert spans.filter(pl.col("span") == "completion")["dur_ns"].to_list() == [root["host_ns"]]
        assert trace.steps.collect()["phase"].to_list() == ["prefill", "decode", "decode", "decode"]
        assert trace.ops.select(pl.len()).collect().item() > 0
        assert sections_of(compare(base, trace))
    with pytest.raises(InputError, match="already exists"):
        measure_ab(ToyEngine(), arms, plan, stores=tmp_path)


class FakeEvent:
    """An event of a device on which every third microsecond something is recorded."""

    now_us = 0

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        FakeEvent.now_us += 3
        self.at_us = FakeEvent.now_us

    def query(self) -> bool:
        return False

    def elapsed_time(self, last: "FakeEvent") -> float:
        return (last.at_us - self.at_us) / 1e3  # ms


def test_on_a_gpu_each_call_has_its_span_and_the_device_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = pytest.importorskip("torch")
    from tests.engines.toy_engine import ToyEngine

    from inferometer.engines.ab.completion import Work
    from inferometer.engines.ab.rows import take_calls

    waits: list[str] = []
    monkeypatch.setattr(torch.cuda, "Event", FakeEvent)
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: None)
    monkeypatch.setattr(torch.cuda, "synchronize", waits.append)
    recorder = PathRecorder("cuda")
    with recorder.entered():
        Work(ToyEngine(), torch.zeros(1, 2, dtype=torch.int64), torch.zeros(1, 1, dtype=torch.int64)).run()
    calls = take_calls(recorder)
    assert waits == ["cuda"]
    assert calls["span_ns"].null_count() == 0
    assert calls.row(-1, named=True)["span_ns"] == 3_000 * (2 * calls.height - 1)  # completion holds all others
    assert calls["span_ns"].min() == 3_000
    assert (recorder.path_of, recorder.span_ns) == ([], [])


def test_a_gpus_allocations_are_those_of_its_allocator_and_a_cpus_are_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda device: {"allocated_bytes.all.allocated": 7, "at": device})
    counted = allocations("cuda:1")
    assert counted is not None
    assert counted() == 7
    assert allocations("cpu") is None
