"""Interception of a process's ops, module calls and the user's functions around them, while it runs.

Seen are ops on the thread that starts it, on Python threads that begin later, on autograd's threads for a backward
that one of these called, and, on other threads, within module calls. Not seen are what an op calls inside (inference
mode shows `aten::linear` as one op), and ops that C++ calls without the dispatcher.
"""

import threading
from types import TracebackType

import msgspec

from inferometer.record.interception import compiled, threads
from inferometer.record.interception.dispatch import Mode
from inferometer.record.interception.modules import ModuleHooks
from inferometer.record.interception.recording import FLUSH_NS, Recording, with_note
from inferometer.record.interception.steps import Marks, begin_marks, drop_marks, end_marks
from inferometer.record.sink import Sink
from inferometer.trace.facts import Facts

_THREADS_NOTE = "{n} Python threads ran before the interception began: on them only ops within module calls were seen."

_OURS = "inferometer"  # threads of the recording itself


class Interception:
    """Ops with shapes, modules, the user's functions and steps of this process, to a sink.

    `start` and `stop` belong on one thread; another thread that stops it leaves a mode behind that does nothing more.
    Either may be called again. What fails in it is counted by the sink; it raises nothing into the user's program.

    Args:
        sink: Takes the rows.
        stacks: Record which of the user's functions ops run in.
        modules: Record module calls.
        cpu_launches: Ops that compute on the CPU are launches, too.
    """

    def __init__(self, sink: Sink, *, stacks: bool = True, modules: bool = True, cpu_launches: bool = True) -> None:
        self._sink = sink
        self._recording = Recording(sink, stacks=stacks, cpu_launches=cpu_launches)
        self._marks = Marks(sink, self._recording.cut)
        self._with_modules = modules
        self._hooks: ModuleHooks | None = None
        self._stopping = threading.Event()
        self._timer: threading.Thread | None = None

    def start(self) -> None:
        """Begin to record on this thread, and on those that begin from now on.

        Raises:
            ImportError: PyTorch isn't installed.
        """
        recording = self._recording
        if recording.is_active:
            return
        recording.mode = Mode(recording)
        recording.is_active = True
        self._tell()
        self._stopping = threading.Event()
        self._timer = threading.Thread(target=self._tick, args=(self._stopping,), name="inferometer", daemon=True)
        self._timer.start()
        self.begin_thread()
        threads.watch(self)
        compiled.watch(recording)
        begin_marks(self._marks)
        if self._with_modules:
            self._hooks = ModuleHooks(recording)
            self._hooks.install()

    def stop(self) -> None:
        """End it, and hand over everything; nothing of it is left on this thread."""
        recording = self._recording
        if not recording.is_active:
            return
        recording.is_active = False
        self._stopping.set()
        self._detach()
        recording.mode.pop()
        recording.lane().is_under_mode = False
        end_marks(self._marks)
        if self._timer is not None:
            self._timer.join()
        for lane in recording.lanes():
            recording.finish(lane)
        recording.forget()

    def flush(self) -> None:
        """Hand over what is over, of all threads; from any thread."""
        for lane in self._recording.lanes():
            self._recording.flush(lane)
        self._marks.flush()

    def abandon(self) -> None:
        """In a forked child: what the parent records isn't ours. Nothing is handed over."""
        recording = self._recording
        if not recording.is_active:
            return
        recording.is_active = False
        self._detach()
        recording.mode.pop()
        recording.forget()
        drop_marks(self._marks)

    def begin_thread(self) -> None:
        """A thread begins: its ops are seen."""
        if self._recording.is_active:
            self._recording.mode.push()
            self._recording.lane().is_under_mode = True

    def end_thread(self) -> None:
        """A thread ends: its rows are handed over."""
        self._recording.mode.pop()
        self._recording.finish_thread()

    def __enter__(self) -> "Interception":
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def _detach(self) -> None:
        threads.unwatch(self)
        compiled.unwatch(self._recording)
        if self._hooks is not None:
            self._hooks.remove()

    def _tick(self, stopping: threading.Event) -> None:
        """Hand over what nobody else does; runs on a thread of its own."""
        while not stopping.wait(FLUSH_NS / 1e9):
            compiled.install()
            self._recording.flush_idle()
            self._marks.flush()

    def _tell(self) -> None:
        others = sum(not each.name.startswith(_OURS) for each in threading.enumerate()) - 1
        known = {"shapes": True, "stacks": self._recording.stacks, "modules": self._with_modules}

        def change(facts: Facts) -> Facts:
            return msgspec.structs.replace(facts, recorded={**facts.recorded, **known})

        self._sink.tell(change)
        if others:
            self._sink.tell(with_note(_THREADS_NOTE.format(n=others)))
