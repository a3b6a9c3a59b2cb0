"""A server's own profiler over HTTP: started once, stopped once, and what went wrong with either."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from inferometer.errors import InferometerError, InputError
from inferometer.record.server.engines import Server, check_started
from inferometer.record.server.files import Pace
from inferometer.record.server.http import Answer, Http, NoAnswer


@dataclass(frozen=True)
class Waits:
    """How long to wait for the server, s. Tests wait less.

    Attributes:
        answer_s: For what it says of itself.
        start_s: Until its profiler runs.
        refuse_s: With a number of steps, an answer may come only when they are done; a refusal comes sooner than this.
        stop_s: Until its profiler has stopped: of large profiles, minutes.
        metrics_hz: How often its metrics are read: to render them takes a server some milliseconds.
        pace: For its files.
    """

    answer_s: float = 20.0
    start_s: float = 180.0
    refuse_s: float = 3.0
    stop_s: float = 3600.0
    metrics_hz: float = 1.0
    pace: Pace = field(default_factory=Pace)


class Profiler:
    """The profiler of `server`. Times are ns since 1970 by this machine's clock.

    Attributes:
        asked_ns: When it was asked to start.
        began_ns: When it had started.
        ended_ns: When it was asked to stop, or ended by itself.
    """

    def __init__(self, http: Http, server: Server, waits: Waits) -> None:
        self._http, self._server, self._waits = http, server, waits
        self._start: _Call | None = None
        self._stop: _Call | None = None
        self._is_running = self._is_lost = False
        self.asked_ns = self.began_ns = self.ended_ns = 0

    def start(self, body: Any, *, waits_for_end: bool) -> None:
        """Start it; with `waits_for_end`, the answer may come only when it has done its steps.

        Raises:
            InputError: The server refuses.
            NoAnswer: It doesn't answer; it is then asked to stop, since it may have begun all the same.
        """
        self.asked_ns = time.time_ns()
        timeout_s = self._waits.stop_s if waits_for_end else self._waits.start_s
        self._is_running = True
        self._start = _Call(lambda: self._http.post("/start_profile", body, timeout_s))
        try:
            self._start.wait(self._waits.refuse_s if waits_for_end else timeout_s + 1)
            self._check_start()
        except InputError:
            self._is_running = False
            raise
        except (NoAnswer, KeyboardInterrupt):
            self.abandon()
            raise
        self.began_ns = time.time_ns()

    def late_refusal(self) -> str | None:
        """Why it didn't start after all, where the answer came late."""
        if self._start is None or not self._start.is_done:
            return None
        try:
            self._check_start()
        except InferometerError as error:
            return error.message
        return None

    def stop(self) -> None:
        """Tell it to stop, once, where it runs; the answer comes when it has written its files."""
        if self._is_running:
            self.end()
            self._stop = _Call(lambda: self._http.post("/stop_profile", None, self._waits.stop_s))

    def abandon(self) -> None:
        """Where it still runs: tell it to stop, and give that the time to arrive, since our process may end now."""
        if self._is_running:
            self.stop()
            if self._stop:
                self._stop.wait(self._waits.answer_s)

    def end(self, *, is_lost: bool = False) -> None:
        """It has ended by itself: it had done its steps, or the server `is_lost`."""
        self._is_running, self._is_lost = False, is_lost
        self.ended_ns = time.time_ns()

    @property
    def is_stopped(self) -> bool:
        """Whether the server has answered that it stopped, or won't."""
        return not self._is_running and (self._stop is None or self._stop.is_done)

    @property
    def is_lost(self) -> bool:
        """Whether the server is gone."""
        error = self._stop.error if self._stop else None
        return self._is_lost or (isinstance(error, NoAnswer) and error.is_gone)

    def wait(self) -> None:
        """Until it has stopped, at most as long as that may take."""
        if self._stop:
            self._stop.wait(self._waits.stop_s)

    def trouble(self) -> str | None:
        """What went wrong with its stop."""
        if self._stop is None:
            return None
        if self._stop.error:
            return self._stop.error.message
        answer = self._stop.answer
        if answer is None:
            return "the server was still writing"
        return None if answer.is_ok else f"{answer.about} was answered with {answer.describe()}"

    def _check_start(self) -> None:
        if self._start and self._start.error:
            raise self._start.error
        if self._start and self._start.answer:
            check_started(self._server, self._start.answer)


class _Call:
    """A question whose answer may take minutes, asked in a thread that nobody must wait for."""

    def __init__(self, ask: Callable[[], Answer]) -> None:
        self._ask = ask
        self.answer: Answer | None = None
        self.error: InferometerError | None = None
        self._thread = threading.Thread(target=self._run, name="inferometer-server-call", daemon=True)
        self._thread.start()

    @property
    def is_done(self) -> bool:
        """Whether it was answered, or failed."""
        return not self._thread.is_alive()

    def wait(self, timeout_s: float) -> None:
        """Until it is done, at most so long."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            self.answer = self._ask()
        except InferometerError as error:
            self.error = error
