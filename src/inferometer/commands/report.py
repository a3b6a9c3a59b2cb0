"""`inferometer report`: one page about a run, or about two, to send to somebody."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from inferometer.commands.base import (
    Output,
    TraceArgument,
    asked_theme,
    asked_thresholds,
    command,
    output_options,
    source_argument,
)
from inferometer.commands.options.attribution import capture_option, open_captures
from inferometer.commands.options.counted import counters_option, open_counters
from inferometer.commands.options.modelled import Modelled, model_options
from inferometer.commands.options.pages import (
    STDOUT,
    check_output,
    choose_place,
    describe_page,
    say_page,
    warn_left_out,
    write_page,
)
from inferometer.reports.schemas.schema import Schema

if TYPE_CHECKING:
    from inferometer.reports.page.blocks import Block
    from inferometer.reports.page.look import PageData


SCHEMA = Schema("report", 1)


@command(
    "report",
    group="Look",
    help="Write one self-contained page about a run, or about a run and its base, with charts.\n\n"
    "With CANDIDATE, FILE is the base and the page opens with what changed and why. The page is HTML that needs no "
    "network, at most 8 MB; with a name in .md it is Markdown for a comment, with the charts as sentences, and of two "
    "runs with all but the verdict and the largest changes folded.",
    example="inferometer report trace.json.gz -o report.html",
)
@source_argument
@click.argument("candidate", required=False)
@click.option("-o", "--output", metavar="OUT", help="The file to make; - is standard output.  [default: report.html]")
@click.option("--to", type=click.Choice(("html", "markdown")), help="The form.  [default: as OUT ends]")
@click.option("--title", metavar="TEXT", help="The page's heading.  [default: the names of the files]")
@click.option("--force", is_flag=True, help="Replace OUT if it is there.")
@model_options(sizes=False)
@capture_option()
@counters_option
@output_options("json")
def run(
    source: TraceArgument,
    candidate: str | None,
    output: str | None,
    to: str | None,
    title: str | None,
    force: bool,
    modelled: Modelled,
    captures: tuple[str, ...],
    counters: str | None,
    out: Output,
) -> None:
    modelled.refuse_alone()
    output, to = choose_place(output, to, stem="report")
    if candidate == source.path == "-":
        raise click.UsageError("Standard input can be FILE or CANDIDATE, not both.")
    if counters is not None and candidate is not None:
        raise click.UsageError("--counters is for the page about one run; CANDIDATE makes it one about two.")
    check_output(output, to, force=force, out=out)
    look = _open(source, candidate, modelled, captures, counters)
    title = title or _title(source.path, candidate)

    from inferometer.commands.options.progress import working
    from inferometer.reports.page.section import build_blocks

    with working() as say:
        is_page = to != "markdown"  # a comment folds what is of one run
        blocks = build_blocks(look, is_beside=is_page, on_progress=lambda name: say(f"the section {name}"))
        say("the page")
        text, left_out = _render(blocks, look, title, to)
    write_page(output, text, to, force=force)
    if output != STDOUT:
        _show(output, to, blocks, left_out, out)
    warn_left_out(left_out)


def _open(
    source: TraceArgument,
    candidate: str | None,
    modelled: Modelled,
    captures: tuple[str, ...],
    counters: str | None,
) -> "PageData":
    model, ran_on = modelled.model(), modelled.ran_on()
    counted = None if counters is None else open_counters(source, counters, *captures)
    taken = open_captures(source, captures)

    from inferometer.reports.page.look import PageData, PageOptions

    trace = source.open()
    other = None if candidate is None else TraceArgument(candidate, source.format, source.limited).open()
    modelled.refuse_unused(trace, *([] if other is None else [other]))
    return PageData(trace, other, PageOptions(model, ran_on, modelled.bandwidths(), taken, counted, asked_thresholds()))


def _title(base: str, candidate: str | None) -> str:
    names = [Path(path).name or path for path in (base, candidate) if path is not None]
    return names[0] if len(names) == 1 else f"{names[1]} compared with {names[0]}"


def _render(blocks: "list[Block]", look: "PageData", title: str, to: str) -> tuple[str, tuple[str, ...]]:
    if to == "markdown" and look.comparison is not None:
        from inferometer.reports.page.comment import render_comment

        return render_comment(look.comparison, blocks, title=title), ()
    if to == "markdown":
        from inferometer.reports.page.text import render_text

        return render_text(blocks, title=title), ()
    from inferometer.reports.page.document import TEXT_BYTES, TEXT_BYTES_OF_TWO, render_page

    text_bytes = TEXT_BYTES if look.candidate is None else TEXT_BYTES_OF_TWO
    page = render_page(blocks, title=title, text_bytes=text_bytes, theme=asked_theme())
    return page.html, page.left_out


def _show(output: str, to: str, blocks: "list[Block]", left_out: tuple[str, ...], out: Output) -> None:
    if out.form != "json":
        say_page(output, out)
        return
    on_progress = describe_page(output, to, left_out)
    on_progress["sections"] = [block.name for block in blocks if not block.lacking]
    on_progress["lacking"] = {block.name: block.lacking for block in blocks if block.lacking}
    out.write_json(SCHEMA, on_progress)
