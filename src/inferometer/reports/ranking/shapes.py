"""Every shape of every candidate; a line unfolds to an operator."""

import polars as pl
from msgspec.structs import replace

from inferometer.bench.ranking.ranking import DeviceRanking, Ranking
from inferometer.reports.leaderboard.bands import LEGEND, band_of
from inferometer.reports.page.blocks import Block, Fold, Folds, Grid, Tab, Tabs, Words
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.ranking.tables import shapes_section
from inferometer.units import format_counted

_TITLE = "Shapes"
_SAID = frozenset({"operator", "device"})  # by the fold and the tab
_MOST = 60  # operators of a device


def build_shapes(ranking: Ranking) -> Block:
    """A tab a device."""
    legend = Words(f"S: {LEGEND}", "note")
    tabs = [Tab(device.title, [_folds(device)]) for device in ranking.devices]
    parts = tabs[0].parts if len(tabs) == 1 else [Tabs("Device", tabs)]
    timed = any(not device.functional_only for device in ranking.devices)
    return Block("shapes", _TITLE, [legend, *parts] if timed else parts)


def _folds(device: DeviceRanking) -> Folds:
    section = shapes_section(device)
    names = [name for name, _ in device.operators]
    folds = [_fold(section, name, device) for name in names[:_MOST]]
    if len(names) > _MOST:
        words = f"{len(names) - _MOST:,} more operators are in the data alone: --json, --csv."
        folds.append(Fold("More", [Words(words)]))
    return Folds(folds)


def _fold(section: Section, operator: str, device: DeviceRanking) -> Fold:
    frame = section.frame.filter(pl.col("operator") == operator)
    frame = frame.with_columns(pl.col("instead").fill_null("-"))
    own = Section(operator, [_shown(field, device) for field in section.fields if field.column not in _SAID], frame)
    instead = {} if device.functional_only else {"sol_fraction": "instead"}
    return Fold(
        operator,
        [Grid(own, sums=(), bands={"sol_fraction": band_of}, instead=instead)],
        aside=_aside(frame),
    )


def _shown(field: Field, device: DeviceRanking) -> Field:
    """A column that holds nothing isn't shown, but for S, which says why."""
    kept = field.column == "sol_fraction" and not device.functional_only
    return replace(field, spare=0 if kept else max(field.spare, 1))


def _aside(frame: pl.DataFrame) -> str:
    shapes, wrong = frame["shape"].n_unique(), int((frame["right"] == "wrong").sum())
    words = format_counted(shapes, "shape")
    results = format_counted(wrong, "result")
    return f"{words}, {results} wrong" if wrong else f"{words}, all right"
