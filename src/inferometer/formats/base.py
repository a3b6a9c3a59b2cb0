"""What a format is, and how the right one is found: by content, unless the user names one."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from inferometer.errors import FormatError, UnknownName

if TYPE_CHECKING:
    from inferometer.formats.native.threads import DecoderThreads
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder
    from inferometer.trace.facts import Facts

_BLANK = b"\xef\xbb\xbf \t\r\n\0"

Asked = Mapping[str, Collection[str] | None] | None
"""Tables with the columns of each, None for all; None: all tables."""

Start = Callable[["Source", Asked], None]
Decoders = Callable[[Asked], "DecoderThreads | None"]
Read = Callable[["Source", "TraceBuilder", frozenset[str]], "Facts"]


class Format(msgspec.Struct, frozen=True):
    """One profile format.

    `sniff` gets the first 64 KiB, unpacked, and says whether they look like this format. `sniff_path` is asked about a
    folder, and about a file whose first bytes no format knows, or several. `read` fills the builder with
    the tables asked for and returns the facts. `start` may begin work in another process before polars is imported
    (`Source.ahead`); it imports nothing heavy. `decoders` gives threads for what is asked of files that are read at the
    same time, None where it pays to read one after the other. `tell_rank` gets what `sniff` gets and tells the rank and
    the world size that the file names there, so that a folder of ranks need not be read to find one. `aliases` are
    further names for `--format`. `limits` says honestly what is not read, `recorded_by` how such a file is made.

    `find_inside` is asked about a folder, and says what in it is to be opened: the file or the folder that the profiler
    made there, None for nothing. `beside` are endings of files that the profiler makes out of its own and writes next
    to them: second files of one recording. `tell_reader` says what reads such files here, where that isn't Python alone
    everywhere.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    sniff: Callable[[bytes], bool]
    read: Read
    tables: frozenset[str]
    limits: str = ""
    recorded_by: str = ""
    start: Start | None = None
    decoders: Decoders | None = None
    aliases: tuple[str, ...] = ()
    sniff_path: Callable[[Path], bool] | None = None
    tell_rank: Callable[[bytes], tuple[int | None, int | None]] | None = None
    find_inside: Callable[[Path], Path | None] | None = None
    beside: tuple[str, ...] = ()
    tell_reader: Callable[[], str] | None = None


def known_formats() -> dict[str, Format]:
    """All formats by name: this package's and those that other packages add."""
    from inferometer.registry import collect

    return collect("inferometer.formats", "FORMAT")


def find_format(source: "Source", name: str | None = None) -> Format:
    """The format called `name`, else the one whose content `source` has.

    Raises:
        UnknownName: No format has that name; lists the known ones.
        FormatError: The content is of no known format, or there is none.
    """
    formats = known_formats()
    if name is not None:
        for fmt in formats.values():
            if name in (fmt.name, *fmt.aliases):
                return fmt
        raise UnknownName("format", name, sorted(formats))
    if source.is_folder:
        return _format_of_folder(source, formats)
    try:
        return _format_of_content(source, formats)
    except FormatError:
        source.drop()
        raise


def _format_of_content(source: "Source", formats: Mapping[str, Format]) -> Format:
    head = source.head
    if not head.strip(_BLANK):
        blank = f"its first {len(head):,} bytes are zeros or blanks" if head else "the file is empty"
        raise FormatError(f"{source.name}: {source.damage or blank}", hint="Record or export it again.")
    if claims := [fmt for fmt in formats.values() if fmt.sniff(head)]:
        return next((fmt for fmt in claims if len(claims) > 1 and _takes(fmt, source)), claims[0])
    for fmt in formats.values():
        if _takes(fmt, source):
            return fmt
    raise FormatError(
        f"{source.name}: expected one of the known formats ({', '.join(sorted(formats))}), "
        f"found something that begins with {head[:40]!r}",
        hint="Name the format with --format, or see `inferometer formats`.",
    )


def made_beside(names: Collection[str]) -> dict[str, str]:
    """Which of the files of a folder a profiler made out of another of them (`Format.beside`), each with that one."""
    makers = {
        f"{name.removesuffix(suffix)}{ending}": name
        for fmt in known_formats().values()
        for ending in fmt.beside
        for suffix in fmt.suffixes
        for name in names
        if name.endswith(suffix)
    }
    return {name: makers[name] for name in names if name in makers}


def is_one_profile(source: "Source", name: str | None = None) -> bool:
    """Whether the format called `name`, or any, takes the folder `source` as one profile."""
    formats = known_formats().values() if name is None else [find_format(source, name)]
    return any(_takes(fmt, source) for fmt in formats)


def _takes(fmt: Format, source: "Source") -> bool:
    """Whether a format knows the file or folder by its path."""
    return bool(source.path and fmt.sniff_path and fmt.sniff_path(source.path))


def find_inside(path: Path) -> Path:
    """What to open where the user named the folder `path`: what a profiler put into it, or else the folder itself."""
    found = (fmt.find_inside(path) for fmt in known_formats().values() if fmt.find_inside)
    return next((each for each in found if each), path)


def _format_of_folder(source: "Source", formats: Mapping[str, Format]) -> Format:
    for fmt in formats.values():
        if _takes(fmt, source):
            return fmt
    raise FormatError(
        f"{source.name}: expected a store (NAME.ifm) or a folder that a profiler made, found another folder",
        hint="Name one file in it.",
    )
