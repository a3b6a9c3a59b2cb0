"""Candidates in order on each device, and S of each by operator as bars, or the speedup where no S is known."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from inferometer.bench.ranking.ranking import DeviceRanking, Ranking
from inferometer.bench.ranking.score import Score
from inferometer.bench.ranking.shape_figures import Figure
from inferometer.reports.leaderboard.bands import LEGEND, band_of
from inferometer.reports.page.blocks import Block, Chart, Grid, Part, Tab, Tabs, Words
from inferometer.reports.page.drawing import SERIES, axis, color, distinct
from inferometer.reports.page.drawing import cut as cut_label
from inferometer.reports.page.sampling import rounded
from inferometer.reports.views.ranking.tables import operators_section, ranked_section
from inferometer.units import format_share

MOST_OPERATORS = 40
_SHARES = ("score", "right_only", "geometric_mean", "mean", "time_weighted", "pooled")
_FUNCTIONAL = "These ran on a CPU: right and wrong is all that they tell, and there is no score."


def build_ranking(ranking: Ranking) -> Block:
    """A table and a chart per device."""
    tabs = [Tab(device.title, [*_parts(device)]) for device in ranking.devices]
    return Block("ranking", "Ranking", tabs[0].parts if len(tabs) == 1 else [Tabs("Device", tabs)])


def build_operators(ranking: Ranking) -> Block:
    """A table per device."""
    tabs = [Tab(device.title, [_operators(device)]) for device in ranking.devices]
    return Block("operators", "Operators", tabs[0].parts if len(tabs) == 1 else [Tabs("Device", tabs)])


def _parts(device: DeviceRanking) -> Iterator[Part]:
    if device.functional_only:
        yield Words(_FUNCTIONAL, "warning")
    section = ranked_section(device)
    notes = [*section.notes, *([f"S: {LEGEND}"] if device.by == "score" else [])]
    yield Grid(replace(section, notes=notes), sums=(), bands=dict.fromkeys(_SHARES, band_of))
    if not device.functional_only:
        yield from _charts(device)


def _operators(device: DeviceRanking) -> Grid:
    bands = dict.fromkeys(("sol_fraction", "geometric_mean"), band_of)
    return Grid(operators_section(device), sums=(), bands=bands)


def _charts(device: DeviceRanking) -> Iterator[Chart]:
    ways: tuple[tuple[str, Callable[[Score], Figure | None], float], ...] = (
        ("Median S of right shapes, %", _median, 100.0),
        ("Speedup over the base, geometric mean", lambda score: score.speedup, 1.0),
    )
    for title, figure, scale in ways:
        shown = [(name, scored) for name, scored in device.operators if any(figure(each) for _, each in scored)]
        if shown:
            yield _bars(device, shown[:MOST_OPERATORS], title, figure, scale)
            return


def _median(score: Score) -> Figure | None:
    return next((each.over_right.median for each in score.operators), None)


def _bars(
    device: DeviceRanking,
    shown: Sequence[tuple[str, Sequence[tuple[str, Score]]]],
    title: str,
    figure: Callable[[Score], Figure | None],
    scale: float,
) -> Chart:
    names = [each.name for each in device.candidates][:SERIES]
    labels = distinct([cut_label(name) for name in names])
    data = []
    for i, (name, label) in enumerate(zip(names, labels, strict=True)):
        own = [(operator, figure(score)) for operator, scored in shown for who, score in scored if who == name]
        known = [(operator, found) for operator, found in own if found is not None]
        data.append(_series(label, known, scale, color(i)))
    layout = {
        "xaxis": axis(title, rangemode="tozero"),
        "yaxis": {
            "autorange": "reversed", "automargin": True, "categoryorder": "array",
            "categoryarray": [name for name, _ in shown],
        },
        "barmode": "group",
    }  # fmt: skip
    height = 150 + len(shown) * (14 + 12 * len(names))
    return Chart(
        f"{title.split(',', maxsplit=1)[0]}, by operator",
        _alt(device, scale, shown, figure),
        data,
        layout,
        height=height,
    )


def _series(name: str, known: Sequence[tuple[str, Figure]], scale: float, tone: str) -> dict[str, Any]:
    values = [figure for _, figure in known]
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": [operator for operator, _ in known],
        "x": rounded(scale * each.value for each in values),
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": rounded(scale * (each.high - each.value) for each in values),
            "arrayminus": rounded(scale * (each.value - each.low) for each in values),
            "color": "var(--ink)",
            "thickness": 1,
            "width": 2,
        },
        "marker": {"color": tone},
        "hovertemplate": "%{y}: %{x}<extra>%{fullData.name}</extra>",
    }


def _alt(
    device: DeviceRanking,
    scale: float,
    shown: Sequence[tuple[str, Sequence[tuple[str, Score]]]],
    figure: Callable[[Score], Figure | None],
) -> str:
    every = [
        (found.value, operator, who)
        for operator, scored in shown
        for who, score in scored
        if (found := figure(score)) is not None
    ]
    best, worst = (f"{_text(value, scale)} ({operator}, {who})" for value, operator, who in (max(every), min(every)))
    more = len(device.candidates) - SERIES
    rest = f" The first {SERIES} candidates are drawn, {more} aren't." if more > 0 else ""
    return f"{len(shown)} operators; the highest is {best}, the lowest {worst}.{rest}"


def _text(value: float, scale: float) -> str:
    return f"{value:.3f}" if scale == 1 else format_share(value)
