"""The dispatch mode that sees each op below autograd, on the threads that have it on their stack.

While it handles an op, PyTorch takes the mode off the stack: what an op written in Python calls inside isn't seen, the
op stands for it. Tensor subclasses are asked first, with the mode on, so that what they call is seen within their op.
Fake tensors, and all that torch.compile traces, pass unrecorded.

The mode is pushed without the flags that `TorchDispatchMode.__enter__` sets for the process: one thread's exit would
leave them wrong for the others, and they make torch.compile behave otherwise.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

from inferometer.record.interception import lanes, overloads, recording, signatures, stacks
from inferometer.record.interception.dynamo import leave_alone
from inferometer.record.interception.lanes import ThreadRows
from inferometer.record.interception.overloads import (
    ALWAYS,
    IF_NEW,
    Overload,
    first_tensor,
    scalar_types,
    shares_memory,
)
from inferometer.record.interception.recording import FLUSH_ROWS, Recording
from inferometer.record.interception.signatures import Signature, add_named, add_other
from inferometer.record.interception.stacks import follow

_MOST_SIGNATURES = 20_000  # then the table of calls seen begins anew: a decoder's shapes differ in each step
_FLUSH_FIELDS = FLUSH_ROWS * 4
_clock = time.perf_counter_ns
_PARTS = (sys.modules[__name__], lanes, overloads, recording, signatures, stacks)
_NO_NAMES: dict[str, Any] = {}


class Mode:
    """The dispatch mode of one interception, on any thread's stack."""

    def __init__(self, of: Recording) -> None:
        from torch.utils import _python_dispatch

        self._torch = _python_dispatch
        self._mode = _mode_class(_python_dispatch.TorchDispatchMode, _handler(of))()

    def push(self) -> None:
        """Onto this thread's stack."""
        self._torch._push_mode(self._mode)

    def push_unless_there(self) -> bool:
        """The same, unless it is there already: autograd's threads have the stack of who called backward."""
        stack = self._torch._get_current_dispatch_mode_stack()
        if any(each is self._mode for each in stack):
            return False
        self.push()
        return True

    def pop(self) -> bool:
        """Off this thread's stack, from under modes that were pushed since. Whether it was there."""
        torch = self._torch
        above: list[Any] = []
        stack = torch._get_current_dispatch_mode_stack()
        if not any(each is self._mode for each in stack):
            return False
        while (top := torch._pop_mode()) is not self._mode:
            above.append(top)
        for each in reversed(above):
            torch._push_mode(each)
        return True


def _mode_class(base: Any, handler: Callable[..., Any]) -> Any:
    """The class that PyTorch wants: off while torch.compile traces, and on again when the compiled code runs."""
    is_left_alone = leave_alone((handler, *_PARTS))

    def ignore_compile_internals(cls: Any) -> bool:
        return True

    def should_skip_dynamo(cls: Any) -> bool:
        return not is_left_alone  # a wrapper around each op, which costs 0.7 µs

    attributes = {
        "__torch_dispatch__": handler,
        "ignore_compile_internals": classmethod(ignore_compile_internals),
        "_should_skip_dynamo": classmethod(should_skip_dynamo),
        "supports_higher_order_operators": True,
    }
    return type("InferometerMode", (base,), attributes)


def _handler(of: Recording) -> Callable[..., Any]:
    """What runs at each op: about 2 µs, of which the signature is a half; so it is one function."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    Tensor, Parameter, scalars = torch.Tensor, torch.nn.Parameter, scalar_types()
    known: dict[int, Overload] = {}
    calls: dict[tuple[Any, ...], Signature] = {}
    local, lane_here = of.local, of.lane
    with_stacks, with_launches = of.stacks, of.cpu_launches
    getframe = sys._getframe

    def handle(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not of.is_seeing:
            return func(*args, **(kwargs or _NO_NAMES))
        try:
            lane: ThreadRows = local.lane
        except AttributeError:
            lane = lane_here()
        if types:
            if func is lane.reentered:
                lane.reentered = None
                return NotImplemented
            if _are_fake(types):
                return func(*args, **(kwargs or _NO_NAMES))
        overload = known.get(id(func))
        if overload is None:
            overload = known[id(func)] = Overload(func)
        key: list[Any] = [overload]
        try:
            for arg in args:
                kind = type(arg)
                if kind is Tensor or kind is Parameter:
                    key += (arg.shape, arg.stride(), arg.dtype)
                elif kind in scalars:
                    key += (kind, arg)
                else:
                    add_other(key, arg)
            if kwargs:
                add_named(key, kwargs)
            call = tuple(key)
            signature = calls.get(call)
            if signature is None:
                if len(calls) > _MOST_SIGNATURES:
                    calls.clear()
                signature = calls[call] = Signature(overload, call)
        except Exception:  # noqa: BLE001  # a tensor without strides or with symbols for sizes
            signature = Signature(overload, None)
        if with_stacks:
            frame = getframe(1)
            if id(frame.f_back) != lane.boundary or lane.chain != (id(frame), id(frame.f_code), 0):
                follow(lane, frame)
        start_ns = _clock()
        try:
            if types:
                out = _ask_subclass(self, lane, func, args, kwargs)
            else:
                out = overload.call(*args, **kwargs) if kwargs else overload.call(*args)
        except BaseException:
            lane.last_ns = end_ns = _clock()
            lane.ops += (start_ns, end_ns, signature, False)
            raise
        if type(out) is FakeTensor:
            return out
        is_leaf = lane.last_ns < start_ns
        lane.last_ns = end_ns = _clock()
        works = with_launches and overload.work and is_leaf and _works_on_cpu(overload, out, args)
        lane.ops += (start_ns, end_ns, signature, works)
        if end_ns > lane.due_ns or len(lane.ops) > _FLUSH_FIELDS:
            of.flush_here(lane)
        return out

    return handle


def _ask_subclass(mode: Any, lane: ThreadRows, func: Any, args: Any, kwargs: Any) -> Any:
    """Let the classes of the tensors run an op with the mode on: the mode meets it once more, and declines."""
    from torch.utils import _python_dispatch

    lane.reentered = func
    _python_dispatch._push_mode(mode)
    try:
        return func(*args, **(kwargs or _NO_NAMES))
    finally:
        _python_dispatch._pop_mode()
        lane.reentered = None


def _works_on_cpu(overload: Overload, out: Any, args: Any) -> bool:
    """Whether this call computed something on the CPU: by its result, or its inputs where it returns no tensor."""
    out = first_tensor(out)
    where = first_tensor(args) if out is None else out
    if where is not None and not where.is_cpu:
        return False
    if not overload.is_tried:
        overload.is_tried = True
        if shares_memory(out, args):
            overload.work = IF_NEW
    return overload.work == ALWAYS or not shares_memory(out, args)


def _are_fake(types: Any) -> bool:
    """Whether these classes of tensors are what tracing uses: nothing is computed."""
    return any(each.__module__.startswith(("torch._subclasses", "torch.fx", "torch._functorch")) for each in types)
