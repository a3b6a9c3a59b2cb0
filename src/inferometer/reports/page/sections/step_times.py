"""The steps of two runs side by side: how long they take, in numbers, as distributions and over the run."""

from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np

from inferometer.analyses.compare.changes import Changes
from inferometer.reports.page.blocks import MOST_POINTS, Block, Chart, Facts, Part, Tab, Tabs, Words
from inferometer.reports.page.drawing import TimeUnit, axis
from inferometer.reports.page.look import SIDES, PageData
from inferometer.reports.page.sampling import Values, distribution, keep_extremes, rounded
from inferometer.reports.page.section import PageSection
from inferometer.reports.page.sections._two_runs import NOT_COMPARABLE, line, marker
from inferometer.units import format_duration, format_share, format_signed_duration

_TITLE = "Step times of both runs"
_NO_CYCLES = "Single steps in both runs: {which} only as a whole, as one window or as sums of all its steps."
_BINS = 40
_FOR_TAIL = 20  # steps from which on a 95th percentile says something
_MOST = MOST_POINTS // len(SIDES)


def build(look: PageData) -> Block | None:
    """Numbers, distributions and a strip; without single steps in both runs, what lacks."""
    found = look.comparison
    if found is None:
        return None
    if found.comparable.stops:
        return Block("step_times", _TITLE, lacking=NOT_COMPARABLE)
    times = found.changes.step_times
    single = [len(each) > 1 for each in times]
    if not all(single):
        which = f"the {SIDES[single.index(False)]} is known" if any(single) else "they are known"
        return Block("step_times", _TITLE, lacking=_NO_CYCLES.format(which=which))
    unit = TimeUnit.of(max(float(each.max()) for each in times))
    ways = Tabs(
        "Distribution as",
        [Tab("Share up to a time", [_distribution(times, unit)]), Tab("Histogram", [_histogram(times, unit)])],
    )
    parts: list[Part] = [_numbers(found.changes), ways, _over_the_run(times, unit)]
    return Block("step_times", _TITLE, [*parts, *_about(found.changes)])


def _numbers(changes: Changes) -> Facts:
    """The mean as the comparison has it, with the interval of its change; quantiles of the steps."""
    base, candidate = changes.step_times
    mean = "Mean", changes.base_step_ns, changes.candidate_step_ns, _within(changes)
    lines: list[tuple[str, float, float, str]] = [mean]
    quantiles = [("Fastest", 0.0), ("Median", 0.5), *_tail(min(map(len, changes.step_times))), ("Slowest", 1.0)]
    lines += [(name, float(np.quantile(base, at)), float(np.quantile(candidate, at)), "") for name, at in quantiles]
    shown = [
        (name, format_duration(before), format_duration(after), f"{format_signed_duration(after - before)}{within}")
        for name, before, after, within in lines
    ]
    return Facts(shown, heads=("Base", "Candidate", "Change"))


def _tail(steps: int) -> list[tuple[str, float]]:
    return [("95th percentile", 0.95)] if steps >= _FOR_TAIL else []


def _within(changes: Changes) -> str:
    if changes.step_delta_interval_ns is None:
        return ", spread unknown"
    return f" (95 %: {' to '.join(map(format_signed_duration, changes.step_delta_interval_ns))})"


def _distribution(times: Sequence[Values], unit: TimeUnit) -> Chart:
    data: list[dict[str, Any]] = []
    for side, each in enumerate(times):
        values, shares = distribution(each, _MOST)
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": SIDES[side],
                "x": unit.scaled(values),
                "y": rounded(shares),
                "line": line(side, shape="hv", dash="solid" if side == 0 else "dash"),
                "hovertemplate": f"{SIDES[side]}: %{{y:.0%}} of steps take %{{x}} {unit.name} or less<extra></extra>",
            }
        )
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": unit.scaled([float(np.median(each))]),
                "y": [0.5],
                "marker": marker(side, 10),
                "showlegend": False,
                "hovertemplate": f"{SIDES[side]}: median %{{x}} {unit.name}<extra></extra>",
            }
        )
    medians = (f"{format_duration(np.median(each))} in the {SIDES[side]}" for side, each in enumerate(times))
    ranges = (f"{format_duration(each.min())} to {format_duration(each.max())}" for each in times)
    alt = f"The median step takes {' and '.join(medians)}; they range from {' and from '.join(ranges)}."
    layout = {
        "xaxis": unit.axis("Time of a step"),
        "yaxis": axis("Share of the steps", range=[0, 1.02], tickformat=".0%"),
    }
    return Chart("Distribution of step times", alt, data, layout, height=340)


def _histogram(times: Sequence[Values], unit: TimeUnit) -> Chart:
    """Shares of the steps in the same bins for both."""
    edges = bins_of_both(times)
    data = []
    for side, each in enumerate(times):
        shares = np.histogram(each, edges)[0] / len(each)
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": SIDES[side],
                "x": unit.scaled(edges, 6),
                "y": rounded([*shares, shares[-1]]),
                "line": line(side, shape="hv", dash="solid" if side == 0 else "dash"),
                "fill": "tozeroy",
                "hovertemplate": f"{SIDES[side]}: %{{y:.0%}} of steps, from %{{x}} {unit.name}<extra></extra>",
            }
        )
    layout = {
        "xaxis": unit.axis("Time of a step"),
        "yaxis": axis("Share of the steps", rangemode="tozero", tickformat=".0%"),
    }
    width = format_duration(float(edges[1] - edges[0]))
    common = (_commonest(each, edges, side) for each, side in zip(times, SIDES, strict=True))
    alt = f"Bins of {width}, the same for both. {' '.join(common)}"
    return Chart("Histogram of step times", alt, data, layout, height=340)


def bins_of_both(times: Sequence[Values]) -> Values:
    """Edges of equally wide bins that hold all steps of both runs; their number follows the shorter run (Rice)."""
    low, high = min(float(each.min()) for each in times), max(float(each.max()) for each in times)
    if low == high:
        return np.array([low * 0.98, high * 1.02])
    return np.linspace(low, high, min(_BINS, 2 * ceil(2 * min(map(len, times)) ** (1 / 3))) + 1)


def _commonest(times: Values, edges: Values, side: str) -> str:
    counts = np.histogram(times, edges)[0]
    at = int(np.argmax(counts))
    within = f"{format_duration(float(edges[at]))} to {format_duration(float(edges[at + 1]))}"
    return f"The fullest bin of the {side} is {within}, with {format_share(counts[at] / len(times))} of its steps."


def _over_the_run(times: Sequence[Values], unit: TimeUnit) -> Chart:
    data = []
    for side, each in enumerate(times):
        kept = keep_extremes(each, _MOST)
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": SIDES[side],
                "x": (kept + 1).tolist(),
                "y": unit.scaled(each[kept]),
                "marker": marker(side, 6),
                "line": line(side, width=1),
                "hovertemplate": f"{SIDES[side]}, step %{{x}}: %{{y}} {unit.name}<extra></extra>",
            }
        )
    longest = (
        f"step {int(np.argmax(each)) + 1} of {len(each):,} in the {SIDES[side]} ({format_duration(each.max())})"
        for side, each in enumerate(times)
    )
    layout = {
        "xaxis": axis("Complete steps, in the order of each run"),
        "yaxis": unit.axis("Time", rangemode="tozero"),
    }
    alt = f"The longest steps: {', '.join(longest)}."
    return Chart("Step times over the run", alt, data, layout, height=300)


def _about(changes: Changes) -> list[Part]:
    """Where a point is more than one step: of several devices, or of neighbours in a long run."""
    words: list[Part] = []
    for side, steps in enumerate((changes.base_steps, changes.candidate_steps)):
        points = len(changes.step_times[side])
        if steps > points:
            mean = f"Each of the {points:,} points of the {SIDES[side]} is a mean of {steps / points:.3g} steps"
            words.append(
                Words(
                    f"{mean}: of several devices, or of neighbouring cycles of a long run. Quantiles are of points.",
                    "note",
                )
            )
    return words


SECTION = PageSection("step_times", build, after="losses")
