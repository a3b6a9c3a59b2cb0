"""A Python that has loaded modules already, and of which processes are forked: candidates of bench, and commands.

To load torch takes three seconds of each process, to load Polars and ours half a second. From there on all is as in a
process of its own: the same module runs with its arguments, files, folder and environment. What lacks is what stands
around it, so tests of what a candidate starts, of how it ends and of what it sees of its process take none of these.

`python warm_python.py CHANNEL MODULE...`: the number of a socket. A message to it has a module with its arguments, a
folder and an environment, with files: standard input, output, errors, and others in the place of the first arguments.
The answer is the id of its process. An id as a message is answered with the status that it ended with.
"""

import importlib
import json
import os
import pkgutil
import select
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from inferometer.bench.supervised import Supervised

WORKERS = ("inferometer.bench.process.worker", "inferometer.bench.builds.worker")
COMMANDS = "inferometer.commands.main"
ROOMS = ("trace", "formats", "names", "analyses", "findings", "reports", "commands")
_LONGEST, _MOST_FILES = 1 << 18, 8
_END_S = 30.0


class WarmPython:
    """The running process, which has loaded `modules`, a context manager. Linux only.

    `start` stands in the place of `Supervised`, `start_command` in that of a shell.
    """

    def __init__(self, *modules: str) -> None:
        self._lock = threading.Lock()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno()), *modules],
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
        """A forked process, where the command is one of `WORKERS`."""
        _, *words = (word for word in command if word != "-P")
        if words[:1] == ["-m"] and words[1] in WORKERS:
            return Forked(self, words[1:], **given)
        return Supervised(command, **given)

    def start_command(self, command: str, *, cwd: Path, env: Mapping[str, str], stdout: int, stderr: int) -> "Forked":
        """A forked process that runs `inferometer`: a command that asks nothing of a shell but to take quotes away."""
        _, *words = shlex.split(command)
        with os.fdopen(os.dup(stdout), "wb") as output, os.fdopen(os.dup(stderr), "wb") as errors:
            return Forked(self, [COMMANDS, *words], cwd=cwd, env=env, output=output, errors=errors)

    def ask(self, message: Any, files: Sequence[int] = ()) -> int:
        """What is answered."""
        with self._lock:
            socket.send_fds(self._channel, [json.dumps(message).encode()], files)
            return int(self._channel.recv(_LONGEST))


class Forked:
    """As `Supervised`: a running process, without anything around it."""

    def __init__(
        self,
        python: WarmPython,
        words: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        log: Path | None = None,
        output: IO[Any] | None = None,
        errors: IO[Any] | None = None,
        stdin: int | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        reading, writing = os.pipe()
        self.stdin = os.fdopen(writing, "wb")
        if stdin is None:
            self.stdin.close()
        self._python = python
        with output or Path(log or os.devnull).open("wb") as printed:
            message = {"words": list(words), "cwd": str(cwd), "env": dict(env)}
            said = errors or printed
            self.pid = python.ask(message, [reading, printed.fileno(), said.fileno(), *pass_fds])
        os.close(reading)
        self._handle = os.pidfd_open(self.pid)
        self._status: int | None = None

    @property
    def has_ended(self) -> bool:
        return self._status is not None or bool(select.select([self._handle], [], [], 0)[0])

    def wait(self, timeout_s: float | None = None) -> int:
        if self._status is None:
            if not select.select([self._handle], [], [], timeout_s)[0]:
                raise subprocess.TimeoutExpired(WORKERS[0], timeout_s or 0.0)
            self._status = os.waitstatus_to_exitcode(self._python.ask(self.pid))
            os.close(self._handle)
        return self._status

    def kill(self) -> None:
        if self._status is None:
            for kill in (os.killpg, os.kill):  # it may have no group of its own yet
                with suppress(ProcessLookupError):
                    kill(self.pid, signal.SIGKILL)

    def end(self) -> int:
        self.kill()
        return self.wait(_END_S)


def modules_of_commands() -> list[str]:
    """All that a command may load of ours but engines, and scipy."""
    rooms = [importlib.import_module(f"inferometer.{name}") for name in ROOMS]
    ours = (each.name for room in rooms for each in pkgutil.walk_packages(room.__path__, f"{room.__name__}."))
    return [*ours, "scipy.stats"]


def serve(channel: socket.socket, modules: Sequence[str]) -> None:
    """Fork and wait as it is asked to, until the other end is closed."""
    for name in modules:
        importlib.import_module(name)
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
    """In the child: the module, and nothing after it."""
    code = 1
    try:
        os.setsid()
        os.chdir(asked["cwd"])
        os.environ.clear()
        os.environ.update(asked["env"])
        standard, others = files[:3], files[3:]
        for number, file in enumerate(standard):
            os.dup2(file, number)
            os.close(file)
        sys.stdin = os.fdopen(0, closefd=False)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
        name, *words = asked["words"]
        sys.argv[1:] = [*map(str, others), *words[len(others) :]]
        code = sys.modules[name].main() or 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as own:
        serve(own, sys.argv[2:])
