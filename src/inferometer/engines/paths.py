"""Which call path runs now, and what each call of it took: a stack of names, kept by whoever runs the model.

The stack lives in the context (`contextvars`): threads and tasks have their own, and nothing is recorded in one that no
recorder was entered in. Without a recorder a scope costs one look-up.

On a GPU each call also has an event at its entry and its exit on the current stream; `finish` waits for the device
once and reads them. The host waits for nothing in between, so host times are times of launching. The device waits for
the host (`device_hold`), so spans are the device's own; these waits are taken out of them.

Who looks at answers meanwhile does so `aside`: the clock of all open calls stands still, and what the device does for
it is taken out of their spans.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from itertools import accumulate
from types import TracebackType
from typing import Any, Self

from inferometer.engines.device_hold import DeviceHold

SEPARATOR = "."
Watch = Callable[[str, Sequence[Any], Mapping[str, Any], Any], Any]
"""`watch(operator, args, settings, answer)`."""

_clock = time.perf_counter_ns


@dataclass(frozen=True)
class Path:
    """One node of the tree: `key` is the names from the root, joined by dots; `operator` where it is a call of one."""

    key: str
    name: str
    parent: int | None
    depth: int
    operator: str | None


@dataclass
class PathRecorder:
    """What was called while it was entered. Rows of `calls` are in the order in which they ended.

    Attributes:
        device: `cuda` or `cuda:1` also times each call by events; None or `cpu` doesn't.
        allocated: Tells how many bytes were ever allocated, at both ends of each call; None: not asked.
        watch: Gets each answer of an operator, aside, and says what to keep of it in `marks`; None: nothing.
        paths: The tree, in the order in which nodes were first entered: parents before children.
    """

    device: str | None = None
    allocated: Callable[[], int] | None = None
    watch: "Watch | None" = None
    paths: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._index: dict[tuple[int | None, str], int] = {}
        self.path_of: list[int] = []
        self.start_ns: list[int] = []
        self.end_ns: list[int] = []
        self.backend: list[str | None] = []
        self.span_ns: list[int | None] = []
        self.allocated_bytes: list[int | None] = []
        self.marks: list[Any] = []
        self.aside_ns = 0
        self._events: list[tuple[Any, Any, int, int]] = []
        self._asides: list[tuple[Any, Any]] = []
        self._makes_events = self.device is not None and self.device.startswith("cuda")
        self._last: Any = None  # event
        self._hold: DeviceHold | None = None

    @contextmanager
    def entered(self) -> Iterator[Self]:
        """Record scopes of this context. At the end the device is waited for and its events are read."""
        if self._makes_events:
            self._begin_hold()
        token = _here.set((self, None))
        try:
            yield self
        finally:
            _here.reset(token)
            self.finish()

    @property
    def short_waits(self) -> float | None:
        """Share of the stretches of the last pass in which the device waited for the host; None: nothing held it."""
        return None if self._hold is None or not self._hold.waits else self._hold.short / self._hold.waits

    def hold(self) -> None:
        """A call begins: a GPU waits until the host has queued what comes, which is in the time of no call."""
        if self._hold is None or not self._hold.is_due():
            return
        last = self._last
        first = self.event()
        self._hold.wait(last)
        self._asides.append((first, self.event()))

    def will_wait(self) -> None:
        """The host is about to wait for the device: what it queues after that is held anew."""
        if self._hold is not None:
            self._hold.end_stretch(self._last)

    def _begin_hold(self) -> None:
        import torch

        if self._hold is None:
            self._hold = DeviceHold(torch.cuda)
        self._hold.begin()

    def finish(self) -> None:
        """Read the events: afterwards `span_ns` has a number for every call on a GPU, None on a CPU."""
        self.will_wait()
        self._last = None
        if self._events:
            import torch

            torch.cuda.synchronize(self.device)
            self.span_ns += _spans(self._events, self._asides)
            self._events, self._asides = [], []
        self.span_ns += [None] * (len(self.path_of) - len(self.span_ns))

    def node(self, parent: int | None, name: str, operator: str | None) -> int:
        """The index of this path, which is made where it is new."""
        found = self._index.get((parent, name))
        if found is None:
            above = None if parent is None else self.paths[parent]
            key = name if above is None else f"{above.key}{SEPARATOR}{name}"
            found = self._index[parent, name] = len(self.paths)
            self.paths.append(Path(key, name, parent, 0 if above is None else above.depth + 1, operator))
        return found

    def event(self) -> Any:
        """An event on the current stream, recorded; None on a CPU."""
        if not self._makes_events:
            return None
        import torch

        event = self._last = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def now_ns(self) -> int:
        """The clock of calls, which stands still aside."""
        return _clock() - self.aside_ns

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What is done in the block is in the time of no call."""
        begun_ns, event = _clock(), self.event()
        try:
            yield
        finally:
            if event is not None:
                self._asides.append((event, self.event()))
            self.aside_ns += _clock() - begun_ns

    def asides(self) -> int:
        """How many have a span so far."""
        return len(self._asides)

    def add(self, call: "scope", end_ns: int) -> None:
        """A call has ended."""
        self.path_of.append(call.node)
        self.start_ns.append(call.start_ns)
        self.end_ns.append(end_ns)
        self.backend.append(call.backend)
        self.allocated_bytes.append(None if self.allocated is None else self.allocated() - call.begun_bytes)
        if call.event is not None:
            self._events.append((call.event, self.event(), call.begun_asides, self.asides()))
        self.marks.append(call.mark)

    def clear(self) -> None:
        """Forget all calls; the tree stays."""
        rows: tuple[list[Any], ...] = (self.path_of, self.start_ns, self.end_ns, self.backend, self.span_ns)
        for each in (*rows, self.allocated_bytes, self.marks):
            each.clear()


_here: ContextVar[tuple[PathRecorder, int | None] | None] = ContextVar("inferometer_path", default=None)


class scope:  # noqa: N801  # used as a function: `with scope("decode"):`
    """One call of the path `name` below the one that runs now. Ends however the block ends."""

    __slots__ = (
        *("_name", "_operator", "_recorder", "_token"),
        *("backend", "begun_asides", "begun_bytes", "event", "mark", "node", "start_ns"),
    )

    def __init__(self, name: str, operator: str | None = None) -> None:
        self._name = name
        self._operator = operator
        self.backend: str | None = None  # set by who knows what ran
        self.mark: Any = None

    def __enter__(self) -> Self:
        here = _here.get()
        self._recorder: PathRecorder | None = None
        if here is not None:
            self._recorder, parent = here
            self.node = self._recorder.node(parent, self._name, self._operator)
            self._token: Token[Any] = _here.set((self._recorder, self.node))
            self._recorder.hold()
            self.begun_bytes = 0 if self._recorder.allocated is None else self._recorder.allocated()
            self.begun_asides = self._recorder.asides()
            self.event = self._recorder.event()
            self.start_ns = self._recorder.now_ns()
        return self

    def answered(self, operator: str, args: Sequence[Any], settings: Mapping[str, Any], answer: Any) -> None:
        """Show the answer of this call to who watches the recorder."""
        if self._recorder is not None and self._recorder.watch is not None:
            with self._recorder.aside():
                self.mark = self._recorder.watch(operator, args, settings, answer)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._recorder is not None:
            self._recorder.add(self, self._recorder.now_ns())
            _here.reset(self._token)


def current_key() -> str | None:
    """The path that runs now, its names joined by dots; None outside of a recorder, or at its root."""
    here = _here.get()
    return None if here is None or here[1] is None else here[0].paths[here[1]].key


def aside_ns() -> int:
    """How long the clock of the recorder that is entered in this context has stood still so far."""
    here = _here.get()
    return 0 if here is None else here[0].aside_ns


def will_wait() -> None:
    """The host is about to wait for the device: the recorder that is entered in this context may want to know."""
    here = _here.get()
    if here is not None:
        here[0].will_wait()


def is_recording() -> bool:
    """Whether a recorder is entered in this context."""
    return _here.get() is not None


def _spans(events: Sequence[tuple[Any, Any, int, int]], asides: Sequence[tuple[Any, Any]]) -> list[int]:
    """Between the two events of each call, ns, without the asides that lie between: from the third to the fourth."""
    until = [0.0, *accumulate(first.elapsed_time(last) for first, last in asides)]
    return [
        round((first.elapsed_time(last) - until[after] + until[before]) * 1e6) for first, last, before, after in events
    ]
