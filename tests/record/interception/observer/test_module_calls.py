"""Calls of modules as the observer sees them: all of them, while PyTorch's own objects stay what they are."""

import copy
import io
import pickle
import threading
from typing import Any

import pytest
from tests.record.interception.recorded import Recorded

from inferometer.names.module_paths import module_of_range
from inferometer.record.interception import Interception

torch = pytest.importorskip("torch", reason="torch isn't installed")


class Double(torch.nn.Module):  # type: ignore[misc,name-defined]
    def forward(self, x: Any) -> Any:
        return x * 2


class CallsSuper(Double):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs)


class CallsSuperPlainly(Double):
    def __call__(self, x: Any) -> Any:
        return super().__call__(x)


def modules(sink: Recorded) -> list[str | None]:
    return [module_of_range(span) for span in sink.rows("spans").filter(domain="modules")["span"]]


def test_pytorch_has_the_same_functions_and_no_hooks_while_modules_are_seen(observer: Any) -> None:
    from torch.nn.modules.module import _has_any_global_hook

    cls = torch.nn.Module
    before = (cls.__call__, cls._call_impl, cls._call_impl.__code__)
    with Interception(Recorded(), observer=observer):
        Double()(torch.ones(1))
        assert (cls.__call__, cls._call_impl, cls._call_impl.__code__) == before
        assert not _has_any_global_hook()
    assert (cls.__call__, cls._call_impl, cls._call_impl.__code__) == before


def test_nothing_is_seen_before_and_after(observer: Any) -> None:
    model, x, first, second = Double(), torch.ones(1), Recorded(), Recorded()
    for sink in (first, second):
        model(x)
        with Interception(sink, observer=observer):
            model(x)
        model(x)
    assert modules(first) == modules(second) == ["Double"]


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
def test_classes_that_define_their_call_scripted_and_traced_modules_have_theirs(observer: Any) -> None:
    x, sink = torch.ones(2), Recorded()
    scripted = torch.jit.script(torch.nn.Sequential(torch.nn.ReLU()))
    graph = torch.fx.symbolic_trace(torch.nn.Sequential(Double()))
    models = [CallsSuper(), CallsSuperPlainly(), scripted, graph]
    with Interception(sink, observer=observer):
        for model in models:
            model(x)
            model(x)
        models[0].__call__(x)
    expected = ["CallsSuper"] * 2 + ["CallsSuperPlainly"] * 2 + ["RecursiveScriptModule"] * 2
    graphs = ["Sequential"] * 2  # its class is called as the one that it was made of
    assert modules(sink) == [*expected, *graphs, "CallsSuper"]


def test_copies_made_meanwhile_are_plain_modules(observer: Any) -> None:
    model, x = torch.nn.Sequential(Double()), torch.ones(2)
    with Interception(Recorded(), observer=observer):
        model(x)
        copied, pickled = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
        torch.save(model, saved := io.BytesIO())
    saved.seek(0)
    for each in (copied, pickled, torch.load(saved, weights_only=False)):
        assert torch.equal(each(x), model(x))
        assert vars(each).keys() == vars(model).keys()


def test_hooks_of_the_programs_run_as_they_do_and_their_ops_are_in_the_module(observer: Any) -> None:
    model, x, sink, seen = Double(), torch.ones(2), Recorded(), list[Any]()

    def after(module: Any, args: Any, output: Any) -> Any:
        seen.append(output)
        return output.neg()

    model.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    model.register_forward_hook(after)
    with Interception(sink, observer=observer):
        result = model(x)
    assert torch.equal(result, torch.full((2,), -4.0))
    assert len(seen) == 1
    (call,) = sink.rows("spans").filter(domain="modules").rows(named=True)
    ops = sink.rows("ops")
    assert ops["op"].to_list() == ["aten::add", "aten::mul", "aten::neg"]
    assert call["start_ns"] <= ops["start_ns"][0]
    assert ops["start_ns"][-1] + ops["dur_ns"][-1] <= call["start_ns"] + call["dur_ns"]


def test_a_call_in_which_a_recording_begins_or_ends_is_closed(observer: Any) -> None:
    sinks: list[Recorded] = []

    class Switch(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            if running:
                running.pop().stop()
            sinks.append(Recorded())
            running.append(Interception(sinks[-1], observer=observer))
            running[-1].start()
            return inner(x)

    running: list[Interception] = []
    inner, model, x = Double(), Switch(), torch.ones(1)
    for _ in range(3):
        model(x)
    running.pop().stop()
    assert [modules(sink) for sink in sinks] == [["Double", "Switch"], ["Double", "Switch"], ["Double"]]


def test_threads_have_their_own_calls(observer: Any) -> None:
    sink, barrier = Recorded(), threading.Barrier(3)

    class Meet(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            barrier.wait()
            return inner(x)

    inner, model = Double(), torch.nn.Sequential(Meet())
    with Interception(sink, observer=observer):
        threads = [threading.Thread(target=model, args=(torch.ones(1),)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    spans = sink.rows("spans").filter(domain="modules")
    assert spans["thread"].n_unique() == 3
    assert sorted(modules(sink), key=str) == sorted(["Sequential", "0", "Double"] * 3)


def test_a_model_whose_parts_cant_be_named_has_its_class_and_a_loss(observer: Any) -> None:
    class Unnamed(Double):
        def named_modules(self, *args: Any, **kwargs: Any) -> Any:
            raise ValueError("no names")

    sink, model = Recorded(), Unnamed()
    with Interception(sink, observer=observer):
        assert model(torch.ones(1)) == 2
    assert modules(sink) == ["Unnamed"]
    assert sink.lost == [("module_without_path", "ValueError: no names")]


def test_what_replaced_the_function_is_looked_into_or_said(observer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    original = torch.nn.Module._call_impl

    class Patch:
        __wrapped__: Any

        def __get__(self, module: Any, owner: Any) -> Any:
            return self if module is None else lambda *args, **kwargs: original(module, *args, **kwargs)

    seen, unseen = Recorded(), Recorded()
    patch = Patch()
    patch.__wrapped__ = original
    monkeypatch.setattr(torch.nn.Module, "_call_impl", patch)
    with Interception(seen, observer=observer):
        Double()(torch.ones(1))
    del patch.__wrapped__
    with Interception(unseen, observer=observer):
        Double()(torch.ones(1))
    assert (modules(seen), modules(unseen)) == (["Double"], [])
    assert unseen.ops() == ["aten::ones", "aten::mul"]
    assert [note for note in unseen.facts.notes if "_call_impl" in note]
    assert not [note for note in seen.facts.notes if "_call_impl" in note]
