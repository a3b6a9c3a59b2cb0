"""What is at a path: its size, a stamp that changes with it, and the hash that names its content."""

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from inferometer.side_files import open_plain

_BLOCK: Final = 1 << 20


@dataclass(frozen=True)
class Content:
    """What is at a place: `stamp` is the same while the content is."""

    bytes: int
    stamp: str


def look_at(path: Path) -> Content:
    """Size and stamp of a file, or of all files of a folder.

    Raises:
        OSError: It isn't there, or may not be read.
    """
    stats = [file.stat() for file in _files(path)]
    size, changed = sum(each.st_size for each in stats), max((each.st_mtime_ns for each in stats), default=0)
    return Content(size, f"{len(stats)}:{size}:{changed}")


def hash_of(path: Path) -> str:
    """SHA-256 of a file; of a folder, of the names in it and the hashes of their files.

    Raises:
        OSError: It can't be read.
    """
    if not path.is_dir():
        return _hash_of_file(path)
    whole = sha256()
    for file in _files(path):
        whole.update(os.fsencode(file.relative_to(path).as_posix()) + b"\0" + _hash_of_file(file).encode())
    return whole.hexdigest()


def _files(path: Path) -> list[Path]:
    return sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]


def _hash_of_file(path: Path) -> str:
    digest = sha256()
    with open_plain(path, hint="It isn't waited for.") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
