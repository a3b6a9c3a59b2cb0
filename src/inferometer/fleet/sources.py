"""Which traces words of a command line name: files, folders, globs, lists (`@list.txt`), and URLs.

A folder is gone through to its end, but not through links to folders and not into what is hidden: each file in it is a
trace, and so is a store, and a folder that a format takes as one profile; not what a profiler made out of another file,
as the JSON next to a `.xplane.pb`. The files of ranks are traces of their own.
What is no profile is found out when it is opened.
"""

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from inferometer.errors import InputError, printable
from inferometer.fleet.files import is_fleet
from inferometer.formats.base import is_one_profile, made_beside
from inferometer.formats.reading import is_store
from inferometer.formats.source import URL, Source
from inferometer.side_files import read_side_file

LABELS: Final = ("model", "gpu", "engine", "version", "deployment")
_MAGIC: Final = re.compile(r"[*?\[]")
_LARGEST_LIST: Final = 256 << 20


@dataclass(frozen=True)
class Place:
    """Where a trace is, by the name it was given: a path, or a URL."""

    name: str

    @property
    def is_remote(self) -> bool:
        """Whether it must be fetched."""
        return URL.match(self.name) is not None


def find_places(words: Iterable[str]) -> list[Place]:
    """All traces that these words name, each name once, in order of their names.

    Raises:
        InputError: A word names nothing.
        Unavailable: It is a URL, and what reads it isn't installed.
    """
    names = {os.path.normpath(name) if URL.match(name) is None else name for word in words for name in _names(word)}
    return [Place(name) for name in sorted(names)]


def _names(word: str) -> Iterator[str]:
    if word.startswith("@"):
        for line in _lines(word[1:]):
            yield from _names(line)
    elif URL.match(word):
        from inferometer.fleet.remote import list_urls

        yield from list_urls(word)
    elif os.path.lexists(word):
        yield from _below(Path(word))
    elif _MAGIC.search(word):
        found = sorted(glob.glob(word, recursive=True))  # noqa: PTH207 - Path takes no absolute pattern
        if not found:
            raise InputError(f"{printable(word)}: matches no file", hint="Quote it, so that the shell leaves it alone.")
        for name in found:
            yield from _below(Path(name))
    else:
        raise InputError(f"{printable(word)}: no such file or folder", hint="Give files, folders, globs or @LIST.")


def _lines(path: str) -> Iterator[str]:
    """Those of a list that name something; a list may name no list, which might be itself."""
    data = read_side_file(Path(path), most=_LARGEST_LIST, hint="A list has a path, glob or URL on each line.")
    for number, raw in enumerate(data.split(b"\n"), 1):
        line = os.fsdecode(raw.strip())
        if line.startswith("@"):
            raise InputError(f"{printable(path)}:{number}: expected a path, found another list", hint="Join them.")
        if line and not line.startswith("#"):
            yield line


def _below(path: Path) -> Iterator[str]:
    if not path.is_dir() or _is_one(path):
        yield str(path)
        return
    for folder, folders, files in os.walk(path):
        if is_fleet(Path(folder)):
            folders.clear()
            continue
        ones = [name for name in folders if not name.startswith(".") and _is_one(Path(folder, name))]
        folders[:] = sorted(name for name in folders if name not in ones and not name.startswith("."))
        made = made_beside(files)
        names = [*ones, *(name for name in files if name not in made)]
        yield from (str(Path(folder, name)) for name in names if not name.startswith("."))


def _is_one(folder: Path) -> bool:
    """Whether a folder is one trace: not where formats also take folders in it, each as a trace."""
    if is_store(folder):
        return True
    if is_fleet(folder) or not is_one_profile(Source(folder)):
        return False
    return not any(each.is_dir() and is_one_profile(Source(each)) for each in folder.iterdir())


def compile_labels(pattern: str | None) -> re.Pattern[str] | None:
    """A regular expression whose named groups are labels.

    Raises:
        InputError: It is none, or names something else, or nothing.
    """
    if pattern is None:
        return None
    wanted = f"expected a regular expression with groups of {', '.join(LABELS)}"
    hint = r"For traces in MODEL/ENGINE-VERSION/: '(?P<model>[^/]+)/(?P<engine>\w+)-(?P<version>[^/]+)/[^/]+$'"
    try:
        found = re.compile(pattern)
    except re.error as error:
        raise InputError(f"labels: {wanted}, found {pattern!r} ({error})", hint=hint) from error
    if unknown := sorted(set(found.groupindex) - set(LABELS)):
        raise InputError(f"labels: {wanted}, found {unknown[0]!r}", hint=hint)
    if not found.groupindex:
        raise InputError(f"labels: {wanted}, found no named group in {pattern!r}", hint=hint)
    return found


def labels_of(name: str, pattern: re.Pattern[str] | None) -> Mapping[str, str]:
    """What a path says of its trace; nothing where the pattern finds nothing in it."""
    match = None if pattern is None else pattern.search(printable(name))
    return {} if match is None else {key: text for key, text in sorted(match.groupdict().items()) if text}
