"""What commands that write one page share: its form by its name, the refusals before any work, and the writing."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inferometer.commands.base import Output, ReaderLeft

if TYPE_CHECKING:
    from inferometer.new_files import FileKind

STDOUT = "-"
_FORMS = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown"}


def choose_place(output: str | None, to: str | None, *, stem: str) -> tuple[str, str]:
    """The file to make and its form: as was asked, as the name ends, or `STEM.html`.

    Raises:
        click.UsageError: The name shows no form, and none was asked for.
    """
    place = output or f"{stem}.{'md' if to == 'markdown' else 'html'}"
    return place, to or _form_of(place)


def check_output(output: str, to: str, *, force: bool, out: Output) -> None:
    """Refuse what can't be written, before a large file is read in vain.

    Raises:
        click.UsageError: Standard output is taken twice, or is a terminal.
        InputError: A file is there already and `force` is not set, or none can be made.
    """
    if output == STDOUT:
        if out.form:
            raise click.UsageError(f"--{out.form} needs -o OUT: standard output is taken by the page.")
        if to == "html" and sys.stdout.isatty():
            raise click.UsageError("the page is no text to read: name a file with -o, or pipe it on.")
        return
    from inferometer.new_files import check_place

    check_place(Path(output), force=force, kind=_kind(to))


def write_page(output: str, text: str, to: str, *, force: bool) -> None:
    """To standard output, or to a file that is whole or not there."""
    if output == STDOUT:
        _write_stdout(text)
        return
    from inferometer.new_files import NewFile

    with NewFile(Path(output), force=force, kind=_kind(to)) as place:
        place.write_bytes(text.encode())


def _kind(to: str) -> "FileKind":
    """What a page replaces: another page of its form."""
    from inferometer.new_files import begins_with

    return begins_with("Markdown page", b"# ") if to == "markdown" else begins_with("HTML page", b"<!doctype html")


def describe_page(output: str, to: str, left_out: tuple[str, ...]) -> dict[str, Any]:
    """A page that was written, as `--json` has it."""
    path = Path(output)
    return {"path": str(path), "to": to, "bytes": path.stat().st_size, "left_out": list(left_out)}


def say_page(output: str, out: Output) -> None:
    """Name and size of a page that was written."""
    from inferometer.errors import clean
    from inferometer.units import format_bytes

    path = Path(output)
    out.write(f"{clean(str(path))}: {format_bytes(path.stat().st_size)}\n")


def warn_left_out(left_out: tuple[str, ...]) -> None:
    """A line on standard error for each chart that had no room."""
    for chart in left_out:
        click.echo(f"left out: the chart {chart!r}: with it the page would be larger than 8 MB", err=True)


def _form_of(output: str) -> str:
    if output == STDOUT:
        return "html"
    suffix = Path(output).suffix.lower()
    if suffix not in _FORMS:
        raise click.UsageError(f"{output}: expected a name in {', '.join(_FORMS)}, or the form with --to.")
    return _FORMS[suffix]


def _write_stdout(text: str) -> None:
    try:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise ReaderLeft from None
