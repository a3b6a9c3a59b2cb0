"""Ops: names, arguments, launches, failures, and what must not be seen."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.record.interception.recorded import Recorded

from inferometer.record.interception import Interception

torch = pytest.importorskip("torch", reason="torch isn't installed")
pytestmark = pytest.mark.usefixtures("way")


def recorded(work: Callable[[], Any], **options: bool) -> Recorded:
    sink = Recorded()
    with Interception(sink, **options):
        work()
    assert sink.lost == []
    return sink


def only(sink: Recorded, op: str) -> dict[str, Any]:
    return sink.rows("ops").filter(pl.col("op") == op).row(0, named=True)


def depth() -> int:
    return int(torch._C._len_torch_dispatch_stack())


def test_an_op_has_its_name_shapes_types_strides_and_scalars() -> None:
    a, b = torch.ones(2, 3), torch.ones(3, 2).t()
    row = only(recorded(lambda: torch.add(a, b, alpha=3)), "aten::add")
    assert json.loads(row["input_dims"]) == [[2, 3], [2, 3], []]
    assert json.loads(row["input_dtypes"]) == ["float", "float", "Scalar"]
    assert json.loads(row["input_strides"]) == [[3, 1], [1, 2], []]
    assert json.loads(row["scalars"]) == ["", "", "3"]


def test_equal_numbers_of_other_types_are_other_calls() -> None:
    x = torch.ones(2)
    sink = recorded(lambda: [torch.mul(x, number) for number in (1, 1.0, True, 1)])
    types = [json.loads(text)[1] for text in sink.rows("ops")["input_dtypes"]]
    assert types == ["long int", "double", "bool", "long int"]


CALLS: dict[str, Callable[[Any], Any]] = {
    "aten::mm": lambda x: torch.mm(x, x),
    "aten::cat": lambda x: torch.cat([x, x], 1),
    "aten::sum": lambda x: torch.ops.aten.sum.dim_IntList(x, [0], True, dtype=torch.float64),
    "aten::_to_copy": lambda x: x.to(torch.bfloat16),
    "aten::relu": lambda x: torch.relu(x.half()),
    "aten::index_select": lambda x: torch.index_select(x, 0, torch.arange(2)),
    "aten::clamp": lambda x: torch.clamp(x, max=0.5),
    "aten::arange": lambda x: torch.arange(4, dtype=torch.int32),
    "aten::view": lambda x: x.view(9),
    "aten::bitwise_and": lambda x: torch.bitwise_and(x.to(torch.uint8), x.to(torch.uint8)),
    "aten::neg": lambda x: torch.neg(torch.complex(x, x)),
    "aten::add": lambda x: torch.add(x.to(torch.int16), x.to(torch.int8)),
    "aten::_foreach_mul": lambda x: torch._foreach_mul([x, x], 2.0),
}


def profiled(call: Callable[[], Any], op: str, path: Path) -> dict[str, Any]:
    """What PyTorch's own profiler says of the first such op."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profiler:
        call()
    profiler.export_chrome_trace(str(path))
    events = [event for event in json.loads(path.read_text())["traceEvents"] if event["name"] == op]
    args: dict[str, Any] = min(events, key=lambda event: event["ts"])["args"]
    return args


@pytest.mark.parametrize("op", CALLS)
def test_arguments_read_as_in_the_profilers_trace(op: str, tmp_path: Path) -> None:
    x = torch.ones(3, 3)
    row = only(recorded(lambda: CALLS[op](x)), op)
    args = profiled(lambda: CALLS[op](x), op, tmp_path / "trace.json")
    assert json.loads(row["input_dims"]) == args["Input Dims"]
    assert json.loads(row["input_dtypes"]) == args["Input type"]
    assert json.loads(row["input_strides"]) == args["Input Strides"]
    assert json.loads(row["scalars"]) == args["Concrete Inputs"]


def test_ops_that_compute_are_launches_of_the_cpu_and_views_are_none() -> None:
    x = torch.ones(4, 4)

    def work() -> None:
        torch.mm(x, x).t().expand(2, 4, 4).detach()
        torch.ops.aten._unsafe_view(x, [16])
        torch.ops.aten._unsafe_view(x, [16])
        torch.empty(3)
        x.add_(1)

    sink = recorded(work)
    launches = sink.rows("launches")
    assert launches["kernel"].to_list() == ["aten::mm", "aten::add_"]
    assert launches.select("device", "kind").unique().rows() == [("cpu", "kernel")]
    same = launches.join(sink.rows("ops"), on="external_id", suffix="_op")
    assert same.filter(start_ns=pl.col("start_ns_op"), dur_ns=pl.col("dur_ns_op"), kernel=pl.col("op")).height == 2
    assert any("device `cpu`" in note for note in sink.facts.notes)


def test_in_inference_mode_a_reshape_is_a_launch_only_where_it_copies() -> None:
    x = torch.ones(4, 6)

    @torch.inference_mode()
    def work() -> None:
        x.reshape(24)
        x.t().reshape(24)

    launches = recorded(work).rows("launches")["kernel"].to_list()
    assert len(launches) == 1


def test_without_cpu_launches_there_are_ops_alone() -> None:
    sink = recorded(lambda: torch.ones(2) + 1, cpu_launches=False)
    assert sink.rows("launches").is_empty()
    assert sink.ops() == ["aten::ones", "aten::add"]
    assert not any("launches" in note for note in sink.facts.notes)


def test_a_failing_op_keeps_its_error_and_its_row() -> None:
    def work() -> None:
        with pytest.raises(RuntimeError, match="mat1 and mat2 shapes") as caught:
            torch.mm(torch.ones(2, 3), torch.ones(2, 3))
        assert type(caught.value) is RuntimeError

    sink = recorded(work)
    assert sink.ops()[-1] == "aten::mm"
    assert "aten::mm" not in sink.rows("launches")["kernel"].to_list()


def test_ids_are_unique_and_backward_is_seen() -> None:
    w = torch.ones(3, 3, requires_grad=True)
    sink = recorded(lambda: (torch.ones(2, 3) @ w).relu().sum().backward())
    assert "aten::threshold_backward" in sink.ops()
    assert sink.rows("ops")["external_id"].is_unique().all()
    assert w.grad is not None


def test_results_are_the_same_with_and_without() -> None:
    torch.manual_seed(0)
    model, x = torch.nn.Linear(5, 3), torch.randn(4, 5)
    expected = model(x)
    got: list[Any] = []
    recorded(lambda: got.append(model(x)))
    assert torch.equal(got[0], expected)


def test_a_custom_op_is_one_op_and_one_launch() -> None:
    library = torch.library.Library("inferometer_test", "DEF")
    library.define("twice(Tensor x, int n=2) -> Tensor")
    library.impl("twice", lambda x, n=2: x * n, "CPU")
    sink = recorded(lambda: torch.ops.inferometer_test.twice(torch.zeros(3)))
    row = only(sink, "inferometer_test::twice")
    assert json.loads(row["input_dims"]) == [[3], []]
    assert json.loads(row["scalars"]) == ["", "2"]
    assert sink.rows("launches")["kernel"].to_list() == ["aten::zeros", "inferometer_test::twice"]
    library._destroy()


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_tensors_without_strides_have_rows_without_shapes() -> None:
    sparse = torch.eye(3).to_sparse_csr()
    row = recorded(lambda: torch.neg(sparse)).rows("ops").row(0, named=True)
    assert row["op"] == "aten::neg"
    assert row["input_dims"] is None


def test_fake_tensors_are_not_recorded() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    def work() -> None:
        with FakeTensorMode():
            torch.mm(torch.ones(2, 2), torch.ones(2, 2))

    assert recorded(work).rows("ops").is_empty()


class Wrapped(torch.Tensor):  # type: ignore[misc,name-defined]
    """A subclass that runs each op on what it wraps."""

    @staticmethod
    def __new__(cls, inner: Any) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return cls(func(*[each.inner if isinstance(each, cls) else each for each in args], **(kwargs or {})))


def test_a_subclass_shows_what_it_runs_within_its_op() -> None:
    x = Wrapped(torch.ones(2, 2))
    sink = recorded(lambda: torch.mm(x, x))
    outer, inner = sink.rows("ops").filter(op="aten::mm").select("start_ns", "dur_ns").rows()
    assert outer[0] < inner[0]
    assert inner[0] + inner[1] < outer[0] + outer[1]
    assert sink.rows("launches").height == 1


def test_threads_that_begin_later_are_seen_and_leave_nothing(way: str) -> None:
    depths: list[int] = []

    def on_thread() -> None:
        torch.ones(2).neg()
        depths.append(depth())

    def work() -> None:
        thread = threading.Thread(target=on_thread)
        thread.start()
        thread.join()

    sink = recorded(work)
    assert sink.ops() == ["aten::ones", "aten::neg"]
    assert sink.rows("ops")["thread"].n_unique() == 1
    assert sink.rows("ops")["thread"][0] != threading.get_native_id()
    assert depths == [1 if way == "mode" else 0]


@pytest.fixture
def waiting() -> Iterator[Callable[[Callable[[], Any]], None]]:
    """Runs work on a thread that began before."""
    tasks: list[Callable[[], Any]] = []
    ready, done = threading.Semaphore(0), threading.Semaphore(0)

    def loop() -> None:
        while ready.acquire() and tasks:
            tasks.pop()()
            done.release()

    thread = threading.Thread(target=loop)
    thread.start()

    def run(task: Callable[[], Any]) -> None:
        tasks.append(task)
        ready.release()
        done.acquire()

    yield run
    ready.release()
    thread.join()


def test_a_mode_sees_ops_within_modules_on_a_thread_that_ran_before_and_the_observer_all(
    way: str, waiting: Callable[[Callable[[], Any]], None]
) -> None:
    depths: list[int] = []

    def task() -> None:
        torch.ones(2).neg()
        torch.nn.ReLU()(torch.ones(2))
        depths.append(depth())

    sink = recorded(lambda: waiting(task))
    assert sink.ops() == (["aten::relu"] if way == "mode" else ["aten::ones", "aten::neg", "aten::ones", "aten::relu"])
    assert depths == [0]
    is_noted = any(re.match(r"[1-9]\d* Python threads ran before", note) for note in sink.facts.notes)
    assert is_noted == (way == "mode")


@pytest.mark.parametrize("way", ["mode"], indirect=True)
def test_two_at_once_both_see_and_either_may_end_first() -> None:
    first, second = Recorded(), Recorded()
    outer, inner = Interception(first), Interception(second)
    outer.start()
    inner.start()
    torch.ones(1)
    outer.stop()
    torch.zeros(1)
    inner.stop()
    assert (first.ops(), second.ops()) == (["aten::ones"], ["aten::ones", "aten::zeros"])
    assert depth() == 0


def test_starting_and_stopping_often_leaves_nothing() -> None:
    from torch.nn.modules import module

    run, before = threading.Thread._bootstrap_inner, threading.active_count()  # type: ignore[attr-defined]
    sink = Recorded()
    interception = Interception(sink)
    for _ in range(20):
        interception.start()
        interception.start()
        torch.ones(1)
        interception.stop()
        interception.stop()
    assert sink.ops() == ["aten::ones"] * 20
    assert sink.rows("ops")["external_id"].is_unique().all()
    assert depth() == 0
    assert not module._global_forward_hooks
    assert not module._global_forward_pre_hooks
    assert not module._global_forward_hooks_always_called
    assert threading.Thread._bootstrap_inner is run  # type: ignore[attr-defined]
    assert threading.active_count() == before
    torch.ones(1)
    assert len(sink.ops()) == 20


@pytest.mark.parametrize("way", ["mode"], indirect=True)
def test_rows_are_handed_over_while_it_runs() -> None:
    from inferometer.record.interception import recording

    sink = Recorded()
    with Interception(sink):
        x = torch.ones(1)
        for _ in range(recording.FLUSH_ROWS + 1):
            x.neg()
        assert sink.rows("ops").height > recording.FLUSH_ROWS
    assert sink.rows("ops").height == recording.FLUSH_ROWS + 2


def test_what_waits_can_be_handed_over_or_dropped_at_any_time() -> None:
    sink = Recorded()
    interception = Interception(sink)
    interception.start()
    torch.ones(1)
    interception.flush()
    assert sink.ops() == ["aten::ones"]
    torch.zeros(1)
    interception.abandon()
    torch.zeros(1)
    interception.stop()
    assert sink.ops() == ["aten::ones"]
    assert depth() == 0
