"""A folder of ranks as one trace: every file is read by its own format, and their traces are combined.

A file that can't be read is a loss; the others are read all the same (`files.py`).
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

from inferometer.errors import InputError, Unavailable, UnknownName, printable
from inferometer.formats.ranks.files import Reading, read_files
from inferometer.formats.ranks.listing import Listing, Profile, list_profiles
from inferometer.formats.ranks.numbering import Candidate, Numbered, number_ranks
from inferometer.formats.ranks.remarks import count_losses, find_notes
from inferometer.formats.ranks.skew import find_skews
from inferometer.formats.reading import known_tables
from inferometer.formats.source import Progress
from inferometer.privacy.metadata import join_names
from inferometer.trace.builder import Wanted
from inferometer.trace.combine import OpenTraces, TracePart, align_clocks, combine_losses, combine_tables, scope_of
from inferometer.trace.combined_facts import combine_facts, rank_files
from inferometer.trace.restrict import restrict_ranks
from inferometer.trace.store_writer import StoreFolder, write_manifest, write_tables
from inferometer.trace.trace import Trace


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
    traces: dict[Path, Trace] = {}
    errors: dict[Path, InputError | Unavailable] = {profile.path: profile.error for profile in chosen if profile.error}
    with ExitStack() as opened:
        for profile, read in opened.enter_context(closing(read_files(chosen, tables, how, progress))):
            try:
                traces[profile.path] = read()
                opened.callback(traces[profile.path].close)
            except (InputError, Unavailable) as error:
                errors[profile.path] = error
        if not traces:
            raise next(iter(errors.values()))
        final = _number(listing.profiles, traces, name)
        _check_choice(listing.profiles, numbered, final, traces, how.ranks)
        trace = _combine(_parts(listing.profiles, final, traces), name, listing, errors)
        opened.pop_all()
    return trace if how.ranks is None or set(trace.facts.ranks) <= how.ranks else restrict_ranks(trace, how.ranks)


def import_ranks(folder: Path, store: Path, how: Reading, progress: Progress | None, *, force: bool) -> None:
    """Write the files in `folder` as one store. What memory doesn't hold meanwhile is in the store's own folder."""
    with StoreFolder(store, force=force) as target:
        with open_ranks(folder, replace(how, spill_to=target), progress) as trace:
            parts = write_tables(trace.tables, target)
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
