"""What several files of one job say together: what they agree on, what is each one's own, and what they contradict.

Nothing is lost: a value on which files differ becomes a note that says who says what.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from msgspec.structs import asdict, replace

from inferometer.trace.combine import Clock, TracePart
from inferometer.trace.facts import Device, Facts, NamedId, RankFile

_LISTED = 8

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class Skew:
    """By how much a rank's collectives end later than the reference's: the median over `collectives` of them.

    `spread_ns` is the median distance of single ones from that. None for the reference itself.
    """

    skew_ns: int | None
    spread_ns: int | None
    collectives: int


def combine_facts(
    parts: Sequence[TracePart], clocks: Sequence[Clock], files: Iterable[RankFile], source: str, notes: Iterable[str]
) -> Facts:
    """The facts of all `parts` as those of one trace; `notes` come before those of the files."""
    about = [part.trace.facts for part in parts]
    ranks = tuple(sorted({rank for part in parts for rank in part.ranks}))
    differing: list[str] = []

    def agreed(what: str, values: Sequence[T | None]) -> T | None:
        return _agreed(what, values, parts, differing)

    world_size = agreed("world size", [each.world_size for each in about])
    bases = [clock.base_ns for clock in clocks if clock.base_ns is not None]
    return Facts(
        format=_joined(each.format for each in about),
        source=source,
        tool=_joined(each.tool for each in about) or None,
        tool_version=agreed("tool version", [each.tool_version for each in about]),
        framework=agreed("framework", [each.framework for each in about]),
        model=agreed("model", [each.model for each in about]),
        hosts=tuple(sorted({host for each in about for host in each.hosts})),
        devices=_devices(parts),
        ranks=ranks,
        world_size=None if world_size is not None and world_size < len(ranks) else world_size,
        processes=tuple(_of_rank(named, part) for part in parts for named in part.trace.facts.processes),
        threads=tuple(_of_rank(named, part) for part in parts for named in part.trace.facts.threads),
        clock_base_ns=min(bases, default=0) or None,
        recorded=_agreed_items("recorded", _in_all([each.recorded for each in about]), agreed),
        versions=_agreed_items("version", [each.versions for each in about], agreed),
        settings=_agreed_items("setting", [each.settings for each in about], agreed),
        engine_metrics=_metrics(parts),
        notes=(*notes, *differing, *_notes(parts)),
        rank_files=tuple(sorted(files, key=lambda file: file.rank)),
        other_events=dict(sum((Counter(each.other_events) for each in about), Counter[str]())),
    )


def rank_files(parts: Sequence[TracePart], clocks: Sequence[Clock], skews: Mapping[int, Skew]) -> Iterator[RankFile]:
    """One line per rank: where it comes from and how its clock was tied to the others'.

    A store of several ranks knows where they came from: its lines are moved by what it was moved.
    """
    for part, clock in zip(parts, clocks, strict=True):
        known = {file.rank: file for file in part.trace.facts.rank_files if len(part.ranks) > 1}
        for rank in part.ranks:
            file = known.get(rank) or RankFile(
                rank, part.file, part.trace.facts.format, part.numbered_by, clock_base_ns=clock.base_ns
            )
            skew = skews.get(rank) or Skew(None, None, 0)
            yield replace(
                file,
                shift_ns=file.shift_ns + clock.shift_ns,
                skew_ns=skew.skew_ns,
                skew_spread_ns=skew.spread_ns,
                collectives=skew.collectives,
            )


def listed(texts: Sequence[str]) -> str:
    """The first few of `texts`, and how many more there are."""
    more = f" and {len(texts) - _LISTED} more" if len(texts) > _LISTED else ""
    return ", ".join(texts[:_LISTED]) + more


def _joined(texts: Iterable[str | None]) -> str:
    return ", ".join(dict.fromkeys(filter(None, texts)))


def _agreed(what: str, values: Sequence[T | None], parts: Sequence[TracePart], differing: list[str]) -> T | None:
    """The one value that all files that have any name; None, and a line in `differing`, when they name several."""
    text: dict[T, str] = {}
    for value, part in zip(values, parts, strict=True):
        if value is not None:
            text.setdefault(value, part.file)
    if len(text) > 1:
        each = [f"{value} ({file})" for value, file in text.items()]
        differing.append(f"The files differ in {what}: {listed(each)}.")
        return None
    return next(iter(text), None)


def _agreed_items(
    what: str, dicts: Sequence[dict[str, T]], agreed: Callable[[str, list[T | None]], T | None]
) -> dict[str, T]:
    keys = dict.fromkeys(key for each in dicts for key in each)
    values = {key: agreed(f"{what} {key}", [each.get(key) for each in dicts]) for key in keys}
    return {key: value for key, value in values.items() if value is not None}


def _in_all(dicts: Sequence[dict[str, T]]) -> list[dict[str, T]]:
    return [{key: value for key, value in each.items() if all(key in other for other in dicts)} for each in dicts]


def _devices(parts: Sequence[TracePart]) -> tuple[Device, ...]:
    """Each device once where all files that name it mean the same; else once per rank, with its rank."""
    described: dict[str, dict[Device, list[TracePart]]] = {}
    for part in parts:
        for device in part.trace.facts.devices:
            described.setdefault(device.device, {}).setdefault(device, []).append(part)
    devices: list[Device] = []
    for versions in described.values():
        if (same := _as_one(versions, parts)) is not None:
            devices.append(same)
            continue
        devices += [
            replace(device, rank=rank)
            for device, owners in versions.items()
            for owner in owners
            for rank in ([device.rank] if device.rank is not None else owner.ranks)
        ]
    return tuple(devices)


def _as_one(versions: Mapping[Device, Sequence[TracePart]], parts: Sequence[TracePart]) -> Device | None:
    """The one device that these describe; None where they may be several.

    Files of ranks may each have a device of their own under one text. Where some aren't of a rank, they are of the same
    machine, and tools report more or less of a device, also of how much memory it has: the file that reports most
    leads.
    """
    if len(versions) == 1:
        return next(iter(versions))
    if len({device.name for device in versions if device.name}) > 1 or all(part.ranks for part in parts):
        return None
    fields: dict[str, Any] = dict.fromkeys(Device.__struct_fields__)
    fullest_first = sorted(versions, key=lambda device: -sum(value is not None for value in asdict(device).values()))
    for device in fullest_first:
        fields |= {name: value for name, value in asdict(device).items() if fields[name] is None}
    return Device(**fields)


def _of_rank(named: NamedId, part: TracePart) -> NamedId:
    return replace(named, rank=part.ranks[0]) if len(part.ranks) == 1 else named


def _metrics(parts: Sequence[TracePart]) -> dict[str, Any]:
    """Metrics as they are when only one file has any, else by file."""
    by_file = {part.file: part.trace.facts.engine_metrics for part in parts if part.trace.facts.engine_metrics}
    return next(iter(by_file.values())) if len(by_file) == 1 else dict(by_file)


def _notes(parts: Sequence[TracePart]) -> list[str]:
    """Notes of the files, once where all say the same."""
    files: dict[str, list[str]] = {}
    for part in parts:
        for note in part.trace.facts.notes:
            files.setdefault(note, []).append(part.file)
    return [note if len(who) == len(parts) else f"{listed(who)}: {note}" for note, who in files.items()]
