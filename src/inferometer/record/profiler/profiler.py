"""torch.profiler underneath a recording, in windows: kernels, driver calls, ops and ranges, on the recording's clock.

A thread of ours owns the profile of all threads. About once a second it ends the profile and begins the next one; what
the ended one recorded goes to a file, is read in another process and written to the recording, so a kill loses
the last window and what is still being read. To end a window takes about 1.6 us an op, to write its file 1.3 us
(PyTorch 2.13, processor time), and Python stands still meanwhile, since PyTorch keeps its lock. That is a share of the
ops, 3 % at 10,000 per second, however long windows are, and 1 ms a window; what it came to is in a note. Device work
alone costs next to nothing of that.
"""

import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inferometer.errors import Unavailable
from inferometer.record.clock import monotonic_ns
from inferometer.record.interception.open_ops import OpenOps
from inferometer.record.profiler.account import Account
from inferometer.record.profiler.neighbours import OtherProfiles
from inferometer.record.profiler.op_kinds import OpKinds
from inferometer.record.profiler.runner import Runner, is_child_of_profiled
from inferometer.record.profiler.session import Session
from inferometer.record.profiler.window_tables import Joining
from inferometer.record.sink import Sink

if TYPE_CHECKING:
    from torch._C._profiler import ProfilerActivity

_WAIT_S = 60.0  # for the thread to do what was asked; the first profile on a GPU takes seconds to set up
_STEP_WAIT_S = 5.0
_LOOK_S = 0.05  # between looks at whether the program's own profile, or a capture, has ended
_PATIENCE = 2  # windows: where steps are reported, one is cut at a step unless that takes longer


@dataclass
class _Request:
    """What the thread is asked: `cut`, `pause`, `resume` or `stop`; `done` is set when it has."""

    what: str
    done: threading.Event


class Profiling:
    """Profiles from `start` to `stop`. What can't be recorded is reported in the recording's notes; nothing is raised.

    Args:
        sink: Takes the rows.
        window_s: How long a window is; with `step` they end at steps, after at most twice that.
        stacks: Python frames, too: costly.
        activities: Of `torch.profiler.ProfilerActivity`. None: the processor and the devices that are there; where ops
            are intercepted and there is a device, only that: ops are what costs.
        intercepted: Another part of the recording writes ops: the profiler's rows of those are left out.
        open_ops: Which op was intercepted when: ties launches to it. None: by no op, where intercepted.
        cpu_launches: Ops are launches of device `cpu`, too. None: where there is no GPU, and nothing is intercepted.
        read_apart: Read windows in another process.
    """

    def __init__(
        self,
        sink: Sink,
        *,
        window_s: float = 1.0,
        stacks: bool = False,
        activities: "Iterable[ProfilerActivity] | None" = None,
        intercepted: bool = False,
        open_ops: OpenOps | None = None,
        cpu_launches: bool | None = None,
        read_apart: bool = True,
    ) -> None:
        self.account = Account(sink, os.getpid(), window_s)
        self.problem: str | None = None
        self._sink, self._window_ns = sink, round(window_s * 1e9)
        self._make_session: Callable[[], Session] = lambda: Session(
            stacks=stacks, activities=activities, devices_only=intercepted
        )
        self._intercepted, self._open_ops, self._cpu_launches = intercepted, open_ops, cpu_launches
        self._read_apart = read_apart
        self._requests: queue.Queue[_Request] = queue.Queue()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()
        self._due_ns = 0
        self._stepped = False

    @property
    def is_running(self) -> bool:
        """Whether a thread profiles."""
        return self._thread is not None and self._thread.is_alive() and os.getpid() == self._process

    def start(self) -> None:
        """Returns when the first window has begun, or it is known that there will be none. Twice is no error."""
        if self.is_running:
            return
        try:
            if is_child_of_profiled():
                raise Unavailable("a process forked from one that was being profiled can't be profiled itself")
            session = self._make_session()
        except Unavailable as error:
            self._say_no(error.message if error.hint is None else f"{error.message}. {error.hint}")
            return
        self._process = os.getpid()
        begun = threading.Event()
        self._requests = queue.Queue()
        self._thread = threading.Thread(
            target=self._run, args=(session, self._requests, begun), name="inferometer-profiler", daemon=True
        )
        self._thread.start()
        if not begun.wait(_WAIT_S):
            self._say_no(f"it hadn't begun after {_WAIT_S:g} s: what comes first may lack")

    def stop(self) -> None:
        """Ends the last window and returns when everything is written. Twice is no error."""
        thread, self._thread = self._thread, None
        if thread is None or os.getpid() != self._process:
            return
        self._ask("stop", _WAIT_S, thread)
        thread.join(_WAIT_S)
        self.account.say()

    def step(self) -> None:
        """A step of the program ends here: the window does too when it is due, and this returns when the next began."""
        self._stepped = True
        if self._due_ns and monotonic_ns() >= self._due_ns and self.is_running:
            self._ask("cut", _STEP_WAIT_S)

    def flush(self) -> None:
        """Ends the window and returns when all rows so far are written."""
        if self.is_running:
            self._ask("flush", _WAIT_S)

    def _ask(self, what: str, wait_s: float, thread: threading.Thread | None = None) -> None:
        asked = _Request(what, threading.Event())
        self._requests.put(asked)
        thread = thread or self._thread
        until = time.monotonic() + wait_s
        while thread is not None and thread.is_alive() and not asked.done.wait(0.1) and time.monotonic() < until:
            pass

    def _say_no(self, why: str) -> None:
        if self.problem is None:
            self.problem = why
            self.account.problem(why)

    def _run(self, session: Session, requests: "queue.Queue[_Request]", begun: threading.Event) -> None:
        """The life of the thread that owns the profile."""
        try:
            runner = Runner(session, self._sink, self.account, self._how(session), apart=self._read_apart)
            others = OtherProfiles(lambda: self._ask("pause", _STEP_WAIT_S), lambda: self._ask("resume", _STEP_WAIT_S))
            with runner.watching(others):
                runner.begin()
                begun.set()
                self._obey(runner, requests)
        except Exception as error:  # noqa: BLE001  # the edge of a worker: the program goes on, whatever it was
            self._say_no(f"it failed, and nothing was recorded from then on: {type(error).__name__}: {error}")
        finally:
            begun.set()

    def _how(self, session: Session) -> Joining:
        cpu = not (session.has_device or self._intercepted) if self._cpu_launches is None else self._cpu_launches
        return Joining(
            os.getpid(),
            socket.gethostname(),
            self._sink.clock.origin_ns,
            self._intercepted,
            self._open_ops,
            OpKinds() if cpu else None,
        )

    def _obey(self, runner: Runner, requests: "queue.Queue[_Request]") -> None:
        """Do what is asked, and cut windows in between, until `stop`."""
        what = ""
        while what != "stop":
            self._due_ns = runner.begun_ns + self._window_ns if runner.is_recording else 0
            patience = _PATIENCE if self._stepped else 1
            wait_ns = self._due_ns + (patience - 1) * self._window_ns - monotonic_ns() if self._due_ns else 0
            try:
                asked = requests.get(timeout=max(wait_ns / 1e9, _LOOK_S if not runner.is_recording else 0.001))
            except queue.Empty:
                self._stepped = False  # no step came in all this time, or none is reported
                runner.go_on()
                continue
            what = asked.what
            runner.do(what)
            asked.done.set()
        self._due_ns = 0
