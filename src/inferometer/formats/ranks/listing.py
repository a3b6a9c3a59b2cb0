"""Which profiles lie in a folder, one level deep; what else lies there is passed over, and named.

Files of one name and different endings (`rank0.json`, `rank0.json.gz`; a report and its export) are one recording: a
store is taken before a profile, an export before its report, plain before compressed. Printed tables of sums are
passed over: they are reports on recordings.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from inferometer.errors import FormatError, InputError, Unavailable, printable
from inferometer.formats.base import Format, find_format, known_formats, made_beside
from inferometer.formats.ranks.numbering import natural
from inferometer.formats.reading import is_store, open_store
from inferometer.formats.source import Limits, Source
from inferometer.trace.combined_facts import listed

_STORE = ".ifm"
_FLEET = "fleet.json"  # in what `inferometer mine` makes
_PACKED = ".gz"
_EVENTS = frozenset({"launches", "calls", "ops", "frames", "spans", "host_events", "function_times"})
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Profile:
    """One file or store of the folder. `stem` is its name without ending; `format` is None for a store.

    `named` and `world_size`: what its first bytes say of its rank. `error`: why it can't be read.
    """

    path: Path
    stem: str
    format: Format | None = None
    named: tuple[int, ...] = ()
    world_size: int | None = None
    error: InputError | Unavailable | None = None

    @property
    def name(self) -> str:
        """For messages."""
        return printable(self.path.name)


@dataclass
class Listing:
    """`profiles` in the order of their names; `twins`: files left out, each with the one that is taken for it."""

    profiles: list[Profile] = field(default_factory=list)
    twins: dict[Path, Profile] = field(default_factory=dict)
    passed_over: list[str] = field(default_factory=list)


def list_profiles(folder: Path, name: str, format: str | None, limits: Limits | None) -> Listing:
    """The profiles in `folder`, looked at but not read.

    Args:
        folder: The folder.
        name: What messages call it.
        format: Take only files of this format, recognised by their endings.
        limits: As for a single file.

    Raises:
        FormatError: There is none.
    """
    formats = known_formats()
    listing = Listing()
    failed = []
    entries = _entries(folder, name)
    for path in entries:
        try:
            profile = _look(path, formats, format, limits)
        except (InputError, Unavailable) as error:
            failed.append(Profile(path, _stem(path.name, formats), error=error))
            continue
        if profile and _has_events(profile):
            listing.profiles.append(profile)
    like_profiles = {_pattern(profile.path) for profile in listing.profiles}
    listing.profiles += [profile for profile in failed if _pattern(profile.path) in like_profiles]
    if all(profile.error for profile in listing.profiles):
        _refuse(name, entries, failed)
    listing.profiles.sort(key=lambda profile: natural(profile.path.name))
    listing.twins = _take_made(listing.profiles) | _take_twins(listing.profiles)
    mine = {profile.path for profile in listing.profiles} | listing.twins.keys()
    listing.passed_over = [printable(path.name) for path in entries if path not in mine]
    return listing


def _entries(folder: Path, name: str) -> Sequence[Path]:
    try:
        return sorted(folder.iterdir(), key=lambda path: natural(path.name))
    except OSError as error:
        raise InputError(f"{name}: {error.strerror}", hint="Check the path and its permissions.") from error


def _look(path: Path, formats: Mapping[str, Format], wanted: str | None, limits: Limits | None) -> Profile | None:
    """The profile at `path`, None for what is none. Raises what opening it raises where it can't be known."""
    if path.name.startswith("."):
        return None
    stem = _stem(path.name, formats)
    if is_store(path):
        about = open_store(path, ()).facts
        return Profile(path, stem, None, about.ranks, about.world_size)
    source = Source(path, limits=limits)
    if wanted is not None:
        fmt = find_format(source, wanted)
        if not path.name.endswith(fmt.suffixes):
            return None
    if not path.is_dir() and not path.is_file() and path.exists():
        return None  # a pipe or device: looking at it could wait for ever
    fmt = find_format(source, wanted)
    rank, world_size = fmt.tell_rank(source.head) if fmt.tell_rank and not source.is_folder else (None, None)
    return Profile(path, stem, fmt, () if rank is None else (rank,), world_size)


def _stem(name: str, formats: Mapping[str, Format]) -> str:
    """`name` without the ending that shows its format."""
    endings = sorted((ending for fmt in formats.values() for ending in fmt.suffixes), key=len, reverse=True)
    bare = name.removesuffix(_PACKED)
    return next((bare.removesuffix(ending) for ending in (_STORE, *endings) if bare.endswith(ending)), bare)


def _pattern(path: Path) -> str:
    """What names of one family share: everything but numbers and compression."""
    return _NUMBER.sub("0", path.name.removesuffix(_PACKED))


def _has_events(profile: Profile) -> bool:
    return profile.format is None or not _EVENTS.isdisjoint(profile.format.tables)


def _take_made(profiles: list[Profile]) -> dict[Path, Profile]:
    """Take out of `profiles` what a profiler made of another of them, each with that one."""
    by_name = {profile.path.name: profile for profile in profiles}
    made = {by_name[name].path: by_name[maker] for name, maker in made_beside(by_name).items()}
    profiles[:] = [profile for profile in profiles if profile.path not in made]
    return made


def _take_twins(profiles: list[Profile]) -> dict[Path, Profile]:
    """Take out of `profiles` all but the best of each recording; those taken out, each with the best."""
    best: dict[str, Profile] = {}
    for profile in profiles:
        best[profile.stem] = min(best.get(profile.stem, profile), profile, key=_worth)
    twins = {profile.path: best[profile.stem] for profile in profiles if best[profile.stem] is not profile}
    profiles[:] = [profile for profile in profiles if profile.path not in twins]
    return twins


def _worth(profile: Profile) -> tuple[bool, bool, int, str]:
    """Order of preference between files of one recording, the best first."""
    endings = profile.format.suffixes if profile.format else ()
    name = profile.path.name.removesuffix(_PACKED)
    ending = next((i for i, each in enumerate(endings) if name.endswith(each)), len(endings))
    return profile.error is not None, profile.format is not None, ending, profile.path.name


def _refuse(name: str, entries: Sequence[Path], failed: Sequence[Profile]) -> NoReturn:
    if any(path.name == _FLEET for path in entries):
        raise FormatError(
            f"{name}: expected one trace, found a fleet of many", hint=f"Ask it: inferometer fleet {name}"
        )
    found = f"only {listed([printable(path.name) for path in entries])}" if entries else "nothing"
    tried = [profile.error.message for profile in failed if profile.error and profile.path.name != profile.stem]
    raise FormatError(
        f"{name}: expected a store (NAME.ifm), or a folder that a profiler made or that holds one profile per rank, "
        f"found {found}",
        hint="\n".join(
            [*(tried[:3] if len(tried) == len(entries) else []), "Name one file, or the folder of the files."]
        ),
    )
