"""Whether a path is a recording that is still being written: one store, or a folder with a store for each process."""

from pathlib import Path

from inferometer.errors import InputError
from inferometer.trace.store import read_manifest
from inferometer.trace.store_writer import is_store

_PARTS = ".parts"
_MOST_STORES = 1024


def is_growing(path: Path) -> bool:
    """Whether this is a recording that is still being written, or was left unfinished.

    Raises:
        InputError: It is a store that can't be read.
    """
    if is_store(path):
        return read_manifest(path).facts.recorded.get("finished", True) is False
    if not path.is_dir():
        return False
    return path.name.endswith(_PARTS) or any(map(is_growing, stores_in(path)))


def stores_in(folder: Path) -> list[Path]:
    """The stores in a folder, by name; links to others aren't followed.

    Raises:
        InputError: There are too many.
    """
    found = sorted(path for path in folder.glob("*.ifm") if is_store(path) and not path.is_symlink())
    if len(found) > _MOST_STORES:
        raise InputError(f"{folder}: expected at most {_MOST_STORES:,} recordings, found {len(found):,}")
    return found
