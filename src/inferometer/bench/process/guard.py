"""What a candidate's process refuses it, and what it reports of it.

Python's audit hooks see imports, opened files and calls of the system whatever name they are called by, and can't be
removed. Refused: the package's own code and files, the memory of processes, the network. Reported, by whose frame
asks: what a kernel has no need of, as starting a process or native code by ctypes. PyTorch and Triton do both to
compile; what they do by themselves isn't the candidate's. It is no wall against malice: the process may do what its
user may, by native code too.
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from inferometer.bench.process.libraries import Libraries

_PACKAGE = "inferometer"
_SENDS = frozenset({"socket.connect", "socket.bind", "socket.sendto"})
_CHANGES = frozenset(
    {"os.rename", "os.remove", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.rmdir", "os.mkdir"}
)
_STARTS, _NATIVE, _SEARCHES, _HOOKS = "starts processes", "calls native code", "searches for objects", "sets a hook"
REPORTED: Mapping[str, str] = {
    **dict.fromkeys(sorted(_CHANGES), "changes files"),
    "subprocess.Popen": _STARTS, "os.system": _STARTS, "os.fork": _STARTS, "os.forkpty": _STARTS,
    "os.posix_spawn": _STARTS, "os.exec": _STARTS, "os.kill": "sends signals", "signal.pthread_kill": "sends signals",
    "ctypes.dlopen": _NATIVE, "ctypes.dlsym": _NATIVE, "ctypes.cdata": _NATIVE, "ctypes.string_at": _NATIVE,
    "socket.__new__": "opens sockets", "mmap.__new__": "maps files",
    "gc.get_objects": _SEARCHES, "gc.get_referrers": _SEARCHES, "gc.get_referents": _SEARCHES,
    "sys._current_frames": _SEARCHES, "sys._current_exceptions": _SEARCHES,
    "sys.setprofile": _HOOKS, "sys.settrace": _HOOKS, "sys.addaudithook": _HOOKS,
    "object.__setattr__": "changes functions",
}  # fmt: skip
"""Events of Python's audit table, and what a candidate does that causes one."""

Report = Callable[[bytes], Any]


def arm(allowed: str, report: Report) -> None:
    """From now on, for the life of the process.

    Args:
        allowed: The candidate's own file, wherever it lies.
        report: Gets a line for everything that is reported, once.
    """
    for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
        del sys.modules[name]  # what is loaded already would be found without being imported
    folder = str(Path(__file__).resolve().parents[2]) + os.sep
    asked = _make_reporter(report, allowed, Libraries())
    sys.addaudithook(_make_hook(folder, allowed, asked))


def _asks_candidate(frame: FrameType | None, allowed: str, libraries: Libraries) -> bool:
    """Whether the innermost frame outside of Python's own library is the candidate's, or of code without a file."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file == allowed:
            return True
        if libraries.is_installed(file) or file.startswith("<frozen importlib"):  # what it compiles is kept in a file
            return False
        if not libraries.is_standard(file):
            maker = str(frame.f_globals.get("__file__") or "")  # of code that a library has made and calls
            return not libraries.is_installed(maker)
        frame = frame.f_back
    return False


def _make_reporter(report: Report, allowed: str, libraries: Libraries) -> Callable[[str, tuple[Any, ...]], None]:
    known: set[str] = set()
    get_frame = sys._getframe
    words = dict(REPORTED)

    def asked(event: str, args: tuple[Any, ...]) -> None:
        if event in known or not _asks_candidate(get_frame(2), allowed, libraries):
            return
        known.add(event)
        report(f"it {words[event]} ({event})".encode())

    return asked


def _make_hook(
    folder: str, allowed: str, asked: Callable[[str, tuple[Any, ...]], None]
) -> Callable[[str, tuple[Any, ...]], None]:
    realpath, fspath, fsdecode = os.path.realpath, os.fspath, os.fsdecode
    reported, sends, changes, package = frozenset(REPORTED), _SENDS, _CHANGES, _PACKAGE

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "import":
            if args[0].partition(".")[0] == package:
                raise ImportError(f"a candidate can't import {args[0]}: it gets its inputs as arguments")
        elif event == "open":
            if isinstance(args[0], str | bytes | os.PathLike):
                refuse(fsdecode(fspath(args[0])), "open")
        elif event in sends and isinstance(args[1], tuple):  # addresses of the network; others are of this machine
            raise PermissionError("a candidate can't use the network")
        elif event in reported:
            asked(event, args)
            if event in changes:
                for each in args[:2]:
                    if isinstance(each, str | bytes | os.PathLike):
                        refuse(fsdecode(fspath(each)), "change")

    def refuse(path: str, what: str) -> None:
        if path == allowed:
            return
        try:
            real = realpath(path)
        except OSError:  # its working directory is gone
            return
        if (real + os.sep).startswith(folder) and real != allowed:
            raise PermissionError(f"a candidate can't {what} {Path(path).name} of the evaluator")
        if real.startswith("/proc/") and real.endswith("/mem"):
            raise PermissionError("a candidate can't read the memory of processes")

    return hook
