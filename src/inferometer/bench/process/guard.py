"""What a candidate's process refuses it: the package's own code and files, other processes, the network.

Python's audit hooks see imports and opened files whatever name they are called by, and can't be removed. This stops a
candidate from calling the reference in place of a kernel, or from reading the memory of the process that knows the
answers. It is no wall against malice: the process may do what its user may, by native code too.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PACKAGE = "inferometer"
_SENDS = frozenset({"socket.connect", "socket.bind", "socket.sendto"})


def arm(allowed: str) -> None:
    """From now on, for the life of the process. `allowed`: the candidate's own file, wherever it lies."""
    for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
        del sys.modules[name]  # what is loaded already would be found without being imported
    sys.addaudithook(_make_hook(str(Path(__file__).resolve().parents[2]) + os.sep, allowed))


def _make_hook(folder: str, allowed: str) -> Callable[[str, tuple[Any, ...]], None]:
    realpath, fspath = os.path.realpath, os.fspath

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "import":
            if args[0].partition(".")[0] == _PACKAGE:
                raise ImportError(f"a candidate can't import {args[0]}: it gets its inputs as arguments")
        elif event == "open":
            if isinstance(args[0], str | bytes | os.PathLike):
                refuse(os.fsdecode(fspath(args[0])))
        elif event in _SENDS and isinstance(args[1], tuple):  # addresses of the network; others are of this machine
            raise PermissionError("a candidate can't use the network")

    def refuse(path: str) -> None:
        if path == allowed:
            return
        real = realpath(path)
        if real.startswith(folder) and real != allowed:
            raise PermissionError(f"a candidate can't open {Path(path).name} of the evaluator")
        if real.startswith("/proc/") and real.endswith("/mem"):
            raise PermissionError("a candidate can't read the memory of processes")

    return hook
