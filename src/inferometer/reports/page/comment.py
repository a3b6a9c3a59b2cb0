"""Two runs as a comment on a pull request: the verdict, why, what changed most; all other sections are folded away.

Folded with `<details>`, as GitHub and GitLab render it: Markdown inside needs an empty line after the summary. At most
60 lines are seen before anything is unfolded: five reasons, twelve rows, what is around them. A comment holds 65,536
characters: sections that have no room, the last first, are named and left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import polars as pl
from msgspec.structs import replace

from inferometer.analyses.compare.comparison import Comparison
from inferometer.reports.markdown import escape_markdown, markdown_table
from inferometer.reports.page.blocks import Block, Facts
from inferometer.reports.page.document import LACKING
from inferometer.reports.page.grids import TableLimits, cut
from inferometer.reports.page.look import SIDES
from inferometer.reports.page.text import FITTING, block_text
from inferometer.reports.views.comparison_brief import changes_table, headline, reasons

MOST_BYTES = 60_000
"""Of the whole, which leaves a program that posts it room for words of its own."""

_LONGEST_LINE = 800
_LONGEST_CELL = 100
_OF_BOTH = "Both runs: the verdict, step by step and kernel by kernel"
_OF_ONE = "The {} alone"


def render_comment(found: Comparison, blocks: Sequence[Block], *, title: str) -> str:
    """The page of two runs, made of their comparison and of the sections of the page, as Markdown."""
    top = _top(found, title)
    text, sections = "", list[_Folded]()
    for limits in FITTING:
        sections = [*_sections(blocks, limits)]
        text = _page(top, sections)
        if _fits(text):
            return text
    left_out: list[str] = []
    while sections and not _fits(text):
        left_out.insert(0, sections.pop().title)
        text = _page(top, sections, left_out)
    return text


@dataclass(frozen=True)
class _Folded:
    """One section as text, and the line that it is folded behind."""

    summary: str
    title: str
    text: str


def _top(found: Comparison, title: str) -> str:
    """All that is seen at first."""
    table = changes_table(found)
    frame = table.frame.with_columns(pl.col(pl.String).map_elements(_cell, return_dtype=pl.String))
    notes = [" ".join(map(_line, table.notes))] if table.notes else []
    why = "\n".join(f"- **{word}**: {escape_markdown(_line(sentence))}" for word, sentence in reasons(found))
    verdict = f"**{escape_markdown(_line(headline(found)))}**"
    rows = markdown_table(replace(table, frame=frame, notes=notes))
    if frame.is_empty():
        rows = "\n\n".join([f"### {table.title}", "None beyond noise.", *map(escape_markdown, notes)])
    return "\n\n".join([f"# {escape_markdown(_line(title))}", verdict, why, rows])


def _sections(blocks: Sequence[Block], limits: TableLimits) -> Iterator[_Folded]:
    """Sections about both runs, then about the candidate, then the base; last what the runs lack."""
    groups: dict[str, list[Block]] = {_OF_BOTH: [], **{_OF_ONE.format(side): [] for side in reversed(SIDES)}}
    for block in blocks:
        side = next((side for side in SIDES if block.name.endswith(f"_{side}")), None)
        if not block.lacking:
            groups[_OF_BOTH if side is None else _OF_ONE.format(side)].append(block)
    if lacking := [(block.title, block.lacking) for block in blocks if block.lacking]:
        groups[LACKING] = [Block("lacking", LACKING, [Facts(lacking)])]
    for summary, group in groups.items():
        for block in group:
            yield _Folded(summary, block.title, block_text(block, limits))


def _page(top: str, sections: Sequence[_Folded], left_out: Sequence[str] = ()) -> str:
    parts = [top]
    for summary, group in groupby(sections, key=lambda section: section.summary):
        parts += [f"<details>\n<summary>{summary}</summary>", *(section.text for section in group), "</details>"]
    if left_out:
        named = escape_markdown(_line(", ".join(left_out)))
        parts.append(f"Left out, since a comment has no room for it: {named}. A name in .html gives a page with all.")
    return "\n\n".join(parts) + "\n"


def _fits(text: str) -> bool:
    return len(text.encode()) <= MOST_BYTES


def _line(text: str) -> str:
    return cut(text, _LONGEST_LINE)


def _cell(text: str) -> str:
    return cut(text, _LONGEST_CELL)
