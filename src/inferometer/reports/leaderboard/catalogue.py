"""The operators as a table to sort and filter, and their importance as bars."""

from msgspec.structs import replace

from inferometer.analyses.operators.leaderboard import Leaderboard
from inferometer.reports.leaderboard.bands import LEGEND, band_of
from inferometer.reports.leaderboard.regimes import COLORS, REGIMES
from inferometer.reports.page.blocks import Block, Chart, Grid
from inferometer.reports.page.drawing import axis
from inferometer.reports.page.sampling import rounded
from inferometer.reports.views.leaderboard import catalogue
from inferometer.units import format_share

_TITLE = "Operators"


def build_catalogue(board: Leaderboard) -> Block:
    """A table and a chart."""
    section = catalogue(board)
    section = replace(section, title=_TITLE, notes=[*section.notes, f"S: {LEGEND}"])
    bands = dict.fromkeys(("sol_fraction", "published_fraction"), band_of)
    grid = Grid(section, sums=("shapes", "importance", "below_launch"), bands=bands)
    return Block("catalogue", _TITLE, [grid, _bars(board)])


def _bars(board: Leaderboard) -> Chart:
    rows = board.to_polars()
    data = []
    for regime, words in REGIMES.items():
        own = rows.filter(rows["regime"] == regime)
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": words,
                "y": own["operator"].to_list(),
                "x": rounded(100 * own["importance"]),
                "customdata": [[words, format_share(share)] for share in own["importance_published"]],
                "marker": {"color": COLORS[regime]},
                "hovertemplate": "%{y}: %{x:.1f} %, %{customdata[1]} as published<br>%{customdata[0]}<extra></extra>",
            }
        )
    layout = {
        "xaxis": axis("Share of GPU time, normalised, %"),
        "yaxis": {
            "autorange": "reversed", "automargin": True, "categoryorder": "array",
            "categoryarray": rows["operator"].to_list(),
        },
        "bargap": 0.3,
    }  # fmt: skip
    return Chart("Importance", _alt(board), data, layout, height=130 + 20 * rows.height)


def _alt(board: Leaderboard) -> str:
    shares = [(each.operator.name, each.normalised) for each in board.timed.operators]
    if not shares:
        return "The catalogue is empty."
    first = sum(share for _, share in shares[:5])
    name, share = shares[0]
    return f"{name} alone takes {format_share(share)} of the GPU time, the first five operators {format_share(first)}."
