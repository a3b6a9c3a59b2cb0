"""The folders that a server may read, and whether a path stays in them.

A path is followed to its end (`..`, links) before it is judged. Of one that ends elsewhere nothing is said, not even
whether it is there. What is found once may be replaced before it is read: who can write into a root is trusted.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from inferometer.errors import InputError, printable

_MOST_ENTRIES = 10_000

State = tuple[tuple[str, int, int], ...]
"""What identifies a file, or all files in a folder: path, size, and when it was written, in ns."""


@dataclass(frozen=True)
class Place:
    """A path in a root, absolute and without links, and what changes when it is written to."""

    path: str
    state: State


class Roots:
    """The folders, by their real paths.

    Raises:
        InputError: One is no folder.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        self.folders = tuple(dict.fromkeys(map(_root, folders)))

    def find(self, given: str) -> Place:
        """Where a path leads that a client gave; a relative one counts from the first root that has it.

        Raises:
            InputError: It leads out of the roots, or to what is neither a file nor a folder; a folder holds a link that
                leads out of them, or too many files.
        """
        path = self.resolve(given)
        return Place(path, tuple(self._look(path, given)))

    def resolve(self, given: str) -> str:
        """The real path alone; what is there isn't looked at.

        Raises:
            InputError: It leads out of the roots, or can't be a path.
        """
        inside = [path for path in self._candidates(given) if self.holds(path)]
        if not inside:
            raise self._refusal(given, "outside the folders that this server may read")
        return next(filter(os.path.lexists, inside), inside[0])

    def holds(self, path: str) -> bool:
        """Whether a real path is a root, or in one."""
        return any(Path(path).is_relative_to(folder) for folder in self.folders)

    def _candidates(self, given: str) -> Iterator[str]:
        for folder in self.folders:
            try:
                path = os.path.join(folder, given)  # noqa: PTH118  `Path` takes "." away from "x/."
                os.fsencode(path)
                yield os.path.realpath(path)
            except ValueError:  # a null character, or half a character
                raise InputError(f"{printable(given)!r}: expected a path, found what can't be one") from None

    def _look(self, top: str, given: str) -> Iterator[tuple[str, int, int]]:
        """The state of all files, each once; folders are entered once, wherever links lead."""
        waiting, seen = [top], {top}
        while waiting:
            path = waiting.pop()
            try:
                about = Path(path).stat()
                entries = sorted(os.listdir(path)) if stat.S_ISDIR(about.st_mode) else []  # noqa: PTH208  names alone
            except OSError:  # opening it says what is wrong
                continue
            if path == top and not (stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode)):
                raise self._refusal(given, "expected a file or a folder, found a pipe or a device")
            yield path, about.st_size, about.st_mtime_ns
            for entry in entries:
                found = os.path.realpath(Path(path, entry))
                if not self.holds(found):
                    raise self._refusal(given, "holds a link that leads outside the folders that this server may read")
                if found not in seen:
                    seen.add(found)
                    waiting.append(found)
            if len(seen) > _MOST_ENTRIES:
                raise self._refusal(given, f"expected at most {_MOST_ENTRIES:,} files in a folder, found more")

    def _refusal(self, given: str, why: str) -> InputError:
        return InputError(f"{printable(given)}: {why}", hint=f"It reads: {', '.join(map(printable, self.folders))}")


def _root(folder: str) -> str:
    try:
        path = os.path.realpath(folder)
    except ValueError:
        path = ""
    if not path or not Path(path).is_dir():
        raise InputError(f"{printable(folder)}: expected a folder to read from, found none", hint="Check --root.")
    return path
