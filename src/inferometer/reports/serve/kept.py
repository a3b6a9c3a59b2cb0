"""What jobs made, kept in the user's folder of caches: a folder per content, the longest unused ones deleted first.

Every file in it was moved to its place when it was whole, so a server or a job that is killed leaves nothing broken.
"""

import hashlib
import os
import shutil
from contextlib import suppress
from pathlib import Path

from inferometer import __version__
from inferometer.caches import cache_folder

MOST_BYTES = 20 * 10**9
_LAYOUT = 2  # rises when what lies in such a folder changes


class Kept:
    """The `folder`; `most_bytes`: what is deleted beyond."""

    def __init__(self, folder: Path | None = None, *, most_bytes: int = MOST_BYTES) -> None:
        self.folder = (folder or cache_folder() / "serve") / f"{__version__}-{_LAYOUT}"
        self._most_bytes = most_bytes

    def place(self, key: str) -> Path:
        """The folder of a content, made where it isn't there; it counts as used now."""
        place = self.folder / key
        place.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):
            os.utime(place)
        return place

    def find(self, key: str) -> Path:
        """Where the folder of a content is, if it is there."""
        return self.folder / key

    def make_room(self, in_use: set[str]) -> None:
        """Delete what was not used for the longest time, until the rest has room; never what is in use."""
        with suppress(OSError):
            places = sorted(self.folder.iterdir(), key=lambda place: place.stat().st_mtime_ns)
            sizes = {place: _size(place) for place in places}
            over = sum(sizes.values()) - self._most_bytes
            for place in places:
                if over > 0 and place.name not in in_use:
                    shutil.rmtree(place, ignore_errors=True)
                    over -= sizes[place]


def key_of(*parts: object) -> str:
    """A name for a content that is the same while these are."""
    return hashlib.sha256(repr(parts).encode(errors="surrogateescape")).hexdigest()[:32]


def _size(place: Path) -> int:
    total = 0
    for folder, _, files in os.walk(place):
        for name in files:
            with suppress(OSError):
                total += Path(folder, name).lstat().st_size
    return total
