"""A result for people at a terminal, or in a pipe: facts, tables, remarks, losses.

Text from files is printed without control characters, so that a hostile name can't drive the terminal.
"""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from inferometer.analyses.result import Result
from inferometer.errors import clean
from inferometer.reports.base import loss_lines, scope_line
from inferometer.reports.screen.screen import Detail, Page
from inferometer.reports.screen.table import print_table
from inferometer.reports.views.layout import Section
from inferometer.reports.views.view import facts_of, remarks_of, sections_of
from inferometer.trace.losses import Losses

_USUAL = Detail()
_LABEL = 9  # columns for the label of a fact, at least: so that results stand alike


def render_terminal(result: Result, *, is_terminal: bool, detail: Detail = _USUAL) -> str:
    """Text no wider than the screen or, in a pipe, than COLUMNS or 120; in color on a terminal."""
    page = Page(detail, is_terminal=is_terminal)
    facts, remarks = facts_of(result), remarks_of(result)
    room = max((cell_len(label) for label, _ in facts), default=0)
    for label, text in facts:
        page.sentence(clean(text), mark=Text(label, "bold"), room=max(room, _LABEL))
    for i, section in enumerate(sections_of(result)):
        if i or facts:
            page.blank()
        _print_section(section, page)
    if remarks:
        page.blank()
    for remark in remarks:
        page.sentence(clean(remark), mark="•")
    print_losses(result.losses, page)
    return page.text()


def print_losses(losses: Losses, page: Page) -> None:
    """What was lost; asked for all, also what is only information, and which tables were read."""
    verbose = page.detail.verbose
    lines = [*loss_lines(losses, verbose=verbose), *filter(None, [scope_line(losses) if verbose else None])]
    if lines:
        page.blank()
        page.losses(lines)


def _print_section(section: Section, page: Page) -> None:
    if section.frame.is_empty():
        page.sentence(f"{section.title}: none")
    else:
        print_table(section, page)
    for note in section.notes:
        _print_note(note, page)


def _print_note(note: str, page: Page) -> None:
    """A sentence; where it is numbered, its lines stand next to the number."""
    lines: Sequence[str] = note.split("\n")
    number, _, rest = lines[0].partition(" ")
    is_numbered = number[:-1].isdecimal() and number.endswith(".")
    for i, line in enumerate([rest, *lines[1:]] if is_numbered else lines):
        mark = (" " * len(number) if i else number) if is_numbered else ""
        page.sentence(clean(line), mark=mark)
