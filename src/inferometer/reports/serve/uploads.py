"""Files that are dropped on the page, and tags, kept in one folder, where there is one. Nothing is replaced.

A file is written next to its place and moved there when it is whole; it is read as any other, by a job, with the limits
of the command line.
"""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from inferometer.errors import InputError, clean
from inferometer.formats.base import known_formats
from inferometer.new_files import NewFile, begins_with

_MOST_BYTES = 8 * 10**9
_ROOM_BYTES = 10**9  # that is left on the disk
_LONGEST_NAME = 150
_NOT_IN_NAMES = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]')
_TAGS = ".inferometer-tags"
_MOST_TAGS, _LONGEST_TAG = 20, 40
_MOST_TAG_BYTES = 16 << 20


class TooLarge(InputError):
    """More than is taken, or than there is room for."""


class Uploads:
    """The folder. Raises `InputError` where it is none, or can't be written to."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise InputError(f"{folder}: expected a folder to keep files in, found none", hint="Make it first.")
        self.folder = folder.absolute()
        self._taken: set[str] = set()
        self._tags = _read_tags(self.folder / _TAGS)

    async def take(self, name: str, body: AsyncIterator[bytes], length: int | None) -> Path:
        """Keep a file; where one of this name is there, under another.

        Raises:
            TooLarge: It is.
            InputError: No format has files of such a name, or it can't be written.
        """
        self._check(length or 0)
        place = self._free(_checked(name))
        self._taken.add(place.name)
        try:
            with NewFile(place) as work, work.open("wb") as file:
                size = 0
                async for block in body:
                    size += len(block)
                    self._check(size)
                    await asyncio.to_thread(file.write, block)
                if not size:
                    raise InputError(f"{place.name}: expected a file, found nothing in it")
        finally:
            self._taken.discard(place.name)
        return place

    def tags(self, run: str) -> list[str]:
        """What somebody called a run."""
        return self._tags.get(run, [])

    def tag(self, run: str, tags: list[str]) -> None:
        """Call a run this from now on.

        Raises:
            InputError: They are too many, too long or empty.
        """
        found = [*dict.fromkeys(clean(tag).strip() for tag in tags)]
        if len(found) > _MOST_TAGS or any(not 0 < len(tag) <= _LONGEST_TAG for tag in found):
            raise InputError(f"tags: expected at most {_MOST_TAGS} of 1 to {_LONGEST_TAG} characters")
        self._tags = (
            {**self._tags, run: found} if found else {key: own for key, own in self._tags.items() if key != run}
        )
        with NewFile(self.folder / _TAGS, force=True, kind=begins_with("list of tags", b"{")) as work:
            work.write_bytes(msgspec.json.encode(self._tags))

    def _check(self, size: int) -> None:
        if size > _MOST_BYTES:
            raise TooLarge(f"expected at most {_MOST_BYTES / 1e9:g} GB, found more", hint="Start the server on it.")
        if shutil.disk_usage(self.folder).free - size < _ROOM_BYTES:
            raise TooLarge(f"{self.folder}: the disk has no room for it", hint="Make room.")

    def _free(self, name: str) -> Path:
        stem, dot, ending = name.partition(".")
        for number in range(1, 10_000):
            free = name if number == 1 else f"{stem}-{number}{dot}{ending}"
            if free not in self._taken and not (self.folder / free).exists():
                return self.folder / free
        raise InputError(f"{name}: there are too many files of this name")


def _checked(name: str) -> str:
    """The name alone, as one may be on any system.

    Raises:
        InputError: It is none, or no format has files of such a name.
    """
    found = _NOT_IN_NAMES.sub("_", re.split(r"[\\/]", clean(name))[-1]).strip().lstrip(".")
    try:
        found.encode()
    except UnicodeEncodeError:
        found = found.encode("ascii", "ignore").decode()
    endings = sorted({ending for fmt in known_formats().values() for ending in fmt.suffixes})
    if not found or not found.endswith(tuple(endings)):
        raise InputError(
            f"{found or 'a file without a name'}: expected a name in {', '.join(endings)}", hint="Rename it."
        )
    ending = max((each for each in endings if found.endswith(each)), key=len)
    return found[: _LONGEST_NAME - len(ending)].removesuffix(ending) + ending if len(found) > _LONGEST_NAME else found


def _read_tags(place: Path) -> dict[str, list[str]]:
    try:
        if place.stat().st_size > _MOST_TAG_BYTES:
            raise InputError(f"{place}: expected a list of tags, found {place.stat().st_size:,} bytes")
        return msgspec.json.decode(place.read_bytes(), type=dict[str, list[str]])
    except FileNotFoundError:
        return {}
    except (msgspec.DecodeError, OSError) as error:
        raise InputError(f"{place}: expected a list of tags: {error}", hint="Mend or remove it.") from error
