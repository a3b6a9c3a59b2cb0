"""Module paths, the user's functions, steps, and how the analyses read them back."""

import sys
import threading
from types import SimpleNamespace
from typing import Any, ClassVar

import polars as pl
import pytest
from tests.record.interception.recorded import Recorded

from inferometer.analyses.launched_by.attribution import attribute
from inferometer.analyses.steps.sources import read_steps
from inferometer.names.module_paths import module_of_range
from inferometer.record.interception import Interception, step

torch = pytest.importorskip("torch", reason="torch isn't installed")
pytestmark = pytest.mark.usefixtures("way")


class Block(torch.nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.up = torch.nn.Linear(4, 8)
        self.act = torch.nn.ReLU()

    def forward(self, x: Any) -> Any:
        return halved(self.act(self.up(x)))


class Model(torch.nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([Block(), Block()])

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)[:, :4]
        return x + 1


class Broken(torch.nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def forward(self, x: Any) -> Any:
        raise self.error


def halved(x: Any) -> Any:
    return x * 0.5


def work(model: Any, x: Any) -> Any:
    return model(x).sum()


def recorded(*calls: Any, **options: bool) -> Recorded:
    sink = Recorded()
    with Interception(sink, **options):
        for call in calls:
            call()
    assert sink.lost == []
    return sink


def paths(sink: Recorded) -> list[str | None]:
    return [module_of_range(span) for span in sink.rows("spans").filter(domain="modules")["span"]]


def test_modules_have_their_paths_in_the_outermost_model() -> None:
    model, x = Model(), torch.ones(2, 4)
    block = ["layers.{}", "layers.{}.up", "layers.{}.act"]
    whole = ["Model", *(path.format(i) for i in (0, 1) for path in block)]
    assert paths(recorded(lambda: model(x))) == whole
    assert paths(recorded(lambda: model(x), lambda: model.layers[1](x)))[7:] == whole[4:]
    assert paths(recorded(lambda: model.layers[1](x))) == ["Block", "up", "act"]


def test_each_launch_has_its_module_and_the_innermost_function_of_the_users() -> None:
    model, x = Model(), torch.ones(2, 4)
    found = attribute(recorded(lambda: work(model, x)).trace()).each()
    rows = found.select("kernel", "module", pl.col("user_frame").str.extract(r": (\w+)$")).rows()
    layer = [("aten::addmm", "up", "forward"), ("aten::relu", "act", "forward"), ("aten::mul", None, "halved")]
    expected = [
        (kernel, f"layers.{i}.{part}" if part else f"layers.{i}", name) for i in (0, 1) for kernel, part, name in layer
    ]
    assert rows == [*expected, ("aten::add", "Model", "forward"), ("aten::sum", None, "work")]


def test_ranges_of_a_thread_nest() -> None:
    model, x = Model(), torch.ones(2, 4)

    def loop() -> None:
        with step(phase="decode", batch=2):
            for _ in range(5):
                work(model, x).neg()
                halved(halved(x))

    sink = recorded(loop, loop)
    parts = [sink.rows(table).select("start_ns", "dur_ns") for table in ("ops", "frames", "spans")]
    ranges = pl.concat(parts).with_columns(end=pl.col("start_ns") + pl.col("dur_ns"))
    opened: list[int] = []
    for start, _, end in ranges.sort("start_ns", pl.col("end") * -1).rows():
        while opened and opened[-1] <= start:
            opened.pop()
        assert not opened or end <= opened[-1]
        opened.append(end)


def test_consecutive_ops_of_a_call_are_one_range_that_covers_them() -> None:
    x = torch.ones(2)

    def three() -> None:
        x.neg()
        x.exp()
        halved(x)

    sink = recorded(three)
    (frame,) = sink.rows("frames").filter(pl.col("frame").str.ends_with(": three")).rows(named=True)
    ops = sink.rows("ops")
    assert ops.height == 3
    assert frame["start_ns"] <= ops["start_ns"][0]
    assert frame["start_ns"] + frame["dur_ns"] == ops["start_ns"][2] + ops["dur_ns"][2]
    line = three.__code__.co_firstlineno
    assert frame["frame"].endswith(f"test_modules_and_frames.py({line}): three")


def test_frames_and_modules_can_be_left_out() -> None:
    model, x = Model(), torch.ones(2, 4)
    sink = recorded(lambda: model(x), stacks=False, modules=False)
    assert sink.rows("frames").is_empty()
    assert sink.rows("spans").is_empty()
    assert sink.facts.recorded == {"shapes": True, "stacks": False, "modules": False}


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_a_module_that_fails_is_closed(error: BaseException) -> None:
    model, x = torch.nn.Sequential(Broken(error)), torch.ones(2, 4)

    def fail() -> None:
        with pytest.raises(type(error)):
            model(x)

    sink = recorded(fail, lambda: torch.nn.ReLU()(x))
    assert paths(sink) == ["Sequential", "0", "ReLU"]
    launches = attribute(sink.trace()).each()
    assert launches["module"].to_list() == ["ReLU"]


def test_modules_keep_no_model_alive() -> None:
    import gc
    import weakref

    sink, model = Recorded(), Model()
    with Interception(sink):
        model(torch.ones(1, 4))
        seen = weakref.ref(model)
        del model
        gc.collect()
        assert seen() is None


def test_steps_are_read_back_with_phase_batch_and_tokens() -> None:
    x = torch.ones(2, 2)

    def engine() -> None:
        with step(phase="prefill", batch=1, tokens=7):
            torch.mm(x, x)
        for _ in range(2):
            step(phase="decode", batch=3)
            torch.mm(x, x)
        step("mixed", temperature=0.5)

    sink = recorded(engine)
    spans = sink.rows("spans")["span"].to_list()
    decode = "step[DECODE bs=3]"
    assert spans == ["step[EXTEND bs=1 toks=7]", decode, decode, "step[MIXED temperature=0.5]"]
    result = read_steps(sink.trace())
    found = result.steps.select("phase", "tokens", "step").rows()
    assert found == [("prefill", 7, 0), ("decode", 3, 1), ("decode", 3, 2), ("mixed", None, 3)]


def test_steps_without_a_recording_do_nothing() -> None:
    from inferometer.record.interception import steps

    assert step(phase="decode") is step()
    with step(phase="prefill", tokens=1) as made:
        assert made is step()
    assert steps._open == {}


def test_steps_of_threads_end_with_the_recording() -> None:
    sink = Recorded()
    with Interception(sink):
        thread = threading.Thread(target=lambda: step(phase="decode"))
        thread.start()
        thread.join()
        with step():
            step("prefill")
    rows = sink.rows("steps")
    assert sorted(rows["phase"].to_list(), key=str) == [None, "decode", "prefill"]
    assert rows["dur_ns"].min() >= 0  # type: ignore[operator]


def test_compilation_is_as_without() -> None:
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()
    model, x = Model(), torch.ones(2, 4)
    compiled = torch.compile(model, backend=counter, fullgraph=True)
    expected = compiled(x)
    sink = Recorded()
    for _ in range(2):
        with Interception(sink):
            assert torch.equal(compiled(x), expected)
        compiled(x)
    assert counter.frame_count == 1
    assert sink.ops().count("aten::addmm") == 4
    torch._dynamo.reset()
    with Interception(sink):
        compiled(x)
    assert counter.frame_count == 2
    torch._dynamo.reset()


class Graph:
    """In place of Inductor's compiled graph."""

    fx_kwargs: ClassVar[dict[str, Any]] = {"graph_id": 3, "is_backward": True}

    def __call__(self, inputs: Any) -> Any:
        return [torch.mm(*inputs)] if len(inputs) == 2 else [None]


def test_a_compiled_region_is_one_op_and_a_launch_where_it_calls_none(monkeypatch: pytest.MonkeyPatch) -> None:
    call = Graph.__call__
    monkeypatch.setitem(sys.modules, "torch._inductor.output_code", SimpleNamespace(CompiledFxGraph=Graph))
    x = torch.ones(2, 2)
    sink = recorded(lambda: Graph()([x]), lambda: Graph()([x, x]))
    region = "Torch-Compiled Region: 3 backward"
    assert sink.ops() == [region, region, "aten::mm"]
    assert sink.rows("ops")["input_dims"].to_list()[:2] == ["[[2, 2]]", "[[2, 2], [2, 2]]"]
    assert sink.rows("launches")["kernel"].to_list() == [region, "aten::mm"]
    assert Graph.__call__ is call
