"""Blocks as GitHub-flavoured Markdown: for a comment on a pull request. Charts are what they say in a sentence."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from inferometer.reports.markdown import escape_markdown, markdown_table
from inferometer.reports.page.blocks import Block, Chart, Facts, Grid, Part, Points, Words
from inferometer.reports.page.document import LACKING
from inferometer.reports.page.grids import cut

_ROWS = 20  # of a table: a comment holds 65,536 characters
_CHARACTERS = 300  # of a text


def render_text(blocks: Sequence[Block], *, title: str) -> str:
    """The page as Markdown; tables have at most 20 rows, and say how many more there are."""
    parts = [f"# {_text(title)}"]
    for block in blocks:
        if not block.lacking:
            parts.append(f"## {_text(block.title)}")
            parts += [text for part in block.parts for text in _part(part)]
    if lacking := [(block.title, block.lacking) for block in blocks if block.lacking]:
        parts += [f"## {LACKING}", *_facts(Facts(lacking))]
    return "\n\n".join(parts) + "\n"


def _part(part: Part) -> Iterator[str]:
    if isinstance(part, Words):
        yield f"**{_text(part.text)}**" if part.kind in ("verdict", "warning") else _text(part.text)
    elif isinstance(part, Facts):
        yield from _facts(part)
    elif isinstance(part, Points):
        yield from _points(part)
    elif isinstance(part, Grid):
        yield from _grid(part)
    else:
        yield _chart(part)


def _facts(facts: Facts) -> Iterator[str]:
    lines = [tuple(map(_text, line)) for line in facts.lines]
    if not facts.heads:
        yield "\n".join(f"- **{label}**: {text}" for label, text in lines)
        return
    rows = [("", *facts.heads), ("---",) * (len(facts.heads) + 1), *lines]
    yield "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _points(points: Points) -> Iterator[str]:
    if points.title:
        yield f"### {_text(points.title)}"
    lines = []
    for point in points.points[:_ROWS]:
        mark = f"**{_text(point.mark)}**: " if point.mark else ""
        aside = f" ({_text(point.aside)})" if point.aside else ""
        lines += [f"- {mark}{_text(point.text)}{aside}", *(f"  - {_text(text)}" for text in point.detail)]
    if len(points.points) > _ROWS:
        lines.append(f"- and {len(points.points) - _ROWS:,} more")
    yield "\n".join(lines)


def _grid(grid: Grid) -> Iterator[str]:
    section = grid.section
    if section.frame.is_empty():
        yield f"### {section.title}\n\nNone."
        return
    more = section.frame.height - _ROWS
    notes = [f"{more:,} more rows." if more > 1 else "1 more row."] if more > 0 else []
    frame = section.frame.head(_ROWS).with_columns(
        pl.col(pl.String).map_elements(lambda text: cut(text, _CHARACTERS), return_dtype=pl.String)
    )
    yield markdown_table(replace(section, frame=frame, notes=[*notes, *(cut(n, _CHARACTERS) for n in section.notes)]))


def _chart(chart: Chart) -> str:
    return f"**{_text(chart.title)}**: {_text(chart.alt)}"


def _text(text: str) -> str:
    return escape_markdown(cut(text, _CHARACTERS))
