"""Every shape of every operator on each platform: bounds, which one binds, S; the lowest published S first."""

from collections.abc import Sequence

import polars as pl
from msgspec.structs import replace

from inferometer.analyses.operators.catalogue import Catalogued, OperatorSheet
from inferometer.analyses.operators.leaderboard import Leaderboard, Platform
from inferometer.reports.leaderboard.bands import LEGEND, band_of
from inferometer.reports.page.blocks import Block, Fold, Folds, Grid, Part, Tab, Tabs, Words
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import facts_of, sections_of
from inferometer.units import format_share

_TITLE = "Shapes"
_PUBLISHED = (
    Field("published_fraction", "Published S", "share", spare=1),
    Field("published_ns", "Published bound", "ns"),
)
_FIRST = (
    "label", "index", "sol_fraction", "published_fraction", "bound_ns", "binding", "deployed_ns", "published_ns",
)  # fmt: skip
_LAST = ("flops", "bytes", "flags")


def build_shapes(board: Leaderboard) -> Block:
    """One tab per platform; a line unfolds to an operator."""
    legend = Words(f"S: {LEGEND}", "note")
    return Block("shapes", _TITLE, [legend, Tabs("Device", [_tab(board, platform) for platform in board.platforms])])


def _tab(board: Leaderboard, platform: Platform) -> Tab:
    sheets = {each.operator.name: _sheet(platform, each) for each in platform.operators}
    sections = {name: sections_of(sheet)[0] for name, sheet in sheets.items()}
    shared = _shared(list(sections.values()))
    ordered = sorted(board.timed.operators, key=lambda each: each.published_fraction or 0.0)
    folds = [_fold(sheets[name], sections[name], shared) for name in (each.operator.name for each in ordered)]
    return Tab(platform.device.name, [*(Words(note, "note") for note in shared), Folds(folds)])


def _sheet(platform: Platform, each: Catalogued) -> OperatorSheet:
    return OperatorSheet(platform.device, each, platform.listed.losses)


def _shared(sections: Sequence[Section]) -> Sequence[str]:
    """Notes that stand below all tables."""
    notes = sections[0].notes if sections else ()
    return [note for note in notes if all(note in each.notes for each in sections)]


def _fold(sheet: OperatorSheet, section: Section, shared: Sequence[str]) -> Fold:
    found = sheet.found
    facts = dict(facts_of(sheet))
    about: list[Part] = [Words(facts["Does"]), Words(f"From {facts['From']}; {facts['Importance']}.", "note")]
    grid = Grid(
        _with_published(section, found, shared),
        sums=(),
        bands=dict.fromkeys(("sol_fraction", "published_fraction"), band_of),
    )
    band = None if found.sol_fraction is None else band_of(found.sol_fraction)
    return Fold(found.operator.name, [*about, grid], _aside(found), band)


def _aside(found: Catalogued) -> str:
    shapes = f"{len(found.shapes)} {'shape' if len(found.shapes) == 1 else 'shapes'}"
    binding = f"mostly bound by {found.binding()}"
    launches = f"{found.below_launch} with a bound below a launch" if found.below_launch else ""
    if found.published_fraction is None:
        return ", ".join(filter(None, (shapes, binding, launches)))
    own = "-" if found.sol_fraction is None else format_share(found.sol_fraction)
    medians = f"median S {own}, published {format_share(found.published_fraction)}"
    return ", ".join(filter(None, (medians, shapes, binding, launches)))


def _with_published(section: Section, found: Catalogued, shared: Sequence[str]) -> Section:
    """The sheet's table with the published figures after S."""
    frame = section.frame.with_columns(
        published_ns=pl.Series([shape.published_bound_ns for shape in found.shapes], dtype=pl.Float64),
        published_fraction=pl.Series([shape.published_fraction for shape in found.shapes], dtype=pl.Float64),
    )
    timed = any(shape.deployed_ns is not None for shape in found.shapes)
    own = [replace(field, spare=0) if timed and field.column == "sol_fraction" else field for field in section.fields]
    fields = sorted([*own, *_PUBLISHED], key=_place)
    notes = [note for note in section.notes if note not in shared]
    return replace(section, title=found.operator.name, fields=fields, frame=frame, notes=notes)


def _place(field: Field) -> int:
    """What is asked for most stands in front, then each bound; sizes and flags stand behind."""
    column = field.column
    if column in _FIRST:
        return _FIRST.index(column) - len(_FIRST)
    return _LAST.index(column) + 1 if column in _LAST else 0
