"""What the system says of processes: whether one is there, the cores that ours may use, how many may read a file."""

import os
from pathlib import Path
from typing import Final

from inferometer.errors import InputError

VARIABLE: Final = "INFEROMETER_PROCESSES"
"""The environment's variable for how many processes read a file. Unset: by the file's size and the cores."""
_MOST: Final = 1024


def own_cores() -> frozenset[int]:
    """Those that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux has it
    return frozenset(affinity(0)) if affinity else frozenset(range(os.cpu_count() or 1))


def asked_processes() -> int | None:
    """How many processes the environment asks for to read a file; None where it doesn't say.

    Raises:
        InputError: It says something else than a number of processes.
    """
    asked = os.environ.get(VARIABLE, "")
    if not asked:
        return None
    if not (asked.isdecimal() and 0 < int(asked) <= _MOST):
        raise InputError(f"{VARIABLE}: expected a number of processes from 1 to {_MOST}, found {asked[:40]!r}")
    return int(asked)


def is_alive(pid: int) -> bool:
    """Whether there is such a process, as far as that can be asked; of a number that can't be one, none."""
    if os.name == "nt":  # where asking would end it
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def state_of(pid: int) -> str | None:
    """Linux's letter for what it does, Z and X where it has ended; None where /proc doesn't say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0] if fields else None
