"""The files of a fleet: `FLEET.ifm` is a folder with a mark, a digest for each content, reasons, and the joined tables.

fleet.json                    what it is, and of which version
digests/ab/abcd….parquet      one digest, by the SHA-256 of the trace's content
aside/abcd….json              why a content has none
tables/NAME.parquet           all digests, joined, with their checksums in manifest.json
"""

from pathlib import Path
from typing import Final

import msgspec

from inferometer.errors import FormatError, InputError
from inferometer.fleet.tables import VERSION
from inferometer.trace.store_writer import MANIFEST as TRACE_MANIFEST
from inferometer.trace.store_writer import checksum_of

MARK: Final = "inferometer-fleet"
MARK_FILE: Final = "fleet.json"
TABLES: Final = "tables"
MANIFEST: Final = "manifest.json"


class Mark(msgspec.Struct, frozen=True):
    """What `fleet.json` says; `digests` is their version."""

    mark: str
    digests: int


class JoinedTable(msgspec.Struct, frozen=True):
    """A joined table: its rows, and the CRC-32 of its file."""

    rows: int
    crc32: int


class Manifest(msgspec.Struct, frozen=True):
    """What `tables/manifest.json` says."""

    tables: dict[str, JoinedTable]


def is_fleet(folder: Path) -> bool:
    """Whether a folder is marked as a fleet."""
    return (folder / MARK_FILE).is_file()


def check_mark(folder: Path) -> None:
    """Refuse a folder that is no fleet of this version.

    Raises:
        InputError: It isn't there, or is no fleet.
        FormatError: It is one of another version, or its mark is damaged.
    """
    if not folder.is_dir() or not is_fleet(folder):
        is_trace = (folder / TRACE_MANIFEST).is_file()
        found = "a store of one trace" if is_trace else "another folder" if folder.is_dir() else "no folder"
        raise InputError(
            f"{folder}: expected a fleet, found {found}", hint="`inferometer mine PATHS -o FLEET.ifm` makes one."
        )
    file = folder / MARK_FILE
    try:
        mark = msgspec.json.decode(file.read_bytes(), type=Mark)
    except (OSError, msgspec.DecodeError) as error:
        raise FormatError(
            f"{file}: expected the mark of a fleet, found none: {error}", hint="Mine it again."
        ) from error
    if mark.mark != MARK or mark.digests != VERSION:
        raise FormatError(
            f"{file}: expected digests of version {VERSION}, found {mark.digests}",
            hint="Another version of inferometer made it: mine the traces into a new folder.",
        )


def digest_file(folder: Path, trace: str, crc32: int) -> Path:
    """Where the digest of a content is written."""
    return folder / "digests" / trace[:2] / f"{trace}.{crc32:08x}.parquet"


def list_digests(folder: Path) -> dict[str, Path]:
    """The digest of each content that has one. Looking for them one by one would list a folder for each."""
    return {content_of(file): file for file in sorted((folder / "digests").glob("*/*.parquet"), reverse=True)}


def content_of(digest: Path) -> str:
    """The content whose digest this file is."""
    return digest.name.partition(".")[0]


def check_digest(file: Path) -> None:
    """Refuse a digest whose bytes aren't those that were written: Polars would take flipped bits for numbers.

    Raises:
        FormatError: They aren't.
    """
    if f"{checksum_of(file):08x}" != file.name.split(".")[1]:
        raise FormatError(f"{file}: expected a digest as it was written, found other bytes",
                          hint="Remove that file, and mine again.")  # fmt: skip


def aside_file(folder: Path, trace: str) -> Path:
    """Where the reason is that a content has none."""
    return folder / "aside" / f"{trace}.json"
