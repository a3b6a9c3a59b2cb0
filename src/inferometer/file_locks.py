"""Locks between processes. They go with a process that is killed, so none is ever left."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time; others wait. The file is made, and stays. On Windows nobody waits."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def hold(path: Path) -> int:
    """A lock on a file or a folder that is there, for as long as the descriptor that is returned stays open.

    Raises:
        BlockingIOError: Another process has it.
        OSError: The file system has no locks.
    """
    import fcntl

    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(opened)
        raise
    return opened
