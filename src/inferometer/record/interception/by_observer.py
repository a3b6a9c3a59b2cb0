"""Ops as PyTorch itself reports them to an observer in C++: no Python runs for each of them.

Seen are the ops that a dispatch mode would see, on all threads: also on those that began before, or outside Python. Of
an op that the program defines in Python, what it calls inside isn't seen, the op stands for it. Not seen are
`profiler::` ops, which PyTorch reports to no observer, ops on tensors without memory (`meta`, fake), which compute
nothing, and higher-order ops called outside of torch.compile: the ops that they call are.
"""

import inspect
import threading
from collections.abc import Sequence
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inferometer.record.interception import stacks
from inferometer.record.interception.dynamo import leave_alone
from inferometer.record.interception.handover import Handover, with_note
from inferometer.record.interception.module_paths import ModulePaths, text_of
from inferometer.record.interception.overloads import ALWAYS, IF_NEW, Overload
from inferometer.record.interception.signatures import Signature
from inferometer.record.sink import Sink

MOST_ROWS = 1 << 18  # of one thread and kind, before they are handed over: 6 MiB
_OWN_COST = "less than 1 µs"  # all of an `aten::relu` of four numbers is recorded with 0.98 µs
_NO_MODULES = "Calls of modules weren't seen: something replaced torch.nn.Module._call_impl by what is no function."
_LEAF, _ON_CPU, _SHARES_MEMORY = 1, 2, 4  # flags of lane.h
# `reshape` without a copy calls the first, and under a dispatch mode the second, which does the same without strides.
# One name for both, so that recordings by either way can be compared.
_RESHAPED, _AS_VIEW = "aten::_reshape_alias", "aten::view"
_OPS = np.dtype([("start", np.int64), ("end", np.int64), ("call", np.uint32), ("flags", np.uint32)])
_RANGES = np.dtype([("start", np.int64), ("end", np.int64), ("name", np.int64)])

Rows = NDArray[np.void]


class _Taken(NamedTuple):
    """What the observer hands over of one thread, as `taken.h` makes it.

    Attributes:
        thread: Its number.
        ops: Rows of `_OPS`.
        frames: Rows of `_RANGES`, as `modules`.
        fresh: Number, op, overload and arguments of each call seen for the first time.
        first: Numbers of calls below this one won't come again.
        lost_ops: For which there was no room, as `lost_ranges`.
        open_ops: Ops that hadn't ended.
    """

    thread: int
    ops: bytes
    frames: bytes
    modules: bytes
    fresh: list[tuple[int, str, str, list[Any] | None]]
    first: int
    lost_ops: int
    lost_ranges: int
    open_ops: int


class ByObserver:
    """See `Way`. `observer`: the module that `observer.build` makes; one recording at a time can have it."""

    _regions: list[tuple[int, int, int, Signature, bool]]

    def __init__(self, sink: Sink, observer: Any, *, stacks: bool, modules: bool, cpu_launches: bool) -> None:
        self._sink = sink
        self._observer = observer
        self._stacks = stacks
        self._with_modules = modules
        self._cpu_launches = cpu_launches
        self._rows = Handover(sink, _OWN_COST)
        self._lock = threading.RLock()
        self.is_active = self.is_seeing = False
        self._forget()

    def start(self) -> None:
        """On all threads. Raises `RuntimeError` when another one has the observer."""
        self._forget()
        leave_alone((stacks, ByObserver))  # the observer calls them, also between two regions of torch.compile
        self._observer.start(stacks.learn, self._stacks, MOST_ROWS)
        self.is_active = self.is_seeing = True
        if self._with_modules:
            self._watch_modules()

    def stop(self) -> None:
        """As `Way.stop`."""
        self.is_active = self.is_seeing = False
        self._observer.unwatch()
        self._observer.stop()
        self.flush()

    def wait(self, seconds: float) -> None:
        """As `Way.wait`; a thread whose buffer is half full ends it."""
        self._observer.wait(seconds)

    def flush(self, *, idle: bool = False) -> None:
        """As `Way.flush`."""
        with self._lock:
            regions, self._regions = self._regions, []
            for lane, is_over, rows in self._observer.take():
                try:
                    self._hand_over(lane, _Taken(*rows))
                except Exception as error:  # noqa: BLE001  # the user's program goes on, whatever became of the rows
                    self._sink.lose("unreadable_row", 1, example=f"{type(error).__name__}: {error}")
                if is_over:
                    self._calls.pop(lane, None)
            for thread, start_ns, end_ns, signature, works in regions:
                self._rows.add_ops(thread, ([start_ns], [end_ns]), [signature], [0], np.array([works]))

    def abandon(self) -> None:
        """As `Way.abandon`; in a forked child the observer has forgotten the parent by itself."""
        self.is_active = self.is_seeing = False
        self._observer.unwatch()
        self._observer.stop()
        self._lock = threading.RLock()
        self._rows.forget_lock()
        self._forget()

    def cut(self) -> None:
        """As `Way.cut`."""
        self._observer.cut()

    def pause(self) -> None:
        """As `Way.pause`."""
        self.is_seeing = False
        self._observer.pause()

    def resume(self) -> None:
        """As `Way.resume`."""
        self._observer.resume()
        self.is_seeing = self.is_active

    def end_region(self, signature: Signature, start_ns: int, *, is_on_cpu: bool) -> None:
        """As `Way.end_region`."""
        ended = self._observer.end_region(start_ns)
        if ended is not None:
            thread, end_ns, is_leaf = ended
            self._regions.append((thread, start_ns, end_ns, signature, is_leaf and is_on_cpu and self._cpu_launches))

    def note(self) -> str | None:
        """Every thread is seen."""
        return None

    def _forget(self) -> None:
        self._calls: dict[int, dict[int, Signature]] = {}  # of each lane, by their numbers
        self._overloads: dict[tuple[str, str], Overload] = {}
        self._paths = ModulePaths()
        self._texts: list[str] = []
        self._numbers: dict[str, int] = {}
        self._regions = []

    def _watch_modules(self) -> None:
        """By the function of PyTorch's that all their calls go through, or the one within, where it was wrapped."""
        import torch

        called = inspect.unwrap(torch.nn.Module._call_impl, stop=lambda each: isinstance(each, FunctionType))
        if isinstance(called, FunctionType):
            self._observer.watch(called, vars(torch.compiler), self._number_of_text)
        else:
            self._sink.change_facts(with_note(_NO_MODULES))

    def _number_of_text(self, module: Any, outermost: Any) -> int:
        try:
            text = self._paths.text(module, outermost)
        except Exception as error:  # noqa: BLE001  # a model whose `named_modules` fails; it is in the midst of a call
            self._sink.lose("module_without_path", 1, example=f"{type(error).__name__}: {error}")
            text = text_of(type(module).__name__)
        number = self._numbers.setdefault(text, len(self._texts))
        if number == len(self._texts):
            self._texts.append(text)
        return number

    def _hand_over(self, lane: int, taken: _Taken) -> None:
        calls = self._calls.setdefault(lane, {})
        for number, op, overload, arguments in taken.fresh:
            if op == _RESHAPED and arguments is not None:
                calls[number] = Signature.observed(self._overload(_AS_VIEW, ""), arguments[:2])
            else:
                calls[number] = Signature.observed(self._overload(op, overload), arguments)
        ops, frames, modules = (np.frombuffer(rows, of) for rows, of in _typed(taken.ops, taken.frames, taken.modules))
        if len(ops):
            self._add_ops(taken.thread, ops, calls)
        names = [stacks.names[code] or "" for code in frames["name"].tolist()]
        self._rows.add_frames(taken.thread, names, (frames["start"], frames["end"]))
        texts = [self._texts[number] for number in modules["name"].tolist()]
        self._rows.add_modules(taken.thread, texts, (modules["start"], modules["end"]))
        for number in [number for number in calls if number < taken.first]:
            del calls[number]
        self._count_lost(taken.lost_ops, taken.lost_ranges, taken.open_ops)

    def _add_ops(self, thread: int, ops: Rows, calls: dict[int, Signature]) -> None:
        numbers, rows = np.unique(ops["call"], return_inverse=True)
        signatures = [calls[number] for number in numbers.tolist()]
        works = self._works(ops["flags"], signatures, rows)
        self._rows.add_ops(thread, (ops["start"], ops["end"]), signatures, rows, works)

    def _works(
        self, flags: "NDArray[np.uint32]", signatures: Sequence[Signature], rows: "NDArray[np.intp]"
    ) -> "NDArray[np.bool_]":
        """Which calls computed something on the CPU, by the rules of `dispatch`."""
        may = ((flags & (_LEAF | _ON_CPU)) == _LEAF | _ON_CPU) & self._cpu_launches
        shares = (flags & _SHARES_MEMORY) != 0
        for i, signature in enumerate(signatures):
            overload = signature.overload
            if not overload.is_tried and len(tries := np.flatnonzero(may & (rows == i))):
                overload.is_tried = True
                overload.work = IF_NEW if shares[tries[0]] else overload.work
        work = np.array([signature.overload.work for signature in signatures])[rows]
        return np.asarray(may & ((work == ALWAYS) | ((work == IF_NEW) & ~shares)))

    def _overload(self, op: str, overload: str) -> Overload:
        known = self._overloads.get((op, overload))
        if known is None:
            known = self._overloads[op, overload] = _find_overload(op, overload)
        return known

    def _count_lost(self, ops: int, ranges: int, open_ops: int) -> None:
        if lost := ops + ranges:
            self._sink.lose("buffer_full", lost, example=f"{ops} ops, {ranges} ranges of modules and functions")
        if open_ops:
            self._sink.lose("begin_without_end", open_ops, example="an op that had not ended with the recording")


def _typed(*rows: bytes) -> Sequence[tuple[bytes, "np.dtype[np.void]"]]:
    return list(zip(rows, (_OPS, _RANGES, _RANGES), strict=True))


def _find_overload(op: str, overload: str) -> Overload:
    import torch

    namespace, _, name = op.partition("::")
    try:
        packet = getattr(getattr(torch.ops, namespace), name)
        return Overload(getattr(packet, overload or "default"))
    except AttributeError:  # taken away meanwhile
        found = Overload.named(op, _find_overload)
        found.work = ALWAYS
        return found
