"""Whether a process is there, asked of the system by its number."""

import os
from pathlib import Path


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
