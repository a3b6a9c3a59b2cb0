"""The trace files that a profiler writes while it stops: which are new, and when they are whole.

A folder may hold older recordings, so what lies there is noted before the profiler starts. Engines write a file in one
go, but slowly, and the files of several ranks end at different times: a file is whole when its size stands still and
it ends as its kind does (gzip: the last member is complete; JSON: a bracket). Looked for one folder deep, as links are
never followed.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from isal import igzip, isal_zlib

from inferometer.errors import InputError

_ENDINGS = (".json", ".json.gz")
_BLOCK_BYTES = 1 << 20
_MOST_ENTRIES = 20_000
_FRONTENDS = ("async_llm", "asyncllm")  # vLLM's API server profiles itself, too: no rank
_MERGED = "merged-"  # SGLang's second copy of all ranks in one file
_REPORT_S = 10.0

Stamp = tuple[int, int]
"""Size in bytes, and when it was last written, ns."""


@dataclass(frozen=True)
class Pace:
    """How long to wait, s. Tests wait less.

    Attributes:
        poll_s: Between two looks at the folder.
        settle_s: So long nothing must change, where the number of files to come isn't known.
        none_s: So long to wait for the first file, once the profiler has stopped.
        stall_s: So long a file that isn't whole may stand still.
        files_s: At most so long for all files.
        clock: In the place of `time.monotonic`.
        sleep: In the place of `time.sleep`.
    """

    poll_s: float = 0.5
    settle_s: float = 5.0
    none_s: float = 30.0
    stall_s: float = 120.0
    files_s: float = 1800.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass
class Found:
    """New files: `ranks`, a trace each; `frontends`: of an API server; `torn`: of these, those that aren't whole."""

    ranks: list[Path] = field(default_factory=list)
    frontends: list[Path] = field(default_factory=list)
    torn: list[Path] = field(default_factory=list)

    @property
    def all(self) -> list[Path]:
        """Every file."""
        return self.ranks + self.frontends


class NewFiles:
    """Watches `folder` from now on; `expected`: how many ranks will write there, where that is known."""

    def __init__(self, folder: Path, expected: int | None, pace: Pace) -> None:
        self.folder, self._expected, self._pace = folder, expected, pace
        self._before = dict(_stamps(folder))
        self._stamps: dict[Path, Stamp] = {}
        self._whole: dict[Path, Stamp] = {}
        self._changed = pace.clock()

    def look(self) -> None:
        """Note what is there now; a file that stood still since the last look is examined once."""
        now = {path: stamp for path, stamp in _stamps(self.folder) if self._before.get(path) != stamp}
        for path, stamp in now.items():
            if stamp == self._stamps.get(path) and self._whole.get(path) != stamp and is_whole(path):
                self._whole[path] = stamp
        if now != self._stamps:
            self._changed = self._pace.clock()
        self._stamps = now

    @property
    def are_complete(self) -> bool:
        """Whether all expected files are there and whole; where none are expected, nothing changed for a while."""
        if not self._stamps or any(self._whole.get(path) != stamp for path, stamp in self._stamps.items()):
            return False
        sure = all(path.suffix == ".gz" for path in self._stamps)  # the middle of a plain file may look like its end
        known = sure and self._expected is not None and len(self.found().ranks) >= self._expected
        return known or self._pace.clock() - self._changed >= self._pace.settle_s

    @property
    def have_all_ranks(self) -> bool:
        """Whether as many ranks as expected have whole files; False where no number is expected."""
        return self._expected is not None and self.are_complete and len(self.found().ranks) >= self._expected

    @property
    def are_stalled(self) -> bool:
        """Whether files have begun to come, and nothing changed for so long that no more will."""
        return bool(self._stamps) and self._pace.clock() - self._changed >= self._pace.stall_s

    def wait(
        self, is_over: Callable[[], bool], is_gone: Callable[[], bool], on_progress: Callable[[str], None]
    ) -> Found:
        """Wait until the files are complete and the stop `is_over`; less long for a server that `is_gone`."""
        pace = self._pace
        began = last_report = pace.clock()
        over_since: float | None = None
        while (now := pace.clock()) - began < pace.files_s:
            self.look()
            over_since = now if over_since is None and is_over() else over_since
            if over_since is not None and (self.are_complete or self._no_more(now - over_since, is_gone())):
                break
            if now - last_report >= _REPORT_S:
                last_report = now
                on_progress(f"{self._progress()}, {now - began:.0f} s so far")
            pace.sleep(pace.poll_s)
        return self.found()

    def found(self) -> Found:
        """The new files, in the order of their names."""
        found = Found()
        for path, stamp in sorted(self._stamps.items()):
            name = path.name.lower()
            if not name.startswith(_MERGED):
                (found.frontends if any(word in name for word in _FRONTENDS) else found.ranks).append(path)
                if self._whole.get(path) != stamp:
                    found.torn.append(path)
        return found

    def _no_more(self, waited_s: float, is_gone: bool) -> bool:
        """Whether it is no use to wait longer, so long after the profiler's end."""
        pace = self._pace
        quiet_s = min(waited_s, pace.clock() - self._changed)
        return quiet_s >= (pace.settle_s if is_gone else pace.stall_s if self._stamps else pace.none_s)

    def _progress(self) -> str:
        """What is waited for, and how much is there."""
        size = sum(size for size, _ in self._stamps.values())
        there = f"{len(self._whole)} of {self._expected or len(self._stamps)} files whole, {size / 1e6:.0f} MB"
        waits_for = "the server to say that it has stopped" if self.are_complete else "traces to be written"
        return f"waiting for {waits_for}: {there}"


def is_whole(path: Path) -> bool:
    """Whether a file ends as it should. Reads a packed one to its end, some 300 MB of packed data a second."""
    try:
        if path.suffix != ".gz":
            return _tail(path).rstrip().endswith((b"}", b"]"))
        last = b""
        with path.open("rb") as packed, igzip.IGzipFile(fileobj=packed) as stream:  # type: ignore[no-untyped-call]
            while block := stream.read(_BLOCK_BYTES):
                last = block[-64:]
        return last.rstrip().endswith((b"}", b"]"))
    except (OSError, EOFError):
        return False
    except isal_zlib.error:  # type: ignore[misc]
        return False


def _tail(path: Path) -> bytes:
    with path.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - 64))
        return stream.read()


def _stamps(folder: Path) -> Iterator[tuple[Path, Stamp]]:
    """Traces in `folder` and in its folders; what vanishes meanwhile is passed over."""
    seen = 0
    folders = [folder]
    while folders:
        place = folders.pop()
        try:
            entries = list(os.scandir(place))
        except OSError as error:
            if place == folder and not isinstance(error, FileNotFoundError):
                raise InputError(
                    f"{folder}: {error.strerror}", hint="Name a folder of traces with --traces."
                ) from error
            continue
        seen += len(entries)
        if seen > _MOST_ENTRIES:
            raise InputError(
                f"{folder}: holds more than {_MOST_ENTRIES:,} files", hint="Let the server write into an empty folder."
            )
        for entry in entries:
            try:
                if place == folder and entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
                elif entry.name.endswith(_ENDINGS) and entry.is_file(follow_symlinks=False):
                    about = entry.stat(follow_symlinks=False)
                    yield Path(entry.path), (about.st_size, about.st_mtime_ns)
            except OSError:
                continue
