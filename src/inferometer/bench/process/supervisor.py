"""Runs a command, and ends with it all that it started, whatever session or parent that has by then.

`python -I -S supervisor.py CONTROL LOG COMMAND...`: CONTROL is the number of a socket that gets the command's process
id, and whose other end, closed, asks for the end. LOG gets the last of what the command printed; with an empty name
that goes where this process prints. The exit status is the command's, signals included. Imports nothing of the
package: it starts in milliseconds, before every candidate.

On Linux it is the *subreaper* of its descendants: a process whose parent ended becomes its child, not init's, so that a
double fork leads nowhere. Elsewhere only the command's process group is ended. Code with the user's rights can still
kill this process first; then its child dies with it, but what that left behind stays.
"""

import ctypes
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

_TAIL = 1 << 16  # bytes of the output that are kept: why something ended stands in its last lines
_SET_DEATH_SIGNAL, _SET_SUBREAPER = 1, 36  # prctl(2)
_IS_LINUX = sys.platform == "linux"
_END_S = 10.0


def main(control: int, log: str, command: list[str]) -> int:
    """Exit code of the command, once nothing of it is left."""
    _prctl(_SET_SUBREAPER, 1)
    woken, wake = _wake_on_signals()
    printed, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _become(command, writing if log else None)
    _keep_only({control, printed, woken, wake})
    with suppress(OSError):
        os.write(control, b"%d\n" % child)
    status, tail = _watch(child, control, printed, woken)
    status = _end_all(child, status)
    if log:
        Path(log).write_bytes(_rest_of(printed, tail))
    return _exit_as(status)


def _become(command: list[str], output: int | None) -> None:
    """In the child: the command, in a group of its own, which dies with its parent."""
    try:
        os.setpgid(0, 0)
        _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if output is not None:
            os.dup2(output, 1)
            os.dup2(output, 2)
        os.execv(command[0], command)
    finally:
        os._exit(127)


def _wake_on_signals() -> tuple[int, int]:
    """A pipe that can be read when a child ended."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    return woken, wake


def _keep_only(wanted: set[int]) -> None:
    """Close what only the command needs: others must see its end."""
    kept = sorted(wanted)
    for low, high in zip([-1, *kept], [*kept, 1 << 16], strict=True):
        os.closerange(low + 1, high)


def _watch(child: int, control: int, printed: int, woken: int) -> tuple[int | None, bytes]:
    """Until the command ends or is to end: its status, if it has one, and the last of what it printed."""
    tail, watched = b"", [control, printed, woken]
    while True:
        ready, _, _ = select.select(watched, [], [])
        if printed in ready:
            part = os.read(printed, _TAIL)
            tail = (tail + part)[-_TAIL:]
            watched = watched if part else [control, woken]  # nobody is left who could print
        if woken in ready:
            with suppress(BlockingIOError):
                os.read(woken, _TAIL)
            status, _ = _reap(child)
            if status is not None:
                return status, tail
        if control in ready and not os.read(control, 1):
            return None, tail


def _reap(child: int, status: int | None = None) -> tuple[int | None, bool]:
    """Take the status of all that ended: the command's, or `status` until it has one, and whether any child is left."""
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            status = ended[1] if ended[0] == child else status
    except ChildProcessError:
        return status, False
    return status, True


def _end_all(child: int, status: int | None) -> int:
    """Kill all descendants until there are none; those of a killed one become children of this process."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    until = time.monotonic() + _END_S
    while time.monotonic() < until:
        for each in _descendants():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)
        status, is_left = _reap(child, status)
        if not is_left:
            break
        time.sleep(0.002)
    return signal.SIGKILL if status is None else status


def _descendants() -> list[int]:
    """Processes below this one; none where the system doesn't list them."""
    parents: dict[int, int] = {}
    for each in Path("/proc").iterdir() if _IS_LINUX else ():
        if each.name.isdecimal():
            with suppress(OSError, ValueError, IndexError):
                parents[int(each.name)] = int((each / "stat").read_bytes().rpartition(b")")[2].split()[1])
    found = {os.getpid()}
    while grown := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= grown
    return sorted(found - {os.getpid()})


def _rest_of(printed: int, tail: bytes) -> bytes:
    os.set_blocking(printed, False)
    with suppress(BlockingIOError):
        while part := os.read(printed, _TAIL):
            tail = (tail + part)[-_TAIL:]
    return tail


def _exit_as(status: int) -> int:
    """The exit code of a `wait` status; a signal is raised here, too."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return os.WEXITSTATUS(status)


def _prctl(option: int, value: int) -> None:
    if _IS_LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
