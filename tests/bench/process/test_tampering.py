"""What stands in modules that measure is compared with what stood there."""

import json
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest

from inferometer.bench.process.tampering import seal


def test_nothing_is_broken_by_itself() -> None:
    assert seal().broken() == []


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (time, "perf_counter_ns", lambda: 0),
        (time, "perf_counter_ns", time.process_time_ns),
        (statistics, "median", min),
        (statistics, "median", None),
        (json, "dumps", json.loads),
        (math, "sqrt", lambda x: x),
    ],
)
def test_what_was_replaced_is_named(
    module: Any, name: str, value: Callable[..., Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed = seal()
    monkeypatch.setattr(module, name, value)
    assert sealed.broken() == [f"{module.__name__}.{name}"]


def test_what_was_removed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = seal()
    monkeypatch.delattr(statistics, "fmean")
    assert sealed.broken() == ["statistics.fmean"]


def test_new_names_and_state_are_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = seal()
    monkeypatch.setattr(statistics, "added", min, raising=False)
    monkeypatch.setattr(math, "pi", 3.0)
    assert sealed.broken() == []


def test_torch_may_wrap_its_own_functions_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    sealed = seal()
    monkeypatch.setattr(torch, "is_complex", torch._disable_dynamo(torch.is_complex))
    assert sealed.broken() == []
    monkeypatch.setattr(torch, "is_tensor", torch.is_storage)  # its own too, but another function
    assert sealed.broken() == ["torch.is_tensor"]
    wrapper = lambda x: False  # noqa: E731
    wrapper.__wrapped__ = sealed.found["torch", "is_tensor"]  # type: ignore[attr-defined]
    monkeypatch.setattr(torch, "is_tensor", wrapper)
    assert sealed.broken() == ["torch.is_tensor"]
