"""A folder of ranks as one trace: every file is read by its own format, and their traces are combined.

A file that can't be read is a loss of severity error; the others are read all the same. Files are read one after the
other, each in its part of the memory budget; what can begin before a file's turn has begun by then.
"""

import shutil
from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from inferometer.errors import InputError, Unavailable, UnknownName, printable
from inferometer.formats.ranks.listing import Listing, Profile, list_profiles
from inferometer.formats.ranks.numbering import Candidate, Numbered, number_ranks
from inferometer.formats.ranks.remarks import count_losses, find_notes
from inferometer.formats.ranks.skew import find_skews
from inferometer.formats.reading import begin, known_tables, open_store, read_source
from inferometer.formats.source import Limits, Progress, Source
from inferometer.privacy.metadata import join_names
from inferometer.trace.builder import MEMORY_BUDGET_BYTES, Wanted
from inferometer.trace.combine import OpenTraces, TracePart, align_clocks, combine_losses, combine_tables, scope_of
from inferometer.trace.combined_facts import combine_facts, rank_files
from inferometer.trace.restrict import restrict_ranks
from inferometer.trace.store_writer import StoreFolder, write_manifest, write_tables
from inferometer.trace.trace import Trace

_AT_ONCE = 2  # files are being read: one is taken over, the next has begun


@dataclass(frozen=True)
class Reading:
    """How files are read: `format` and `limits` as for a single file; `tables` and `ranks`: None for all.

    `work` is a folder for what is read, when the trace is about to be stored: memory holds little of it then.
    """

    tables: Wanted = None
    ranks: frozenset[int] | None = None
    format: str | None = None
    limits: Limits | None = None
    work: Path | None = None


def open_ranks(folder: Path, how: Reading, progress: Progress | None = None) -> Trace:
    """The files in `folder`, one profile per rank, as one trace. Where `how` names ranks, no other file is read.

    Raises:
        FormatError: There is no profile in the folder.
        InputError: Two files claim one rank, or none of the files can be read.
        UnknownName: There is no such rank.
    """
    name, tables = printable(str(folder)), _with_rank(known_tables(how.tables))
    listing = list_profiles(folder, name, how.format, how.limits)
    numbered = _number(listing.profiles, {}, name)
    chosen = _choose(listing.profiles, numbered, how.ranks)
    total = _Total(progress, chosen)
    traces: dict[Path, Trace] = {}
    errors: dict[Path, InputError | Unavailable] = {profile.path: profile.error for profile in chosen if profile.error}
    with ExitStack() as opened:
        sources = opened.enter_context(closing(_sources(chosen, tables, how.limits, total)))
        for i, (profile, source) in enumerate(sources):
            try:
                if not profile.error:
                    traces[profile.path] = _read(profile, source, tables, how, i, len(chosen))
                    opened.callback(traces[profile.path].close)
            except (InputError, Unavailable) as error:
                errors[profile.path] = error
            total.end(profile)
        if not traces:
            raise next(iter(errors.values()))
        final = _number(listing.profiles, traces, name)
        _check_choice(listing.profiles, numbered, final, traces, how.ranks)
        trace = _combine(_parts(listing.profiles, final, traces), name, listing, errors)
        opened.pop_all()
    return trace if how.ranks is None or set(trace.facts.ranks) <= how.ranks else restrict_ranks(trace, how.ranks)


def import_ranks(folder: Path, store: Path, how: Reading, progress: Progress | None, *, force: bool) -> None:
    """Write the files in `folder` as one store. What is read waits in the store's own folder, not in memory."""
    with StoreFolder(store, force=force) as target:
        work = target / "read"
        with open_ranks(folder, replace(how, work=work), progress) as trace:
            parts = write_tables(trace.tables, target)
            shutil.rmtree(work)
            write_manifest(target, trace.facts, trace.losses, parts)


def _with_rank(tables: Wanted) -> Wanted:
    """The columns asked for, and the one that tells ranks apart."""
    return {table: {*columns, "rank"} for table, columns in tables.items()} if isinstance(tables, Mapping) else tables


def _number(profiles: Sequence[Profile], traces: Mapping[Path, Trace], name: str) -> list[Numbered]:
    """The ranks of the profiles by what is known: of those that were read, by their facts."""
    candidates = []
    for profile in profiles:
        about = traces[profile.path].facts if profile.path in traces else None
        named, world_size = (
            (about.ranks, about.world_size) if about and about.ranks else (profile.named, profile.world_size)
        )
        candidates.append(Candidate(profile.stem, named, is_alone=world_size == 1, file=profile.name))
    return number_ranks(candidates, name)


def _choose(
    profiles: Sequence[Profile], numbered: Sequence[Numbered], ranks: frozenset[int] | None
) -> Sequence[Profile]:
    """The files of `ranks`."""
    if ranks is None:
        return profiles
    known = {rank for each in numbered for rank in each.ranks}
    for unknown in sorted(ranks - known):
        raise UnknownName("rank", str(unknown), map(str, sorted(known)))
    return [profile for profile, each in zip(profiles, numbered, strict=True) if not ranks.isdisjoint(each.ranks)]


def _sources(
    profiles: Sequence[Profile], tables: Wanted, limits: Limits | None, total: "_Total"
) -> Generator[tuple[Profile, Source | None]]:
    """Each profile with its file, None of a store and of what can't be read; reading of the one after it has begun."""
    made = (_begun(each, tables, limits, total.of(each)) for each in profiles)
    waiting = deque(islice(made, _AT_ONCE - 1))
    try:
        for profile in profiles:
            waiting.extend(islice(made, 1))
            yield profile, waiting.popleft()
    finally:
        for source in filter(None, waiting):
            source.stop_ahead()


def _begun(profile: Profile, tables: Wanted, limits: Limits | None, progress: Progress | None) -> Source | None:
    if profile.format is None or profile.error:
        return None
    source = Source(profile.path, limits=limits, progress=progress)
    source.at_once = _AT_ONCE
    with suppress(InputError):  # reading it says what is wrong
        begin(source, profile.format, tables)
    return source


def _read(profile: Profile, source: Source | None, tables: Wanted, how: Reading, position: int, files: int) -> Trace:
    if profile.format is None or source is None:
        return open_store(profile.path, tables)
    folder = None
    if how.work:
        folder = how.work / str(position)
        folder.mkdir(parents=True)
    return read_source(source, profile.format, tables, memory_bytes=MEMORY_BUDGET_BYTES // files, folder=folder)


def _check_choice(
    profiles: Sequence[Profile],
    before: Sequence[Numbered],
    after: Sequence[Numbered],
    traces: Mapping[Path, Trace],
    ranks: frozenset[int] | None,
) -> None:
    """A file that was chosen for its name may say otherwise after its events."""
    for profile, first, last in zip(profiles, before, after, strict=True):
        if ranks is not None and profile.path in traces and first.ranks != last.ranks:
            raise InputError(
                f"{printable(str(profile.path))}: by its {first.by} it is rank {first.ranks[0]}, "
                f"but it says that it is rank {', '.join(map(str, last.ranks))}",
                hint="Open the folder without naming a rank.",
            )


def _parts(profiles: Sequence[Profile], numbered: Sequence[Numbered], traces: Mapping[Path, Trace]) -> list[TracePart]:
    """What was read, in the order of ranks."""
    parts = [
        TracePart(traces[profile.path], profile.name, each.ranks, each.by)
        for profile, each in zip(profiles, numbered, strict=True)
        if profile.path in traces
    ]
    return sorted(parts, key=lambda part: part.ranks)


def _combine(
    parts: Sequence[TracePart], name: str, listing: Listing, errors: Mapping[Path, InputError | Unavailable]
) -> Trace:
    clocks = align_clocks(parts)
    frames = combine_tables(parts, clocks)
    skews = find_skews(frames.get("launches"))
    losses = combine_losses(parts)
    count_losses(losses, parts, clocks, listing, errors, frames.get("launches"), name)
    notes = find_notes(parts, clocks, skews, listing)
    facts = combine_facts(parts, clocks, rank_files(parts, clocks, skews), name, notes)
    traces = [part.trace for part in parts]
    names = join_names(trace.names for trace in traces)
    return Trace(facts, frames, losses, scope=scope_of(parts), scratch=OpenTraces(*traces), names=names)


class _Total:
    """Progress over several files: bytes done never go back, and stand at a file's end when it is done."""

    def __init__(self, progress: Progress | None, profiles: Iterable[Profile]) -> None:
        self._progress = progress
        self._sizes = {each.path: each.path.stat().st_size if each.path.is_file() else 0 for each in profiles}
        self._done = self._before = 0

    def of(self, profile: Profile) -> Progress | None:
        """The callback for one file; None where progress isn't shown."""
        return None if self._progress is None else lambda done, _: self._report(min(done, self._sizes[profile.path]))

    def end(self, profile: Profile) -> None:
        """This file is done."""
        self._report(self._sizes[profile.path])
        self._before += self._sizes[profile.path]

    def _report(self, done: int) -> None:
        self._done = max(self._done, self._before + done)
        if self._progress:
            self._progress(self._done, sum(self._sizes.values()))
