"""The runs of a folder: each file or folder in it is one."""

from pathlib import Path

from inferometer.errors import InputError


def runs_of(folder: str) -> list[str]:
    """Paths of the runs in it, in order of names; hidden entries are none.

    Raises:
        InputError: It is no folder, or holds nothing.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InputError(
            f"{folder}: expected a folder of normal runs, found none", hint="Give each run a file or folder in it."
        )
    found = sorted(str(entry) for entry in path.iterdir() if not entry.name.startswith("."))
    if not found:
        raise InputError(f"{folder}: expected normal runs, found an empty folder")
    return found
