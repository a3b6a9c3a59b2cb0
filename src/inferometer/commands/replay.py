"""`inferometer replay`: a script that runs one op of a trace again and times it."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from inferometer.commands.base import Output, TraceArgument, command, output_options, source_argument
from inferometer.commands.options.attribution import Attributing, attributing_options
from inferometer.commands.options.rooflines import model_trace
from inferometer.errors import clean
from inferometer.reports.schemas.schema import Schema

if TYPE_CHECKING:
    from inferometer.analyses.roofline.table import Roofline
    from inferometer.new_files import FileKind

SCHEMA = Schema("replay", 1)
_STDOUT = "-"


@command(
    "replay",
    group="Explain",
    help="Write a Python script that runs one op of a trace again, by itself, and times it.\n\n"
    "The op has the recorded shapes, strides, types and values, and random data. The script needs torch, and the "
    "library that registers the op where PyTorch doesn't; it runs on a GPU where there is one, else on the CPU, and "
    "prints the median and quartiles of its times. What profilers don't record is filled in, with a comment: values of "
    "tensors (row numbers are in range, sequences equally long) and texts. Read a script of a trace from elsewhere "
    "before you run it: shapes may ask for any amount of memory.",
    example="inferometer replay trace.json.gz --op 1 -o replay.py",
)
@source_argument
@click.option("--op", "number", type=click.IntRange(min=1), metavar="N", help=(
    "The op with this number in `roofline` and `kernels --by op-args`."))  # fmt: skip
@click.option("--match", metavar="REGEX", help="The longest op whose name the regular expression finds.")
@click.option(
    "-o", "--output", default=_STDOUT, show_default=True, metavar="OUT", help="The file to make; - is standard output."
)
@click.option("--force", is_flag=True, help="Replace OUT if it is there.")
@attributing_options
@output_options("json")
def run(
    source: TraceArgument,
    number: int | None,
    match: str | None,
    output: str,
    force: bool,
    how: Attributing,
    out: Output,
) -> None:
    if (number is None) == (match is None):
        raise click.UsageError("Name the op by --op or by --match.")
    if output != _STDOUT:
        from inferometer.new_files import check_place

        check_place(Path(output), force=force, kind=_script_kind())

    from inferometer.analyses.roofline.numbers import find_numbered
    from inferometer.reports.replay.script import replay_script

    table = model_trace(source, how)
    row = find_numbered(table.frame, _matching(table, match) if number is None else number)
    script = replay_script(row)
    if output != _STDOUT:
        _write(script, Path(output), force=force)
    if out.form == "json":
        out.write_json(SCHEMA, {**row, "output": None if output == _STDOUT else output, "script": script})
    elif output == _STDOUT:
        out.write(script)
    else:
        click.echo(f"written: {clean(output)}", err=True)


def _matching(table: "Roofline", match: str | None) -> int:
    """The number of the longest op that matches; how many others do is said."""
    from inferometer.analyses.roofline.numbers import find_matching
    from inferometer.analyses.rows import compile_match

    pattern = compile_match(match)
    assert pattern is not None
    first, *others = find_matching(table.frame, pattern)
    if others:
        click.echo(f"{len(others) + 1} ops match: the longest is number {first}.", err=True)
    return first


def _script_kind() -> "FileKind":
    from inferometer.new_files import begins_with
    from inferometer.reports.replay.script import BEGINNING

    return begins_with("replay script", BEGINNING.encode())


def _write(script: str, path: Path, *, force: bool) -> None:
    from inferometer.new_files import NewFile

    with NewFile(path, force=force, kind=_script_kind()) as place:
        place.write_text(script, "utf-8")
