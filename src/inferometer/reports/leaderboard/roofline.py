"""Rooflines: every shape by its arithmetic intensity and rate, below what a platform's memory and units allow.

Where deployed kernels were timed, a point is a shape's work over its deployed time. On other devices nothing was
measured: there it is the work over our bound, and its chart says so. Work and bytes are the least that a call takes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from inferometer.analyses.operators.bounds import BoundShape
from inferometer.analyses.operators.leaderboard import Leaderboard, Platform
from inferometer.analyses.operators.published import regime_of
from inferometer.reports.leaderboard.regimes import COLORS, REGIMES
from inferometer.reports.page.blocks import Block, Chart, Part, Tab, Tabs, Words
from inferometer.reports.page.roofs import TERA, intensity_axis, rate_axis, roof_lines
from inferometer.reports.page.sampling import rounded
from inferometer.units import format_duration, format_share

_TITLE = "Roofline"
_MODELLED = (
    "No kernel was timed on this device: points are what our bounds allow, modelled, not measured. Units work side by "
    "side, so a point may lie a little above one unit's line."
)


@dataclass(frozen=True)
class _Dot:
    """A shape in the chart: FLOP/B, FLOP/s, and what hovering says."""

    operator: str
    regime: str
    below_launch: bool
    intensity: float
    rate: float
    texts: Sequence[str]


def build_roofline(board: Leaderboard) -> Block:
    """A chart a platform."""
    tabs = [Tab(platform.device.name, [*_parts(platform)]) for platform in board.platforms]
    return Block("roofline", _TITLE, [Tabs("Device", tabs)])


def _parts(platform: Platform) -> Iterator[Part]:
    dots = [*_dots(platform)]
    if not platform.is_timed:
        yield Words(_MODELLED)
    yield _chart(platform, dots)
    left_out = sum(len(each.shapes) for each in platform.operators) - len(dots)
    if left_out:
        yield Words(f"{left_out} shapes do no arithmetic or have no time, and aren't shown.", "note")


def _dots(platform: Platform) -> Iterator[_Dot]:
    for each in platform.operators:
        for shape in each.shapes:
            work, time_ns = shape.work, shape.deployed_ns if platform.is_timed else shape.bounds.bound_ns
            flops = work.matrix_flops + work.vector_flops + work.special_ops
            if flops and work.moved_bytes and time_ns:
                intensity, rate = flops / work.moved_bytes, 1e9 * flops / time_ns
                texts = [f"{each.operator.name} #{shape.shape.index}", shape.shape.label, _times(shape)]
                yield _Dot(
                    each.operator.name,
                    regime_of(each.operator) or "",
                    shape.bounds.is_below_launch,
                    intensity,
                    rate,
                    texts,
                )


def _times(shape: BoundShape) -> str:
    bound = f"bound {format_duration(shape.bounds.bound_ns)} ({shape.bounds.binding})"
    if shape.deployed_ns is None:
        return bound
    own = "-" if shape.sol_fraction is None else format_share(shape.sol_fraction)
    published = "" if shape.published_fraction is None else f", published {format_share(shape.published_fraction)}"
    return f"S {own}{published}; {bound}, deployed {format_duration(shape.deployed_ns)}"


def _chart(platform: Platform, dots: Sequence[_Dot]) -> Chart:
    kinds = [(regime, launch) for regime in REGIMES for launch in (False, True)]
    groups = {kind: [dot for dot in dots if (dot.regime, dot.below_launch) == kind] for kind in kinds}
    groups = {kind: own for kind, own in groups.items() if own}
    used = {shape.work.dtype for each in platform.operators for shape in each.shapes}
    roofs = roof_lines(platform.device, used, [(dot.intensity, dot.rate) for dot in dots])
    data = [*roofs, *(_points(kind, own) for kind, own in groups.items())]
    what = "attained by the deployed kernel" if platform.is_timed else "allowed by our bound"
    layout = {
        "xaxis": intensity_axis(),
        "yaxis": rate_axis(what),
        "hovermode": "closest",
        "updatemenus": [_menu(len(roofs), list(groups.values()))],
    }
    return Chart(f"Roofline of {platform.device.name}", _alt(dots), data, layout, height=620)


def _points(kind: tuple[str, bool], dots: Sequence[_Dot]) -> dict[str, Any]:
    regime, below_launch = kind
    color = COLORS[regime]  # type: ignore[index]
    words = REGIMES[regime]  # type: ignore[index]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{words}, bound below a launch" if below_launch else words,
        "x": rounded(dot.intensity for dot in dots),
        "y": rounded(dot.rate / TERA for dot in dots),
        "customdata": [list(dot.texts) for dot in dots],
        "marker": {"color": color, "size": 7, "symbol": "x-thin-open" if below_launch else "circle", "opacity": 0.75},
        "unselected": {"marker": {"opacity": 0.06}},
        "hovertemplate": "<b>%{customdata[0]}</b><br>%{customdata[1]}<br>%{customdata[2]}"
        "<br>%{x} FLOP/B, %{y} TFLOP/s<extra></extra>",
    }


def _menu(roofs: int, groups: Sequence[Sequence[_Dot]]) -> dict[str, Any]:
    """All operators, or one that stands out."""
    names = sorted({dot.operator for dots in groups for dot in dots})
    every = [*range(roofs, roofs + len(groups))]
    buttons = [{"label": "All operators", "method": "restyle", "args": [{"selectedpoints": [None]}, every]}]
    for name in names:
        chosen = [[place for place, dot in enumerate(dots) if dot.operator == name] for dots in groups]
        buttons.append({"label": name, "method": "restyle", "args": [{"selectedpoints": chosen}, every]})
    return {"buttons": buttons}


def _alt(dots: Sequence[_Dot]) -> str:
    launches = sum(dot.below_launch for dot in dots)
    crosses = f", {launches} of them with a bound below a launch and drawn as crosses" if launches else ""
    shown = f"{len(dots)} shapes by their least work over their least bytes{crosses}"
    if not dots:
        return "No shape has a rate on this device."
    best = max(dots, key=lambda dot: dot.rate)
    highest = f"{best.rate / TERA:.4g} TFLOP/s of {best.texts[0]}"
    return f"{shown}. The highest rate is {highest}. Lines are the device's limits."
