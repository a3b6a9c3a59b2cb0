"""Which profiles lie below a folder, by their names alone: nothing is opened."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from inferometer.formats.base import known_formats, made_beside
from inferometer.formats.reading import is_store

_MOST_ENTRIES = 20_000


class Walk:
    """Goes down folders, not through links to folders, and ends after so many entries.

    `unfollowed` counts links to folders, and what may not be listed.

    Args:
        holds: Whether a real path may be listed: a link may lead anywhere.
        is_apart: Whether a folder is something else than profiles: it isn't gone into, and is in `apart`.
    """

    def __init__(self, holds: Callable[[str], bool], is_apart: Callable[[Path], bool] = lambda folder: False) -> None:
        self.apart: list[Path] = []
        self.unfollowed = 0
        self._is_apart = is_apart
        self._room = _MOST_ENTRIES
        self._holds = holds
        endings = (suffix for fmt in known_formats().values() for suffix in fmt.suffixes)
        self._endings = tuple(ending.removesuffix(".gz") for ending in endings)

    @property
    def is_whole(self) -> bool:
        """Whether all was looked at so far."""
        return self._room >= 0

    def profiles(self, top: str | Path) -> Iterator[Path]:
        """Stores, and files whose name ends as those of a known format do, packed or not, in order of their paths.

        Not what a profiler made out of another file in its folder.
        """
        for folder, folders, files in os.walk(top):
            self._room -= len(folders) + len(files)
            if self._room < 0:
                return
            others = [name for name in folders if not name.startswith(".") and self._is_apart(Path(folder, name))]
            self.apart += [Path(folder, name) for name in others if self._holds(os.path.realpath(Path(folder, name)))]
            stores = [name for name in folders if is_store(Path(folder, name))]
            folders[:] = sorted(name for name in folders if name not in (*stores, *others) and not name.startswith("."))
            self.unfollowed += sum(Path(folder, name).is_symlink() for name in folders)
            made = made_beside(files)
            for name in sorted([*stores, *(name for name in files if name not in made)]):
                path = Path(folder, name)
                if name in stores:
                    yield path
                elif name.removesuffix(".gz").endswith(self._endings):
                    if self._holds(os.path.realpath(path)):
                        yield path
                    else:
                        self.unfollowed += 1
