"""Begins, turns over and ends the windows of a profile, on the one thread that owns it."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator

from inferometer.record.clock import monotonic_ns
from inferometer.record.cupti_threads import system_threads
from inferometer.record.profiler.account import Account
from inferometer.record.profiler.clock_marks import Mark
from inferometer.record.profiler.kineto_stderr import kept_quiet
from inferometer.record.profiler.neighbours import Captures, OtherProfiles
from inferometer.record.profiler.session import Result, Session, save
from inferometer.record.profiler.window_tables import MARK, WINDOW_RANGE, Joining
from inferometer.record.profiler.windows import Window, Windows
from inferometer.record.sink import Sink

_MARKS = 8  # at each end of a window: the first ones are slow, and any may be interrupted
_BACKLOG = 4  # windows waiting to be read: then the one that records goes on

_BEGUN: list[int] = []  # processes that began a profile: a forked child can't, Kineto believes it still runs


class Runner:
    """Begins, turns over and ends windows; everything on the one thread that owns the profile."""

    def __init__(self, session: Session, sink: Sink, account: Account, how: Joining, *, apart: bool) -> None:
        self._session, self._account, self._clock = session, account, sink.clock
        self._windows = Windows(sink, how, account, apart=apart)
        self._captures = Captures()
        self._number = 0
        self._paused = 0
        self._marks: list[Mark] = []
        self._threads: dict[int, int] = {}  # of the program so far: one may have ended with its window
        self._began: tuple[int, int] = (0, 0)  # before and after the profile's begin
        self._quiet_since: int | None = None  # when a profile ended without the next beginning
        self.begun_ns = 0
        self.is_recording = False

    @contextlib.contextmanager
    def watching(self, others: OtherProfiles) -> Iterator[None]:
        """Sees the program's own profiles and captures meanwhile; everything is written at the end."""
        others.watch()
        self._captures.watch()
        try:
            yield
        finally:
            try:
                self._end()
            finally:
                self._captures.restore()
                others.restore()
                self._windows.close()

    def do(self, what: str) -> None:
        """One request."""
        if what in ("cut", "flush") and self.is_recording:
            self._turn()
        if what == "flush":
            self._windows.settle()
        elif what == "pause":
            self._paused += 1
            self._end()
            self._account.problem("the program's own profile ran meanwhile: its time isn't in ours")
        elif what == "resume":
            self._paused = max(0, self._paused - 1)
            self.go_on()

    def go_on(self) -> None:
        """When nothing was asked: begin again where that can be, or turn over."""
        if not self.is_recording:
            self.begin()
        elif self._windows.waiting < _BACKLOG:
            self._turn()

    def begin(self) -> None:
        """Begin a profile, unless the program profiles or captures a graph itself just now."""
        with self._captures.lock:
            if self._paused or self._captures.open:
                return
            if self._session.is_taken():
                self._account.problem("the program's own profile ran meanwhile: its time isn't in ours")
                return
            with kept_quiet(self._account.stderr_lines):
                before = monotonic_ns()
                self._session.begin()
                after = monotonic_ns()
        if os.getpid() not in _BEGUN:
            _BEGUN.append(os.getpid())
            os.register_at_fork(after_in_child=_forked)
        self._begun((before, after))

    def _turn(self) -> None:
        if self._session.has_device:  # its times must be written before the next profile begins
            self._end(but_not_captures=True)
            if not self.is_recording:
                self.begin()
            return
        with self._captures.lock:
            if self._captures.open:
                return
            marks = [*self._marks, *self._mark("end")]
            with kept_quiet(self._account.stderr_lines):
                before = monotonic_ns()
                result = self._session.turn()
                after = monotonic_ns()
        last, begun_ns = self._began, self.begun_ns
        self._quiet_since = before
        self._begun((before, after))
        self._ended(result, marks, last, (before, after), before - begun_ns)

    def _end(self, *, but_not_captures: bool = False) -> None:
        """End the profile, and begin none; during a capture, too, where someone wants it now."""
        if not self.is_recording:
            return
        with self._captures.lock:
            if self._captures.open and but_not_captures:
                return
            if not self._captures.open:
                self._session.settle()
            marks = [*self._marks, *self._mark("end")]
            with kept_quiet(self._account.stderr_lines):
                before = monotonic_ns()
                result = self._session.end()
                after = monotonic_ns()
        self.is_recording, self._quiet_since = False, before
        self._ended(result, marks, self._began, (before, after), before - self.begun_ns)

    def _begun(self, between: tuple[int, int]) -> None:
        self._number += 1
        if self._quiet_since is not None:
            self._account.gap(self._clock.at(self._quiet_since), between[1] - self._quiet_since)
        self._quiet_since = None
        self._began, self.begun_ns, self.is_recording = between, between[1], True
        self._marks = self._mark("begin")
        self._threads |= system_threads()

    def _mark(self, where: str) -> list[Mark]:
        group = 0 if where == "begin" else 1
        names = [f"{MARK} {self._number} {where} {i}" for i in range(_MARKS)]
        return [Mark(name, group, *self._session.mark(name, monotonic_ns)) for name in names]

    def _ended(
        self, result: Result, marks: list[Mark], began: tuple[int, int], ended: tuple[int, int], recorded_ns: int
    ) -> None:
        """Write the ended window's file and hand it on. `marks[0]` names its number."""
        number = int(marks[0].name.split()[1])
        path = self._windows.place(number)
        save(result, path)
        pause_ns = monotonic_ns() - ended[0]
        self._account.ended(self._clock.at(ended[0]), pause_ns, recorded_ns)
        self._threads |= system_threads()
        whole = Mark(WINDOW_RANGE, 0, *began, *ended)
        self._windows.take(Window(number, path, [*marks, whole], threading.get_native_id(), dict(self._threads)))


def is_child_of_profiled() -> bool:
    """Whether this process was forked from one that was being profiled."""
    return bool(_BEGUN) and os.getpid() not in _BEGUN


def _forked() -> None:
    """In a forked child: nobody reads what PyTorch goes on recording there, so its main thread stops to."""
    if os.getpid() not in _BEGUN:
        with contextlib.suppress(Exception):
            import torch

            doors: Callable[[bool], None] = torch._C._autograd._enable_record_function
            doors(False)
