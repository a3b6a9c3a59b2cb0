"""Ops as a dispatch mode of PyTorch's sees them: no compiler is needed, each op costs some microseconds of Python.

Seen are ops on the thread that starts it, on Python threads that begin later, on autograd's threads for a backward
that one of these called, and, on other threads, within module calls.
"""

import threading

from inferometer.record.interception import threads
from inferometer.record.interception.dispatch import Mode
from inferometer.record.interception.modules import ModuleHooks, hooks_of_mode
from inferometer.record.interception.recording import Recording
from inferometer.record.interception.signatures import Signature
from inferometer.record.sink import Sink

_THREADS_NOTE = "{n} Python threads ran before the interception began: on them only ops within module calls were seen."


class ByMode:
    """See `Way`. `start` and `stop` belong on one thread; another one that stops it leaves an idle mode behind."""

    def __init__(self, sink: Sink, *, stacks: bool, modules: bool, cpu_launches: bool) -> None:
        self._recording = Recording(sink, stacks=stacks, cpu_launches=cpu_launches)
        self._with_modules = modules
        self._hooks: ModuleHooks | None = None
        self._stopping = threading.Event()

    @property
    def is_active(self) -> bool:
        """Between `start` and `stop`."""
        return self._recording.is_active

    @property
    def is_seeing(self) -> bool:
        """As `Way.is_seeing`."""
        return self._recording.is_seeing

    def start(self) -> None:
        """On this thread, and on those that begin from now on. Raises `ImportError` without PyTorch."""
        recording = self._recording
        recording.mode = Mode(recording)
        recording.is_active = recording.is_seeing = True
        self._stopping.clear()
        self.begin_thread()
        threads.watch(self)
        if self._with_modules:
            self._hooks = ModuleHooks(*hooks_of_mode(recording))
            self._hooks.install()

    def stop(self) -> None:
        """As `Way.stop`."""
        recording = self._recording
        recording.is_active = recording.is_seeing = False
        self._stopping.set()
        self._detach()
        recording.mode.pop()
        recording.lane().is_under_mode = False
        for lane in recording.lanes():
            recording.finish(lane)
        recording.forget()

    def wait(self, seconds: float) -> None:
        """As `Way.wait`; threads hand their rows over themselves when there are many."""
        self._stopping.wait(seconds)

    def flush(self, *, idle: bool = False) -> None:
        """As `Way.flush`."""
        if idle:
            self._recording.flush_idle()
            return
        for lane in self._recording.lanes():
            self._recording.flush(lane)

    def abandon(self) -> None:
        """As `Way.abandon`."""
        self._recording.is_active = self._recording.is_seeing = False
        self._detach()
        self._recording.mode.pop()
        self._recording.forget()

    def cut(self) -> None:
        """As `Way.cut`."""
        self._recording.cut()

    def pause(self) -> None:
        """As `Way.pause`; the mode stays on the stacks of threads, and does nothing."""
        self._recording.is_seeing = False

    def resume(self) -> None:
        """As `Way.resume`."""
        self._recording.is_seeing = self._recording.is_active

    def end_region(self, signature: Signature, start_ns: int, *, is_on_cpu: bool) -> None:
        """As `Way.end_region`."""
        self._recording.end_region(signature, start_ns, is_on_cpu=is_on_cpu)

    def note(self) -> str | None:
        """As `Way.note`; asked on the thread that begins."""
        others = sum(not each.name.startswith(threads.OURS) for each in threading.enumerate()) - 1
        return _THREADS_NOTE.format(n=others) if others else None

    def begin_thread(self) -> None:
        """A thread begins: its ops are seen."""
        if self._recording.is_active:
            self._recording.mode.push()
            self._recording.lane().is_under_mode = True

    def end_thread(self) -> None:
        """A thread ends: its rows are handed over."""
        self._recording.mode.pop()
        self._recording.finish_thread()

    def _detach(self) -> None:
        threads.unwatch(self)
        if self._hooks is not None:
            self._hooks.remove()
