"""Interception of a process's ops, module calls and the user's functions around them, while it runs.

Ops are seen by the observer where there is one, else by a dispatch mode: see `by_observer` and `by_mode`. Not seen are
what an op calls inside (inference mode shows `aten::linear` as one op), and ops that C++ calls without the dispatcher.
"""

import threading
from types import TracebackType
from typing import Any

import msgspec

from inferometer.record.interception import compiled
from inferometer.record.interception.by_mode import ByMode
from inferometer.record.interception.by_observer import ByObserver
from inferometer.record.interception.every_nth import EveryNth
from inferometer.record.interception.handover import with_note
from inferometer.record.interception.recording import FLUSH_NS
from inferometer.record.interception.steps import Marks, begin_marks, drop_marks, end_marks
from inferometer.record.interception.way import Way
from inferometer.record.sink import Sink
from inferometer.trace.facts import Facts


class Interception:
    """Ops with shapes, modules, the user's functions and steps of this process, to a sink.

    Either of `start` and `stop` may be called again. What fails in it is counted by the sink; it raises nothing into
    the user's program.

    Args:
        sink: Takes the rows.
        stacks: Record which of the user's functions ops run in.
        modules: Record module calls.
        cpu_launches: Ops that compute on the CPU are launches, too.
        observer: The observer's module (`observer.build.find_observer`); None: a dispatch mode sees the ops.
        every: See ops in one of so many marked steps, and outside of steps.
        has_kernels: A profiler records launches, also where ops aren't seen.
    """

    def __init__(
        self,
        sink: Sink,
        *,
        stacks: bool = True,
        modules: bool = True,
        cpu_launches: bool = True,
        observer: Any = None,
        every: int = 1,
        has_kernels: bool = False,
    ) -> None:
        self.remark: str | None = None  # for the user, by who made it
        self._sink = sink
        self._known = {"shapes": True, "stacks": stacks, "modules": modules}
        wanted = {"stacks": stacks, "modules": modules, "cpu_launches": cpu_launches}
        self._way: Way = ByMode(sink, **wanted) if observer is None else ByObserver(sink, observer, **wanted)
        is_gap = cpu_launches and not has_kernels
        nth = EveryNth(sink, self._way, every, is_gap=is_gap) if every > 1 else None
        self._marks = Marks(sink, self._way.cut, nth)
        self._stopping = threading.Event()
        self._timer: threading.Thread | None = None

    def start(self) -> None:
        """Begin to record.

        Raises:
            ImportError: PyTorch isn't installed.
            RuntimeError: Another interception has the observer.
        """
        if self._way.is_active:
            return
        self._tell(self._way.note())
        self._way.start()
        self._stopping = threading.Event()
        self._timer = threading.Thread(target=self._tick, args=(self._stopping,), name="inferometer", daemon=True)
        self._timer.start()
        compiled.watch(self._way)
        begin_marks(self._marks)

    def stop(self) -> None:
        """End it, and hand over everything; nothing of it is left on this thread."""
        if not self._way.is_active:
            return
        compiled.unwatch(self._way)
        end_marks(self._marks)
        self._stopping.set()
        self._way.stop()
        if self._timer is not None:
            self._timer.join()

    def flush(self) -> None:
        """Hand over what is over, of all threads; from any thread."""
        self._way.flush()
        self._marks.flush()

    def abandon(self) -> None:
        """In a forked child: what the parent records isn't ours. Nothing is handed over."""
        if not self._way.is_active:
            return
        compiled.unwatch(self._way)
        self._way.abandon()
        drop_marks(self._marks)

    def __enter__(self) -> "Interception":
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def _tick(self, stopping: threading.Event) -> None:
        """Hand over what nobody else does; runs on a thread of its own."""
        while not stopping.is_set():
            self._way.wait(FLUSH_NS / 1e9)
            if not self._way.is_active:  # dropped: what waits now is another's
                return
            compiled.install()
            self._way.flush(idle=True)
            self._marks.flush()

    def _tell(self, note: str | None) -> None:
        def change(facts: Facts) -> Facts:
            return msgspec.structs.replace(facts, recorded={**facts.recorded, **self._known})

        self._sink.change_facts(change)
        if note is not None:
            self._sink.change_facts(with_note(note))
