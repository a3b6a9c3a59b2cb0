"""`inferometer export`: a trace in a form that other tools open."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inferometer.commands.base import (
    Output,
    ReaderLeft,
    TraceArgument,
    command,
    output_options,
    say_losses,
    source_argument,
)
from inferometer.commands.options.selection import rank_option
from inferometer.errors import clean
from inferometer.reports.schemas.schema import Schema

if TYPE_CHECKING:
    from inferometer.reports.export import Exported

SCHEMA = Schema("export", 1)
_STDOUT = "-"


@command(
    "export",
    group="Tools",
    help="Write a trace for other tools: Perfetto's UI, chrome://tracing, HTA, Parquet, CSV.\n\n"
    "perfetto and chrome make one file for ui.perfetto.dev (compressed when OUT ends in .gz; a Chrome trace of several "
    "ranks is a folder with a file each). parquet and csv make a folder with a file per table, or one file when OUT "
    "ends in .parquet or .csv and one --table is chosen. Rows without a place in the form are counted on stderr.\n\n"
    "--redact makes a copy to share: secrets, names of users and hosts, home folders, command lines and values of the "
    "environment are blanked, the same text always alike (/home/alice becomes ~user-1). Kernel names, times and shapes "
    "stay. What was blanked is listed on stderr, and in the copy where that is a Chrome trace or a folder of tables.",
    example="inferometer export trace.json.gz --to perfetto -o trace.pftrace\n"
    "  inferometer export trace.json.gz --to chrome --redact -o shared.json.gz",
)
@source_argument
@click.option("--to", required=True, type=click.Choice(("perfetto", "chrome", "parquet", "csv")), help="The form.")
@click.option("-o", "--output", metavar="OUT", help="The file or folder to make; - is standard output, the default "
              "for chrome and for csv of one table.")  # fmt: skip
@click.option("--table", "tables", multiple=True, metavar="NAME", help="Only this table; may be given several times.")
@rank_option()
@click.option("--redact", is_flag=True, help="Blank what tells who and where, for a copy to share.")
@click.option("--force", is_flag=True, help="Replace OUT if an export could have made it.")
@output_options("json")
def run(
    source: TraceArgument,
    to: str,
    output: str | None,
    tables: tuple[str, ...],
    rank: int | None,
    redact: bool,
    force: bool,
    out: Output,
) -> None:
    output = output or _usual_output(to, tables)
    if output == _STDOUT:
        _check_stdout(to, tables, out)
    if output != _STDOUT:
        _check_place(Path(output), to, force=force)
    trace = source.open(set(tables) or None, rank=rank)

    from inferometer.reports.export import export_trace, write_export

    if output == _STDOUT:
        try:
            exported = write_export(trace, sys.stdout.buffer, to=to, tables=tables or None, redact=redact)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise ReaderLeft from None
    else:
        exported = export_trace(trace, output, to=to, tables=tables or None, redact=redact, force=force)
        _show(exported, out)
    _show_losses(exported)


def _check_place(path: Path, to: str, *, force: bool) -> None:
    """Before a large file is read in vain."""
    from inferometer.new_files import check_place
    from inferometer.reports.export import kind_of

    check_place(path, force=force, kind=kind_of(to, path))


def _usual_output(to: str, tables: tuple[str, ...]) -> str:
    if to == "chrome" or (to == "csv" and len(tables) == 1):
        return _STDOUT
    what = "a folder, or choose one --table" if to == "csv" else "a folder" if to == "parquet" else "a file"
    raise click.UsageError(f"--to {to} needs -o OUT: name {what}.")


def _check_stdout(to: str, tables: tuple[str, ...], out: Output) -> None:
    if out.form:
        raise click.UsageError(f"--{out.form} needs -o OUT: standard output is taken by the export.")
    if to == "parquet" or (to == "csv" and len(tables) != 1):
        raise click.UsageError(f"--to {to} can't go to standard output: name a folder with -o.")
    if to == "perfetto" and sys.stdout.isatty():
        raise click.UsageError("--to perfetto is binary: name a file with -o, or pipe it on.")


def _show(exported: "Exported", out: Output) -> None:
    from inferometer.units import format_bytes, format_rows

    if out.form == "json":
        out.write_json(SCHEMA, exported.as_json())
        return
    for file in exported.files:
        rows = ", ".join(format_rows(n, table) for table, n in file.rows.items())
        out.write(f"{clean(file.path)}: {rows or 'facts and losses'} ({format_bytes(file.size_bytes)})\n")


def _show_losses(exported: "Exported") -> None:
    from inferometer.reports.redacted import describe_redaction

    for line in describe_redaction(exported.redacted):
        click.echo(line, err=True)
    for table, n in exported.left_out.items():
        click.echo(f"left out: {n:,} rows of {table}: {exported.to} has no place for them", err=True)
    say_losses(exported.losses)
