"""A Python that has loaded torch already, and of which the processes of candidates are forked.

To load torch takes three seconds of each. From there on all is as in a process of its own: `process/worker.py` runs
with its files, folder and environment. What lacks is what stands around it, so tests of what a candidate starts, of how
it ends and of what it sees of its process take none of these.

`python warm_python.py CHANNEL`: the number of a socket. A message to it has a command's folder, environment and log,
with its files; the answer is the id of its process. An id as a message is answered with the status that it ended with.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from inferometer.bench.process import worker
from inferometer.bench.supervised import Supervised

_LONGEST, _MOST_FILES = 1 << 18, 8
_END_S = 30.0
_WORKER = ["-m", worker.__name__]


class WarmPython:
    """The running process, a context manager; `start` stands in the place of `Supervised`."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )

    def __enter__(self) -> "WarmPython":
        return self

    def __exit__(self, *error: object) -> None:
        self._channel.close()
        self._process.wait(_END_S)

    def start(self, command: Sequence[str], **given: Any) -> "Forked | Supervised":
        """A forked process, where the command is that of a candidate."""
        if list(command[1:3]) != _WORKER:
            return Supervised(command, **given)
        return Forked(self, **given)

    def ask(self, message: Any, files: Sequence[int] = ()) -> int:
        """What is answered."""
        socket.send_fds(self._channel, [json.dumps(message).encode()], files)
        return int(self._channel.recv(_LONGEST))


class Forked:
    """As `Supervised`: a running process, without anything around it."""

    def __init__(
        self, python: WarmPython, *, cwd: Path, env: Mapping[str, str], log: Path, stdin: int, pass_fds: Sequence[int]
    ) -> None:
        assert stdin == subprocess.PIPE
        reading, writing = os.pipe()
        self.stdin: IO[bytes] = os.fdopen(writing, "wb")
        message = {"cwd": str(cwd), "env": dict(env), "log": str(log)}
        self.pid, self._python = python.ask(message, [reading, *pass_fds]), python
        os.close(reading)
        self._handle = os.pidfd_open(self.pid)
        self._status: int | None = None

    @property
    def has_ended(self) -> bool:
        return self._status is not None or bool(select.select([self._handle], [], [], 0)[0])

    def wait(self, timeout_s: float | None = None) -> int:
        if self._status is None:
            if not select.select([self._handle], [], [], timeout_s)[0]:
                raise subprocess.TimeoutExpired(_WORKER, timeout_s or 0.0)
            self._status = os.waitstatus_to_exitcode(self._python.ask(self.pid))
            os.close(self._handle)
        return self._status

    def end(self) -> int:
        if self._status is None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        return self.wait(_END_S)


def serve(channel: socket.socket) -> None:
    """Fork and wait as it is asked to, until the other end is closed."""
    import torch  # noqa: F401  what takes its time

    while True:
        data, files, _, _ = socket.recv_fds(channel, _LONGEST, _MOST_FILES)
        if not data:
            return
        asked = json.loads(data)
        if isinstance(asked, int):
            answer = os.waitpid(asked, 0)[1]
        elif not (answer := os.fork()):
            channel.close()
            _become(asked, files)
        for file in files:
            os.close(file)
        channel.send(str(answer).encode())


def _become(asked: Mapping[str, Any], files: Sequence[int]) -> None:
    """In the child: the worker, and nothing after it."""
    code = 1
    try:
        os.setsid()
        os.chdir(asked["cwd"])
        os.environ.clear()
        os.environ.update(asked["env"])
        log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for number, file in enumerate((files[0], log, log)):
            os.dup2(file, number)
        os.close(files[0])
        os.close(log)
        sys.argv[1:] = [*map(str, files[1:]), *["-1"] * (5 - len(files))]
        code = worker.main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as own:
        serve(own)
