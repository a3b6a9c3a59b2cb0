"""The blocks of the leaderboard's page in order, and the page as HTML or Markdown."""

from collections.abc import Sequence

from inferometer import __version__
from inferometer.analyses.operators.leaderboard import Leaderboard
from inferometer.reports.leaderboard.catalogue import build_catalogue
from inferometer.reports.leaderboard.definitions import build_definitions
from inferometer.reports.leaderboard.hardware import build_hardware
from inferometer.reports.leaderboard.oddities import build_oddities
from inferometer.reports.leaderboard.roofline import build_roofline
from inferometer.reports.leaderboard.shapes import build_shapes
from inferometer.reports.page.blocks import Block, Facts, Words
from inferometer.reports.page.document import Page, render_page
from inferometer.reports.page.grids import TableLimits
from inferometer.reports.page.text import render_text
from inferometer.reports.themes import Theme
from inferometer.reports.views.view import facts_of

MOST_DEVICES = 4
"""Next to the published platforms: each takes some 0.35 MB, and every row of it has to be on the page."""

_TEXT_BYTES = 2_700_000  # for tables and texts of all platforms, next to 4.8 MB of the drawing library
_EVERYTHING = TableLimits()
_WHAT = (
    "The operators that LLM inference spends its GPU time on in production, the shapes they were called with, and the "
    "least time that a device allows for each. S is that bound over the time of a deployed kernel: 100 % is as fast as "
    "the hardware can be."
)
_HOW = (
    "Each shape has six bounds, and the greatest holds. Where that is the launch itself, S would say nothing of the "
    "kernel and isn't given. Figures called published are next to ours: they come from one bound, all work charged to "
    "the matrix units."
)
_USE = "On the page: choose a device by its tab, unfold an operator for its shapes, click a heading to sort."


def build_blocks(board: Leaderboard) -> list[Block]:
    """All sections."""
    return [
        Block("facts", "The catalogue", [Facts(facts_of(board)), Words(_WHAT), Words(_HOW), Words(_USE, "note")]),
        build_catalogue(board),
        build_hardware(board),
        build_shapes(board),
        build_oddities(board),
        build_roofline(board),
        build_definitions(),
    ]


def render_leaderboard(board: Leaderboard, *, title: str, command: str, theme: Theme = "auto") -> Page:
    """As HTML that loads nothing. `command` makes it again."""
    return render_page(
        build_blocks(board), title=title, footer=_footer(board, command), text_bytes=_TEXT_BYTES, theme=theme
    )


def render_leaderboard_text(board: Leaderboard, *, title: str, command: str) -> str:
    """As Markdown with all rows; charts are what they say in a sentence."""
    footer = [f"Made by inferometer {__version__}.", *_footer(board, command)]
    return render_text(build_blocks(board), title=title, footer=footer, limits=_EVERYTHING)


def _footer(board: Leaderboard, command: str) -> Sequence[str]:
    return [f"Catalogue: {board.source}.", f"Made with: {command}"]
