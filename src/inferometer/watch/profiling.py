"""A short profile of the engine when an alarm is raised: `inferometer record --server`, as a process of its own.

Profiling slows the engine, so it is done once an hour at most. It needs an engine that was started for it (vLLM's
`--profiler-config`), which that command says. Steps meanwhile are slow ones, which are never learned from.
"""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from inferometer.errors import clean

EVERY_S = 3600.0
SECONDS = 3
_LONGEST_S = 900.0  # of large profiles, minutes
_STOP_S = 30.0
_SHOWN = 300


class Profiling:
    """Profiles the engine at `url` into `NAME-profile-DATE.ifm` next to `store`.

    Args:
        url: The engine's address.
        store: The watch's.
        on_done: Called, from another thread, with what came of it.
        every_s: Between the beginnings of two profiles, at least.
        command: In the place of ours.
        monotonic_s: A clock.
    """

    def __init__(
        self,
        url: str,
        store: Path,
        on_done: Callable[[str], object],
        *,
        every_s: float = EVERY_S,
        command: tuple[str, ...] = (sys.executable, "-m", "inferometer"),
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url, self._store, self._on_done = url, store, on_done
        self._every_s, self._command, self._monotonic_s = every_s, command, monotonic_s
        self._began_s: float | None = None
        self._process: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> bool:
        """Begin one, where the last began long enough ago; whether it did."""
        now_s = self._monotonic_s()
        if self._began_s is not None and now_s - self._began_s < self._every_s:
            return False
        if self._thread is not None and self._thread.is_alive():
            return False
        self._began_s = now_s
        place = self._store.with_name(
            f"{self._store.stem}-profile-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.ifm"
        )
        self._thread = threading.Thread(target=self._run, args=(place,), name="inferometer-profiling", daemon=True)
        self._thread.start()
        return True

    def close(self) -> None:
        """End one that runs: the engine's profiler is stopped."""
        self._end()
        if self._thread is not None:
            self._thread.join(1)

    def _end(self) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _run(self, place: Path) -> None:
        words = (*self._command, "record", "--server", self._url, "--seconds", str(SECONDS), "-o", str(place))
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,  # Ctrl-C is for us
            )
        except OSError as error:
            self._on_done(f"No profile: {error.strerror}")
            return
        self._process = process
        try:
            errors = process.communicate(timeout=_LONGEST_S)[1]
        except subprocess.TimeoutExpired:
            self._end()
            process.communicate()
            self._on_done(f"No profile: it took longer than {_LONGEST_S:g} s.")
            return
        if process.returncode == 0:
            self._on_done(f"Profiled for {SECONDS} s: {place}")
        else:
            lines = [line for line in errors.splitlines() if line.strip()] or ["it gave no reason"]
            self._on_done(f"No profile: {clean(' '.join(lines))[:_SHOWN]}")
