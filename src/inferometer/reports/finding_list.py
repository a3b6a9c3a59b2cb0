"""Findings for the terminal: each with its evidence and next step below it, wrapped to the width of the screen."""

import io
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from inferometer.errors import clean
from inferometer.findings.engine import Findings
from inferometer.findings.finding import Finding
from inferometer.reports.base import loss_lines, scope_line
from inferometer.reports.views.findings import TITLE, what_was_examined
from inferometer.units import format_duration, format_share

_PIPE_WIDTH = 10_000
_STYLES = {"high": "bold red", "medium": "yellow", "low": "cyan", "info": "dim"}


def render_findings(result: Findings, *, is_terminal: bool) -> str:
    """Text as wide as the terminal, in color unless NO_COLOR is set; or, for a pipe, plain text, a sentence a line."""
    page = io.StringIO()
    width = None if is_terminal else _PIPE_WIDTH
    console = Console(file=page, highlight=False, force_terminal=is_terminal, width=width)
    console.print(Text.assemble((f"{'File':<10}", "bold"), clean(result.source)), soft_wrap=True)
    console.print()
    if result.findings:
        console.print(Text(TITLE, style="bold"))
        console.print(_grid(result))
    else:
        console.print(Text(f"{TITLE}: none."))
    if result.left_out:
        console.print(Text(f"{result.left_out:,} more are not listed.", style="dim"))
    if result.findings:
        console.print()
    for sentence in what_was_examined(result):
        console.print(Text(sentence), soft_wrap=not is_terminal)
    lines = [*loss_lines(result.losses), *filter(None, [scope_line(result.losses)])]
    if lines:
        console.print()
    for line in lines:
        console.print(Text(line, style="dim"), soft_wrap=not is_terminal)
    text = page.getvalue()
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def _grid(result: Findings) -> Table:
    """Number, severity, and all that is reported."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for number, finding in enumerate(result.findings, start=1):
        mark = Text(finding.severity, style=_STYLES[finding.severity])
        first, *others = _lines(finding)
        grid.add_row(Text(f"{number}."), mark, first)
        for line in others:
            grid.add_row("", "", line)
        if number < len(result.findings):
            grid.add_row()
    return grid


def _lines(finding: Finding) -> Iterator[Text]:
    yield Text.assemble((clean(finding.title), "bold"), (_aside(finding), "dim"))
    for sentence in finding.evidence:
        yield Text(clean(sentence))
    if finding.explained_by is not None:
        yield Text(f"Explained by {finding.explained_by}, above.")
    yield Text.assemble(("Next: ", "bold"), clean(finding.next))


def _aside(finding: Finding) -> str:
    """Size, share and rule: ` (2.400 ms, 31.0 %; idle_device)`."""
    size = "" if finding.size_ns is None else format_duration(finding.size_ns)
    share = "" if finding.share is None else format_share(finding.share)
    known = ", ".join(filter(None, (size, share)))
    return f" ({'; '.join(filter(None, (known, clean(finding.rule))))})"
