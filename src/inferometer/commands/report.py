"""`inferometer report`: one page about a run, or about two, to send to somebody."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inferometer.commands.attributing import capture_option, open_captures
from inferometer.commands.base import Output, ReaderLeft, Source, command, output_options, source_argument
from inferometer.commands.modelled import Modelled, hardware, model_options

if TYPE_CHECKING:
    from inferometer.reports.page.blocks import Block
    from inferometer.reports.page.look import Look

_STDOUT = "-"
_FORMS = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown"}


@command(
    "report",
    help="Write one self-contained page about a run, or about a run and its base, with charts.\n\n"
    "With CANDIDATE, FILE is the base and the page opens with what changed and why. The page is HTML that needs no "
    "network, at most 8 MB; with a name in .md it is Markdown for a comment, with the charts as sentences.",
    example="inferometer report trace.json.gz -o report.html",
)
@source_argument
@click.argument("candidate", required=False)
@click.option("-o", "--output", metavar="OUT", help="The file to make; - is standard output.  [default: report.html]")
@click.option("--to", type=click.Choice(("html", "markdown")), help="The form.  [default: as OUT ends]")
@click.option("--title", metavar="TEXT", help="The page's heading.  [default: the names of the files]")
@click.option("--force", is_flag=True, help="Replace OUT if it is there.")
@model_options(sizes=False)
@click.option("--device", metavar="DEVICE", help="What it ran on, for bounds: 'Apple M3'.")
@capture_option()
@output_options("json")
def run(
    source: Source,
    candidate: str | None,
    output: str | None,
    to: str | None,
    title: str | None,
    force: bool,
    modelled: Modelled,
    device: str | None,
    captures: tuple[str, ...],
    out: Output,
) -> None:
    modelled.refuse_alone()
    output = output or ("report.md" if to == "markdown" else "report.html")
    to = to or _form_of(output)
    _check_place(output, to, force=force, out=out)
    if candidate == source.path == "-":
        raise click.UsageError("Standard input can be FILE or CANDIDATE, not both.")
    look = _open(source, candidate, modelled, device, captures)
    title = title or _title(source.path, candidate)

    from inferometer.commands.progress import working
    from inferometer.reports.page.section import build_blocks

    with working() as say:
        blocks = build_blocks(look, said=lambda name: say(f"the section {name}"))
        say("the page")
        text, left_out = _render(blocks, title, to)
    if output == _STDOUT:
        _write_stdout(text)
    else:
        _write_file(Path(output), text, force=force)
        _show(Path(output), to, blocks, left_out, out)
    for chart in left_out:
        click.echo(f"left out: the chart {chart!r}: with it the page would be larger than 8 MB", err=True)


def _form_of(output: str) -> str:
    if output == _STDOUT:
        return "html"
    suffix = Path(output).suffix.lower()
    if suffix not in _FORMS:
        raise click.UsageError(f"{output}: want a name in {', '.join(_FORMS)}, or the form with --to.")
    return _FORMS[suffix]


def _check_place(output: str, to: str, *, force: bool, out: Output) -> None:
    if output == _STDOUT:
        if out.form:
            raise click.UsageError(f"--{out.form} needs -o OUT: standard output is taken by the page.")
        if to == "html" and sys.stdout.isatty():
            raise click.UsageError("the page is no text to read: name a file with -o, or pipe it on.")
        return
    from inferometer.reports.new_files import check_place

    check_place(Path(output), force=force)  # before a large file is read in vain


def _open(
    source: Source, candidate: str | None, modelled: Modelled, device: str | None, captures: tuple[str, ...]
) -> "Look":
    model, ran_on = modelled.model(), hardware(device)
    taken = open_captures(source, captures)

    from inferometer.reports.page.look import Asked, Look

    trace = source.open()
    other = None if candidate is None else Source(candidate, source.format, source.limited).open()
    return Look(trace, other, Asked(model, ran_on, modelled.bandwidths(), taken))


def _title(base: str, candidate: str | None) -> str:
    names = [Path(path).name or path for path in (base, candidate) if path is not None]
    return names[0] if len(names) == 1 else f"{names[1]} compared with {names[0]}"


def _render(blocks: "list[Block]", title: str, to: str) -> tuple[str, tuple[str, ...]]:
    if to == "markdown":
        from inferometer.reports.page.text import render_text

        return render_text(blocks, title=title), ()
    from inferometer.reports.page.document import render_page

    page = render_page(blocks, title=title)
    return page.html, page.left_out


def _write_stdout(text: str) -> None:
    try:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise ReaderLeft from None


def _write_file(path: Path, text: str, *, force: bool) -> None:
    from inferometer.reports.new_files import NewFile

    with NewFile(path, force=force) as place:
        place.write_bytes(text.encode())


def _show(path: Path, to: str, blocks: "list[Block]", left_out: tuple[str, ...], out: Output) -> None:
    from inferometer.errors import clean
    from inferometer.units import format_bytes

    size_bytes = path.stat().st_size
    if out.form == "json":
        said: dict[str, Any] = {
            "path": str(path),
            "to": to,
            "bytes": size_bytes,
            "sections": [block.name for block in blocks if not block.lacking],
            "lacking": {block.name: block.lacking for block in blocks if block.lacking},
            "left_out": list(left_out),
        }
        out.write_json(said)
    else:
        out.write(f"{clean(str(path))}: {format_bytes(size_bytes)}\n")
