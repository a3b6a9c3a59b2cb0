"""`formats`: the formats that can be read."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Part, says


class Format(Part):
    """One format."""

    name: Annotated[str, says("As `--format` takes it.")]
    aliases: Annotated[list[str], says("Further names.")]
    title: Annotated[str, says("What it is, in words.")]
    suffixes: Annotated[list[str], says("Usual endings of files.")]
    tables: Annotated[list[str], says("Tables of a trace that it fills.")]
    recorded_by: Annotated[str, says("How such a file is made; empty where no profiler makes it.")]
    limits: Annotated[str, says("What isn't read, in words.")]
    read_by: Annotated[str | None, says("What reads it on this machine, in words; null where it is Python everywhere.")]


class Formats(Document):
    """The formats that can be read, by name; stores besides."""

    formats: list[Format]


DOCUMENT = Formats
