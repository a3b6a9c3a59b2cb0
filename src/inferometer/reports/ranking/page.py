"""The blocks of a ranking's page in order, and the page as HTML or Markdown."""

from collections.abc import Sequence

from inferometer import __version__
from inferometer.bench.ranking.ranking import Ranking
from inferometer.reports.page.blocks import Block, Facts, Grid, Point, Points, Words
from inferometer.reports.page.document import Page, render_page
from inferometer.reports.page.grids import TableLimits
from inferometer.reports.page.text import render_text
from inferometer.reports.ranking.candidates import build_operators, build_ranking
from inferometer.reports.ranking.definitions import build_definitions
from inferometer.reports.ranking.differences import build_differences
from inferometer.reports.ranking.shapes import build_shapes
from inferometer.reports.themes import Theme
from inferometer.reports.views.ranking.tables import runs_section
from inferometer.reports.views.view import facts_of, remarks_of

_TEXT_BYTES = 2_700_000  # for tables and texts, next to 4.8 MB of the drawing library
_TEXT_LIMITS = TableLimits()
_WHAT = (
    "Each candidate is one set of kernels, checked against the references with inputs that it couldn't know, then "
    "timed. S is the least time that the device allows over the time that was measured: 100 % is as fast as the "
    "hardware can be."
)


def build_blocks(ranking: Ranking) -> list[Block]:
    """All sections; those of shapes and differences only where there are any."""
    blocks = [
        Block("facts", "The results", [Facts(facts_of(ranking)), Words(_WHAT)]),
        _remarks(ranking),
        build_ranking(ranking),
        build_operators(ranking),
        None if ranking.differences is None else build_differences(ranking.differences),
        build_shapes(ranking),
        Block("runs", "Runs", [Grid(runs_section(ranking), sums=())]),
        build_definitions(),
    ]
    return [block for block in blocks if block is not None]


def render_ranking(ranking: Ranking, *, title: str, command: str, theme: Theme = "auto") -> Page:
    """As HTML that loads nothing. `command` makes it again."""
    return render_page(build_blocks(ranking), title=title, footer=_footer(command), text_bytes=_TEXT_BYTES, theme=theme)


def render_ranking_text(ranking: Ranking, *, title: str, command: str) -> str:
    """As Markdown with as many rows as the page has; charts are what they say in a sentence."""
    footer = [f"Made by inferometer {__version__}.", *_footer(command)]
    return render_text(build_blocks(ranking), title=title, footer=footer, limits=_TEXT_LIMITS)


def _remarks(ranking: Ranking) -> Block | None:
    """What to know before believing the order; of two runs' differences their own section says."""
    known = 0 if ranking.differences is None else len(remarks_of(ranking.differences))
    remarks = remarks_of(ranking)
    words = remarks[: len(remarks) - known]
    return Block("remarks", "To know first", [Points([Point(each) for each in words])]) if words else None


def _footer(command: str) -> Sequence[str]:
    return [f"Made with: {command}"]
