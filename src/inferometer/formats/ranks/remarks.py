"""What a reader of a trace of several ranks must know: what was left out, who was numbered how, whose clock is odd."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from inferometer.errors import InputError, Unavailable, printable
from inferometer.formats.ranks.listing import Listing
from inferometer.trace.combine import Clock, TracePart
from inferometer.trace.combined_facts import Skew, listed
from inferometer.trace.losses import Losses
from inferometer.units import format_duration

_STRANGE_NS = 3600 * 10**9  # no profiler records that long; clocks of one job's hosts are never so far apart


def count_losses(
    losses: Losses,
    parts: Sequence[TracePart],
    clocks: Sequence[Clock],
    listing: Listing,
    errors: Mapping[Path, InputError | Unavailable],
    launches: pl.LazyFrame | None,
    where: str,
) -> None:
    """Count what is wrong with the folder.

    Raises:
        InputError: A file that names no rank has device work an hour or more apart from that of files that name theirs:
            it is of another recording.
    """
    for path, error in errors.items():
        message = error.message.removeprefix(f"{printable(str(path))}: ")
        losses.count("unreadable_rank_file", category=printable(path.name), example=message)
    for part in parts:
        if part.numbered_by == "position":
            losses.count("rank_by_position", example=f"{part.file}: called rank {part.ranks[0]}")
    unknown = without_clock(parts, clocks)
    for part in unknown:
        losses.count("no_common_clock", len(part.ranks), example=part.file)
    if not unknown and launches is not None:
        apart_ns = _count_apart(losses, launches)
        _refuse_strangers(parts, apart_ns, where)
    losses.count("same_recording", len(listing.twins))


def find_notes(
    parts: Sequence[TracePart], clocks: Sequence[Clock], skews: Mapping[int, Skew], listing: Listing
) -> Iterator[str]:
    """The same in sentences, with the names."""
    if by_position := [f"{part.file} is {part.ranks[0]}" for part in parts if part.numbered_by == "position"]:
        yield f"Ranks by the order of names, since the files name none: {listed(by_position)}."
    if by_name := [f"{part.file} is {part.ranks[0]}" for part in parts if part.numbered_by == "name"]:
        yield f"Ranks by the files' names: {listed(by_name)}."
    for part in parts:
        named = part.trace.facts.ranks
        if named and set(named) != set(part.ranks):
            itself = f"{part.file} calls itself rank {', '.join(map(str, named))}, as another file does"
            yield f"{itself}: taken for rank {part.ranks[0]}."
    if listing.twins:
        twins = [f"{printable(path.name)} (for {best.name})" for path, best in listing.twins.items()]
        yield f"Left out as second files of one recording: {listed(twins)}."
    if listing.passed_over:
        yield f"Passed over, since they are no profiles: {listed(listing.passed_over)}."
    if unknown := [part.file for part in without_clock(parts, clocks)]:
        yield f"No clock to compare: the times of {listed(unknown)} stand as they are in the file."
    if shifts := {part.ranks[0]: clock.shift_ns for part, clock in zip(parts, clocks, strict=True) if clock.shift_ns}:
        shifted = [f"rank {rank} by {format_duration(shift_ns)}" for rank, shift_ns in shifts.items()]
        yield f"Times were moved to the earliest clock: {listed(shifted)}."
    yield from _skew_note(skews)


def without_clock(parts: Sequence[TracePart], clocks: Sequence[Clock]) -> list[TracePart]:
    """Parts whose times can't be compared with the others'."""
    if len(parts) < 2:
        return []
    return [part for part, clock in zip(parts, clocks, strict=True) if clock.base_ns is None and clock.has_times]


def _skew_note(skews: Mapping[int, Skew]) -> Iterator[str]:
    """The largest skew that stands out from its spread."""
    clear = {rank: skew for rank, skew in skews.items() if abs(skew.skew_ns or 0) > (skew.spread_ns or 0)}
    if clear:
        rank, skew = max(clear.items(), key=lambda each: abs(each[1].skew_ns or 0))
        skew_ns = skew.skew_ns or 0
        yield (
            f"By the ends of {skew.collectives:,} collectives, the clock of rank {rank} seems to be "
            f"{format_duration(abs(skew_ns))} {'ahead of' if skew_ns > 0 else 'behind'} that of the lowest rank, "
            f"give or take {format_duration(skew.spread_ns)}: an estimate, not applied."
        )


def _count_apart(losses: Losses, launches: pl.LazyFrame) -> int:
    """Count ranks that begin when another is over: hardly one recording. The longest time between, ns."""
    columns = launches.collect_schema().names()
    if not {"rank", "start_ns", "dur_ns"} <= set(columns):
        return 0
    windows = (
        launches.group_by("rank")
        .agg(pl.col("start_ns").min(), (pl.col("start_ns") + pl.col("dur_ns")).max().alias("end_ns"))
        .sort("rank")
        .collect()
    )
    first_end_ns = min(windows["end_ns"].to_list(), default=0)
    for rank, start_ns, _ in windows.iter_rows():
        if start_ns > first_end_ns:
            losses.count("ranks_apart", example=f"rank {rank}: {format_duration(start_ns - first_end_ns)} later")
    return max(0, max(windows["start_ns"].to_list(), default=0) - first_end_ns)


def _refuse_strangers(parts: Sequence[TracePart], apart_ns: int, where: str) -> None:
    strangers = [part.file for part in parts if part.numbered_by == "position" and part.trace.facts.devices]
    is_job = any(part.numbered_by == "file" for part in parts)
    if strangers and is_job and apart_ns >= _STRANGE_NS:
        raise InputError(
            f"{where}: expected the ranks of one recording, found {listed(strangers)} without a rank next to files "
            f"that name theirs, {format_duration(apart_ns)} apart",
            hint="Put the files of each recording into a folder of their own (links will do).",
        )
