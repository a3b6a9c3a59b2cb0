"""What the observer alone can do, and where it could go wrong."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from textwrap import dedent
from typing import Any

import polars as pl
import pytest
from tests.record.interception.recorded import Recorded

from inferometer.record.interception import Interception, by_observer, interceptor
from inferometer.record.interception.by_observer import ByObserver
from inferometer.record.parts import OPS_BY, Makers, Options
from inferometer.trace.store import read_store

torch = pytest.importorskip("torch", reason="torch isn't installed")

PLAIN = {"stacks": False, "modules": False, "cpu_launches": False}


def test_a_full_buffer_counts_what_it_lost(observer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_observer, "MOST_ROWS", 4)
    sink = Recorded()
    way = ByObserver(sink, observer, **PLAIN)
    way.start()
    for _ in range(10):
        torch.empty(0)
    way.stop()
    assert sink.ops() == ["aten::empty"] * 4
    assert sink.lost == [("buffer_full", "6 ops, 0 ranges of modules and functions")]


def test_rows_are_handed_over_as_a_buffer_fills(observer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_observer, "MOST_ROWS", 1_000)
    monkeypatch.setattr(interceptor, "FLUSH_NS", 600_000_000_000)
    sink = Recorded()
    with Interception(sink, observer=observer):
        for _ in range(501):
            torch.empty(0)
        while not sink.ops():  # by the thread that waits for this
            time.sleep(0.01)
    assert len(sink.ops()) == 501


def test_more_calls_than_are_remembered_keep_their_shapes(observer: Any) -> None:
    sink = Recorded()
    way = ByObserver(sink, observer, **PLAIN)
    way.start()
    for size in range(20_100):
        torch.empty(size)
    torch.empty(7)
    way.stop()
    sizes = [json.loads(text)[0] for text in sink.rows("ops")["scalars"].to_list()]
    assert sizes == [f"[{size}]" for size in (*range(20_100), 7)]


def test_an_op_that_has_not_ended_is_counted(observer: Any) -> None:
    sink, begun, going_on = Recorded(), threading.Event(), threading.Event()
    library = torch.library.Library("inferometer_waiting", "DEF")
    library.define("wait(Tensor x) -> Tensor")

    def wait(x: Any) -> Any:
        begun.set()
        going_on.wait()
        return x.clone()

    library.impl("wait", wait, "CPU")
    with Interception(sink, observer=observer):
        thread = threading.Thread(target=lambda: torch.ops.inferometer_waiting.wait(torch.zeros(2)))
        thread.start()
        begun.wait()
    going_on.set()
    thread.join()
    assert sink.ops() == ["aten::zeros"]
    assert sink.lost == [("begin_without_end", "an op that had not ended with the recording")]
    library._destroy()


def test_an_op_that_its_autograd_function_calls_again_is_one(observer: Any) -> None:
    library = torch.library.Library("inferometer_again", "DEF")
    library.define("twice(Tensor x) -> Tensor")

    def below_autograd(x: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            return torch.ops.inferometer_again.twice(x)

    library.impl("twice", lambda x: x * 2, "CPU")
    library.impl("twice", below_autograd, "Autograd")
    sink = Recorded()
    x = torch.zeros(3)
    with Interception(sink, observer=observer):
        torch.ops.inferometer_again.twice(x)
    assert sink.ops() == ["inferometer_again::twice"]
    library._destroy()


def test_autocast_functorch_and_modes_show_what_they_call(observer: Any) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    x = torch.ones(2, 3, 3)
    sink = Recorded()
    with Interception(sink, observer=observer), torch.no_grad():
        with torch.autocast("cpu", torch.bfloat16):
            torch.mm(x[0], x[1])
        torch.vmap(torch.relu)(x)
        with FlopCounterMode(display=False):
            torch.nn.functional.linear(x[0], x[1])
    expected = ["select", "select", "_to_copy", "_to_copy", "mm", "relu", "select", "select", "t", "mm"]
    assert sink.ops() == [f"aten::{name}" for name in expected]


def test_others_see_what_an_op_calls_inside_and_go_on_after_one_that_fails(observer: Any) -> None:
    from torch.profiler import ProfilerActivity, profile

    x, wrong, layer, sink = torch.ones(2, 3), torch.ones(2, 4), torch.nn.Linear(3, 3), Recorded()
    with torch.inference_mode(), Interception(sink, observer=observer):
        for _ in range(3):  # from the second on, observers are off within it
            layer(x)
        with pytest.raises(RuntimeError, match="shapes"):
            layer(wrong)
        with profile(activities=[ProfilerActivity.CPU]) as profiled:
            layer(x)
        x.neg()
    assert sink.ops() == [*["aten::linear"] * 5, "aten::neg"]
    assert {"aten::linear", "aten::addmm"} <= {event.name for event in profiled.events()}


def test_one_recording_at_a_time_has_it(observer: Any) -> None:
    with (
        Interception(Recorded(), observer=observer),
        pytest.raises(RuntimeError, match="observed already"),
        Interception(Recorded(), observer=observer),
    ):
        pass
    with Interception(Recorded(), observer=observer):
        pass


NO_COMPILER = (
    "Ops are seen by a dispatch mode, at a higher cost: the observer can't be built: there is no C++ compiler "
    "(c++, g++, clang++, or the one that CXX names)"
)
ASKING = """
    import sys
    import torch
    import inferometer
    with inferometer.record(sys.argv[1], counters=False, workers=False, ops_by=ASKED) as recording:
        torch.ones(1)
    for remark in recording.remarks:
        print(remark)
"""
SCRIPT = """
    import os, sys
    import torch
    import inferometer
    with inferometer.record(sys.argv[1], counters=False, ops_by="observer") as recording:
        torch.ones(1)
        if not (child := os.fork()):
            torch.zeros(2)
            recording.flush()
            os._exit(0)
        os.waitpid(child, 0)
        torch.ones(3)
    assert not recording.remarks, recording.remarks
"""


def test_a_forked_child_records_itself(observer: Any, tmp_path: Path) -> None:
    store = tmp_path / "run.ifm"
    subprocess.run([sys.executable, "-c", dedent(SCRIPT), str(store)], check=True, timeout=300)
    with read_store(store) as trace:
        rows = trace.ops.sort("start_ns").select("op", "process").collect()
    assert rows["op"].to_list() == ["aten::ones", "aten::zeros", "aten::ones"]
    assert rows["process"].n_unique() == 2
    assert rows.filter(pl.col("op") == "aten::zeros")["process"][0] != rows["process"][0]


@pytest.mark.parametrize(
    ("asked", "remarks", "notes"), [(None, [], 1), ("observer", [NO_COMPILER], 1), ("mode", [], 0)]
)
def test_by_default_it_is_taken_where_it_can_be_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Any, remarks: list[str], notes: int
) -> None:
    """The script can't find a compiler. That is a note, and a remark where the observer was asked for."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CXX", OPS_BY):
        monkeypatch.delenv(name, raising=False)
    store, script = tmp_path / "run.ifm", dedent(ASKING).replace("ASKED", repr(asked))
    words = [sys.executable, "-c", script, str(store)]
    ran = subprocess.run(words, check=True, timeout=300, capture_output=True, text=True)
    assert ran.stdout.splitlines() == remarks
    with read_store(store) as trace:
        assert trace.ops.select("op").collect()["op"].to_list() == ["aten::ones"]
        assert trace.facts.notes.count(NO_COMPILER) == notes


def test_by_default_it_sees_the_ops(observer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(OPS_BY, raising=False)
    assert isinstance(Makers().ops(Recorded(), Options())._way, ByObserver)  # type: ignore[attr-defined]
