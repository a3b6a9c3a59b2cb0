"""The runs below the paths that the server was started with: files, stores, fleets, and recordings that still go on.

Nothing of them is read but the list of a store's files, as bytes, which changes whenever the store does. A client
knows a run by a number that we gave it, never by a path.
"""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from inferometer.errors import InputError, printable
from inferometer.fleet.files import MANIFEST as FLEET_MANIFEST
from inferometer.fleet.files import TABLES, is_fleet
from inferometer.formats.walk import Walk
from inferometer.record.workers.parts import find_parts
from inferometer.reports.serve.kept import key_of
from inferometer.samples import without_prefix
from inferometer.trace.store_writer import MANIFEST, folder_bytes, is_store

Kind = Literal["file", "store", "folder", "parts", "fleet"]
_PARTS = ".parts"  # of a recording that goes on: `NAME.ifm.parts`
_UNFINISHED = re.compile(rb'"finished"\s*:\s*false')
_RANK = re.compile(r"rank[-_]?[0-9]+", re.IGNORECASE)
_STILL_S = 30.0  # a recording writes every second; of one that was killed nothing comes any more
_MOST_MANIFEST_BYTES = 64 << 20


@dataclass(frozen=True)
class Run:
    """One run. `key`: of its content as it is now; `place`: the folder that it lies in, from the path given."""

    id: str
    path: Path
    name: str
    place: str
    kind: Kind
    bytes: int
    changed_ns: int
    key: str
    is_recording: bool = False

    @property
    def title(self) -> str:
        """What people call it."""
        return printable(self.name)


class Library:
    """The runs as they were found last: `scan` looks again.

    Args:
        paths: Files, stores, or folders to look through.
        is_one: Whether a folder is one profile, which may need a look into its files.
        without: A folder that holds none, wherever it lies.

    Raises:
        InputError: One of them isn't there.
        UnknownName: There is no such sample.
    """

    def __init__(self, paths: Iterable[str | Path], *, is_one: Callable[[str], bool], without: Path) -> None:
        self._tops = [_existing(path) for path in paths]
        self._is_one = is_one
        self._without = os.path.realpath(without)
        self._folders: dict[Path, tuple[int, bool]] = {}
        self._manifests: dict[Path, tuple[int, str, bool]] = {}
        self.runs: dict[str, Run] = {}
        self.is_whole = True
        self.unfollowed = 0
        self.scan()

    def add(self, path: Path) -> None:
        """Look there, too."""
        if path.absolute() not in self._tops:
            self._tops.append(path.absolute())

    def scan(self) -> bool:
        """Look at all paths; whether anything changed."""
        before = self.runs
        found: dict[str, Run] = {}
        self.is_whole = True
        self.unfollowed = 0
        for top in self._tops:
            for run in self._below(top):
                found.setdefault(run.id, run)
        self.runs = found
        return found != before

    def _below(self, top: Path) -> Iterator[Run]:
        if not top.is_dir() or is_store(top) or is_fleet(top):
            yield from self._run(top, top.parent)
            return
        real = os.path.realpath(top)
        walk = Walk(lambda path: Path(path).is_relative_to(real), is_fleet)
        inside: dict[Path, list[Path]] = {}
        for path in walk.profiles(top):
            if not Path(os.path.realpath(path)).is_relative_to(self._without):
                inside.setdefault(path.parent, []).append(path)
        self.is_whole &= walk.is_whole
        self.unfollowed += walk.unfollowed
        for path in walk.apart:
            yield from self._run(path, top)
        for folder, paths in inside.items():
            if folder.name.endswith(_PARTS) or self._is_whole_profile(folder, paths):
                yield from self._run(folder, top)
                continue
            if sum(bool(_RANK.search(path.name)) for path in paths) > 1:
                yield from self._run(folder, top)
            for path in paths:
                yield from self._run(path, top)

    def _is_whole_profile(self, folder: Path, paths: list[Path]) -> bool:
        """Whether a format takes the folder as one; asked again when something comes into it."""
        if all(map(is_store, paths)):
            return False
        try:
            changed_ns = folder.stat().st_mtime_ns
        except OSError:
            return False
        if self._folders.get(folder, (None, False))[0] != changed_ns:
            self._folders[folder] = changed_ns, self._is_one(str(folder))
        return self._folders[folder][1]

    def _run(self, path: Path, top: Path) -> Iterator[Run]:
        """The run at a path; none where it went away meanwhile."""
        try:
            yield self._look(path, top)
        except OSError:
            return

    def _look(self, path: Path, top: Path) -> Run:
        """What is at a path, by its kind.

        Raises:
            OSError: It went away meanwhile.
        """
        kind, state = self._state_of(path)
        return Run(
            id=key_of("run", str(path).removesuffix(_PARTS))[:16],
            path=path,
            name=path.name.removesuffix(_PARTS),
            place="" if path.parent == top else str(path.parent.relative_to(top)),
            kind=kind,
            bytes=state.bytes,
            changed_ns=state.changed_ns,
            key=state.key,
            is_recording=state.is_recording,
        )

    def _state_of(self, path: Path) -> tuple[Kind, "_State"]:
        if path.name.endswith(_PARTS):
            return "parts", self._state_of_parts(path)
        if is_store(path):
            return "store", self._state_of_store(path)
        if is_fleet(path):
            return "fleet", _state_of_fleet(path)
        if path.is_dir():
            return "folder", _state_of_folder(path)
        about = path.stat()
        return "file", _State(about.st_size, about.st_mtime_ns, key_of("file", *_stamp(path)))

    def _state_of_parts(self, path: Path) -> "_State":
        """A recording that goes on, with a store for each process."""
        parts = find_parts(path)
        manifests = [self._manifest(part) for part in parts]
        changed_ns = max((changed for changed, *_ in manifests), default=path.stat().st_mtime_ns)
        size = sum(folder_bytes(part) for part in parts)
        return _State(size, changed_ns, key_of("parts", str(path), manifests), _is_recent(changed_ns))

    def _state_of_store(self, path: Path) -> "_State":
        changed_ns, content, is_finished = self._manifest(path)
        is_recording = not is_finished and _is_recent(changed_ns)
        return _State(folder_bytes(path), changed_ns, key_of("store", path.name, content), is_recording)

    def _manifest(self, store: Path) -> tuple[int, str, bool]:
        """When a store was written, a name for its content, and whether it is finished; its text isn't understood."""
        file = store / MANIFEST
        changed_ns = file.stat().st_mtime_ns
        known = self._manifests.get(store)
        if known is None or known[0] != changed_ns:
            with file.open("rb") as stream:
                text = stream.read(_MOST_MANIFEST_BYTES)
            known = changed_ns, key_of(text), _UNFINISHED.search(text) is None
            self._manifests[store] = known
        return known


def _existing(given: str | Path) -> Path:
    path = Path(without_prefix(given))
    try:
        there = path.exists()
    except (OSError, ValueError):
        there = False
    if not there:
        raise InputError(f"{printable(str(given))}: no such file or folder", hint="Name files, stores or folders.")
    if not path.is_file() and not path.is_dir():
        raise InputError(f"{printable(str(given))}: expected a file or a folder, found something else")
    return path.absolute()


def _is_recent(changed_ns: int) -> bool:
    return time.time_ns() - changed_ns < _STILL_S * 1e9


@dataclass(frozen=True)
class _State:
    """What is at a path now: its size, when it last changed, and a key that is the same while the content is."""

    bytes: int
    changed_ns: int
    key: str
    is_recording: bool = False


def _state_of_fleet(path: Path) -> _State:
    """Of its joined tables; a fleet that is still mined for the first time has none."""
    tables = path / TABLES
    manifest = tables / FLEET_MANIFEST
    if not manifest.is_file():
        return _State(0, path.stat().st_mtime_ns, key_of("fleet", str(path)))
    with manifest.open("rb") as stream:
        key = key_of("fleet", path.name, stream.read(_MOST_MANIFEST_BYTES))
    return _State(folder_bytes(tables), manifest.stat().st_mtime_ns, key)


def _state_of_folder(path: Path) -> _State:
    stamps = sorted(_stamp(file) for file in path.iterdir() if file.is_file())
    changed_ns = max((changed for _, _, changed, *_ in stamps), default=0)
    return _State(sum(size for _, size, *_ in stamps), changed_ns, key_of("folder", stamps))


def _stamp(path: Path) -> tuple[str, int, int, int, int]:
    """What changes when a file is written to: of ten gigabytes, the bytes themselves aren't looked at."""
    about = path.stat()
    return str(path), about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino
