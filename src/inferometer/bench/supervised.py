"""A command whose end is the end of all that it started: `process/supervisor.py` stands between it and us."""

import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from inferometer.errors import clean

_SUPERVISOR = Path(__file__).parent / "process" / "supervisor.py"
_START_S, _END_S = 60.0, 30.0  # an interpreter without modules starts in 0.03 s, on a busy machine later
_TAIL = 4_000


class Supervised:
    """A running command.

    Args:
        command: The program's path, and its arguments.
        cwd: Where it runs.
        env: All of its environment.
        log: Gets the last 64 KiB of what it prints, once it has ended; None: `output` gets all.
        output: Where it prints without a log; nowhere by default.
        stdin: As of `subprocess.Popen`; nothing by default.
        pass_fds: Descriptors that it gets.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        log: Path | None = None,
        output: IO[Any] | None = None,
        stdin: int | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        ours, theirs = socket.socketpair()
        self._control = ours
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_SUPERVISOR), str(theirs.fileno()), str(log or ""), *command],
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=output or subprocess.DEVNULL, stderr=output or subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), *pass_fds), start_new_session=True, cwd=cwd, env=dict(env),
            )  # fmt: skip
        self.pid = self._read_pid()

    @property
    def stdin(self) -> IO[bytes] | None:
        """Where it reads from, if it was asked for."""
        return self._process.stdin

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it is left."""
        return self._process.poll() is not None

    def wait(self, timeout_s: float | None = None) -> int:
        """The exit status, below 0 of a signal, once nothing of it is left.

        Raises:
            subprocess.TimeoutExpired: It took longer.
        """
        status = self._process.wait(timeout_s)
        self._control.close()
        return status

    def end(self) -> int:
        """End it with all that it started; once is enough."""
        self._control.close()
        try:
            return self.wait(_END_S)
        except subprocess.TimeoutExpired:  # somebody stopped the supervisor
            self._process.kill()
            return self._process.wait()

    def _read_pid(self) -> int:
        """The command's own process; the supervisor's where that ended at once."""
        self._control.settimeout(_START_S)
        with suppress(OSError, ValueError):
            return int(self._control.recv(32))
        return self._process.pid


def last_lines(log: Path, count: int = 1) -> str:
    """Of what a process printed, cleaned; empty where there is nothing. Only the end is read."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL))
            lines = [clean(line).strip() for line in file.read().decode("utf-8", "replace").splitlines()]
    except OSError:
        return ""
    return "\n".join([line for line in lines if line and not line.startswith(("File ", "Traceback"))][-count:])
