"""Findings for the terminal: each with its evidence and next step below it, wrapped to the width of the screen."""

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from inferometer.errors import clean
from inferometer.findings.engine import Findings
from inferometer.findings.finding import Finding
from inferometer.reports.screen.screen import Detail, Page
from inferometer.reports.screen.table import SEVERITY_STYLES
from inferometer.reports.terminal import print_losses
from inferometer.reports.views.findings import TITLE, what_was_examined
from inferometer.units import format_duration, format_share

_USUAL = Detail()
_LABEL = 9


def render_findings(result: Findings, *, is_terminal: bool, detail: Detail = _USUAL) -> str:
    """Text no wider than the screen or, in a pipe, than COLUMNS or 120; in color on a terminal."""
    page = Page(detail, is_terminal=is_terminal)
    page.sentence(clean(result.source), mark=Text("File", "bold"), room=_LABEL)
    page.blank()
    if result.findings:
        page.sentence(TITLE, style="bold")
        page.print(_grid(result))
    else:
        page.sentence(f"{TITLE}: none.")
    if result.left_out:
        page.sentence(f"{result.left_out:,} more are not listed.", style="dim")
    if result.findings:
        page.blank()
    for sentence in what_was_examined(result):
        page.sentence(sentence)
    print_losses(result.losses, page)
    return page.text()


def _grid(result: Findings) -> Table:
    """Number, severity, and all that is reported."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for number, finding in enumerate(result.findings, start=1):
        mark = Text(finding.severity, style=SEVERITY_STYLES[finding.severity])
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
