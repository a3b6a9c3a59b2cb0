"""Regions that torch.compile made, each shown as one op: what runs inside is a kernel of its own, not an op.

Inductor's compiled graphs are called through one class, `torch._inductor.output_code.CompiledFxGraph`, whose call is
wrapped while an interception is on. Ops that a region calls (a matrix multiplication of the library) are seen in it.
Other compilers' regions have no such place; those that call PyTorch's ops (`eager`, `aot_eager`) show these.
"""

import sys
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from inferometer.record.interception.overloads import ALWAYS, Overload
from inferometer.record.interception.signatures import Signature, add_any
from inferometer.record.interception.way import Way

_MODULE = "torch._inductor.output_code"
_clock = time.perf_counter_ns

_recordings: list[Way] = []
_original: list[Callable[..., Any]] = []  # while the call is wrapped


def watch(recording: Way) -> None:
    """Show regions in this recording from now on."""
    _recordings.append(recording)
    install()


def install() -> None:
    """Wrap the call, as soon as something imported Inductor; cheap to ask again."""
    module = sys.modules.get(_MODULE)
    graph = getattr(module, "CompiledFxGraph", None)
    if graph is None or _original or not _recordings:
        return
    original: Callable[..., Any] = graph.__call__
    _original.append(original)

    @wraps(original)
    def call(region: Any, inputs: Any) -> Any:
        active = [each for each in _recordings if each.is_seeing]
        if not active:
            return original(region, inputs)
        is_on_cpu = all(getattr(each, "is_cpu", True) for each in inputs)  # the region empties the list
        marks = [(each, _begin(region, inputs)) for each in active]
        try:
            return original(region, inputs)
        finally:
            for recording, (signature, start_ns) in marks:
                recording.end_region(signature, start_ns, is_on_cpu=is_on_cpu)

    graph.__call__ = call


def unwatch(recording: Way) -> None:
    """No longer; the last one puts back what was there."""
    _recordings[:] = [each for each in _recordings if each is not recording]
    if not _recordings and _original:
        sys.modules[_MODULE].CompiledFxGraph.__call__ = _original.pop()


def _begin(region: Any, inputs: Any) -> tuple[Signature, int]:
    overload = Overload.named(f"Torch-Compiled Region: {_name(region)}", _begin)
    overload.work = ALWAYS
    key: list[Any] = [overload]
    try:
        for each in inputs:
            add_any(key, each)
        signature = Signature(overload, tuple(key))
    except Exception:  # noqa: BLE001  # a tensor without strides
        signature = Signature(overload, None)
    return signature, _clock()


def _name(region: Any) -> str:
    """The graph's number in this process and whose pass it is, else the start of its hash."""
    number = (getattr(region, "fx_kwargs", None) or {}).get("graph_id")
    if number is None:
        return str(getattr(region, "_fx_graph_cache_key", "") or "")[:12]
    return f"{number} backward" if region.fx_kwargs.get("is_backward") else str(number)
