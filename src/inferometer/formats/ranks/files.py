"""The files of a folder of ranks, each read by its own format in its part of the memory budget.

Where threads decode files (`Format.decoders`), several files are read at the same time, each in a thread; else one
after the other, and what can begin before a file's turn has begun by then.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Event

from inferometer.errors import InputError
from inferometer.formats.native.threads import DecoderThreads
from inferometer.formats.ranks.listing import Profile
from inferometer.formats.reading import asked_of, begin, collector_paused, open_store, read_source
from inferometer.formats.source import Limits, Progress, Source
from inferometer.trace.builder import MEMORY_BUDGET_BYTES, Wanted
from inferometer.trace.trace import Trace

_IN_TURN = 4  # files are being read: one is taken over, the next ones have begun
_MOST_AT_ONCE = 4  # files; Python's part of each is a third, in which the others wait
_LOOK_S = 0.1  # between two looks at how far all are

ReadOne = Callable[[], Trace]
"""The trace of a file.

Raises:
    InputError: It can't be read.
    Unavailable: What reads it isn't installed.
"""


@dataclass(frozen=True)
class Reading:
    """How files are read: `format` and `limits` as for a single file; `tables` and `ranks`: None for all.

    `spill_to` is a folder for what doesn't fit in memory; None: where the system has such.
    """

    tables: Wanted = None
    ranks: frozenset[int] | None = None
    format: str | None = None
    limits: Limits | None = None
    spill_to: Path | None = None


def read_files(
    profiles: Sequence[Profile], tables: Wanted, how: Reading, progress: Progress | None
) -> Generator[tuple[Profile, ReadOne]]:
    """Each profile that can be read, with what gives its trace: asked for at once, before the next one."""
    left = [each for each in profiles if not each.error]
    reader = _Reader(tables, how, _Total(progress, profiles), len(profiles))
    with collector_paused():
        for fmt in {each.format.name: each.format for each in left if each.format}.values():
            own = [each for each in left if each.format is fmt]
            decoders = fmt.decoders(asked_of(fmt, tables)) if fmt.decoders and len(own) > 1 else None
            if decoders:
                left = [each for each in left if each not in own]
                with decoders:
                    yield from reader.at_once(own, decoders)
        yield from reader.in_turn(left)


class _Stopped(Exception):
    """Nobody waits for the rest."""


@dataclass
class _Reader:
    """Reads files: `count` share the memory."""

    tables: Wanted
    how: Reading
    total: "_Total"
    count: int

    def at_once(self, profiles: Sequence[Profile], threads: DecoderThreads) -> Generator[tuple[Profile, ReadOne]]:
        """Several at the same time, in threads of their own."""
        readers, stopped = ThreadPoolExecutor(min(threads.count, _MOST_AT_ONCE)), Event()
        reading = deque(readers.submit(self._read_beside, each, threads, stopped) for each in profiles)
        try:
            for profile in profiles:
                yield profile, partial(self._wait, reading[0])
                reading.popleft()
                self.total.report()
        finally:
            stopped.set()
            readers.shutdown(cancel_futures=True)
            for each in reading:  # nobody asked for these
                if not each.cancelled() and each.exception() is None:
                    each.result().close()

    def in_turn(self, profiles: Sequence[Profile]) -> Generator[tuple[Profile, ReadOne]]:
        """One after the other; reading of the one after it has begun."""
        made = (self._begun(each) for each in profiles)
        waiting = deque(islice(made, _IN_TURN - 1))
        try:
            for profile in profiles:
                waiting.extend(islice(made, 1))
                yield profile, partial(self._read, profile, waiting.popleft())
                self.total.report()
        finally:
            for source in filter(None, waiting):
                source.stop_ahead()

    def _read_beside(self, profile: Profile, threads: DecoderThreads, stopped: Event) -> Trace:
        def note(done: int, _: int | None) -> None:
            if stopped.is_set():
                raise _Stopped
            self.total.note(profile, done)

        source = Source(profile.path, limits=self.how.limits, progress=note)
        source.threads = threads
        return self._read(profile, source)

    def _wait(self, reading: "Future[Trace]") -> Trace:
        while self.total.is_shown and not wait([reading], _LOOK_S).done:
            self.total.report()
        return reading.result()

    def _begun(self, profile: Profile) -> Source | None:
        """None of a store."""
        if profile.format is None:
            return None
        source = Source(profile.path, limits=self.how.limits, progress=self.total.of(profile))
        source.at_once = _IN_TURN
        with suppress(InputError):  # reading it says what is wrong
            begin(source, profile.format, self.tables)
        return source

    def _read(self, profile: Profile, source: Source | None) -> Trace:
        try:
            if profile.format is None or source is None:
                return open_store(profile.path, self.tables)
            share = MEMORY_BUDGET_BYTES // self.count
            return read_source(source, profile.format, self.tables, memory_bytes=share, spill_to=self.how.spill_to)
        finally:
            self.total.end(profile)


class _Total:
    """Progress over several files: bytes done never go back, and stand at a file's end when it is done."""

    def __init__(self, progress: Progress | None, profiles: Iterable[Profile]) -> None:
        self._progress = progress
        self._sizes = {each.path: each.path.stat().st_size if each.path.is_file() else 0 for each in profiles}
        self._done = dict.fromkeys(self._sizes, 0)
        for each in profiles:
            if each.error:
                self.end(each)

    @property
    def is_shown(self) -> bool:
        """Whether anyone is told."""
        return self._progress is not None

    def of(self, profile: Profile) -> Progress | None:
        """The callback for one file that tells at once; None where progress isn't shown."""
        if self._progress is None:
            return None

        def tell(done: int, _: int | None) -> None:
            self.note(profile, done)
            self.report()

        return tell

    def note(self, profile: Profile, done: int) -> None:
        """So many bytes of this file are done."""
        path = profile.path
        self._done[path] = max(self._done[path], min(done, self._sizes[path]))

    def end(self, profile: Profile) -> None:
        """This file is done."""
        self.note(profile, self._sizes[profile.path])

    def report(self) -> None:
        """Tell it."""
        if self._progress:
            self._progress(sum(self._done.values()), sum(self._sizes.values()))
