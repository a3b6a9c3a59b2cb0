import threading
from typing import Any

import pytest

from inferometer.errors import Unavailable
from inferometer.record.profiler import session
from inferometer.record.profiler.neighbours import Captures, OtherProfiles
from inferometer.record.profiler.session import Session

pytest.importorskip("torch", reason="torch isn't installed")


class _Graph:
    """As torch.cuda.CUDAGraph."""

    fails = False

    def capture_begin(self, pool: object = None) -> str:
        if self.fails:
            raise RuntimeError("no")
        return f"begun {pool}"

    def capture_end(self) -> str:
        return "ended"


def test_captures_are_counted_while_they_run() -> None:
    captures, before = Captures(), (_Graph.capture_begin, _Graph.capture_end)
    captures.watch(_Graph)
    graph, failing = _Graph(), _Graph()
    failing.fails = True
    assert graph.capture_begin(pool=3) == "begun 3"
    assert captures.open == 1
    with pytest.raises(RuntimeError):
        failing.capture_begin()
    assert captures.open == 1
    assert graph.capture_end() == "ended"
    assert captures.open == 0
    captures.restore()
    assert (_Graph.capture_begin, _Graph.capture_end) == before


def test_no_capture_begins_while_a_window_turns_over() -> None:
    captures, said = Captures(), []
    captures.watch(_Graph)
    try:
        with captures.lock:
            other = threading.Thread(target=lambda: said.append(_Graph().capture_begin()))
            other.start()
            other.join(0.05)
            assert said == []
        other.join(5)
        assert said == ["begun None"]
    finally:
        captures.restore()


def test_the_programs_profiles_are_told() -> None:
    from torch.autograd.profiler import profile

    before = (profile._prepare_trace, profile.__exit__)
    said: list[str] = []
    others = OtherProfiles(lambda: said.append("begins"), lambda: said.append("ended"))
    others.watch()
    made: Any = profile(enabled=False)
    with made:
        pass
    assert said == []
    others.restore()
    assert (profile._prepare_trace, profile.__exit__) == before


def test_a_torch_that_records_one_thread_only_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def older(**options: object) -> object:
        if options:
            raise TypeError("unexpected keyword")
        return object()

    monkeypatch.setattr(torch._C._profiler, "_ExperimentalConfig", older)
    with pytest.raises(Unavailable, match="only the thread"):
        Session()


def test_a_torch_without_kineto_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch._C._autograd, "kineto_available", lambda: False)
    with pytest.raises(Unavailable, match="Kineto"):
        Session()


def test_an_interception_does_not_see_our_marks() -> None:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    seen: list[str] = []

    class Seeing(TorchDispatchMode):  # type: ignore[misc]  # without torch, its type is unknown
        def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(op))
            return op(*args, **(kwargs or {}))

    session, ticks = Session(), iter(range(10))
    with Seeing():
        assert session.mark("mine", lambda: next(ticks)) == (0, 1, 2, 3)
        assert seen == []
        torch.ones(1)
    assert seen == ["aten.ones.default"]


def test_calls_are_made_in_order() -> None:
    said: list[int] = []
    assert session._together([lambda: said.append(1), lambda: 7, lambda: said.append(2)]) == [None, 7, None]
    assert said == [1, 2]
