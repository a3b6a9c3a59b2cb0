"""The steps of two runs side by side: how long they take, as a distribution and over the run."""

from collections.abc import Sequence

import numpy as np

from inferometer.analyses.compare.changes import Changes
from inferometer.reports.page.blocks import MOST_POINTS, Block, Chart, Part, Words
from inferometer.reports.page.drawing import TimeUnit, axis
from inferometer.reports.page.look import SIDES, PageData
from inferometer.reports.page.sampling import Values, distribution, keep_extremes, rounded
from inferometer.reports.page.section import PageSection
from inferometer.reports.page.sections._two_runs import NOT_COMPARABLE, line, marker
from inferometer.units import format_duration

_TITLE = "Step times of both runs"
_NO_CYCLES = "Single steps in both runs: {which} only as a whole, as one window or as sums of all its steps."
_MOST = MOST_POINTS // len(SIDES)


def build(look: PageData) -> Block | None:
    """A distribution and a strip; without single steps in both runs, what lacks."""
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
    parts: list[Part] = [_distribution(times, unit), _over_the_run(times, unit)]
    return Block("step_times", _TITLE, [*parts, *_about(found.changes)])


def _distribution(times: Sequence[Values], unit: TimeUnit) -> Chart:
    data = []
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
    medians = (f"{format_duration(np.median(each))} in the {SIDES[side]}" for side, each in enumerate(times))
    ranges = (f"{format_duration(each.min())} to {format_duration(each.max())}" for each in times)
    alt = f"The median step takes {' and '.join(medians)}; they range from {' and from '.join(ranges)}."
    layout = {
        "xaxis": unit.axis("Time of a step"),
        "yaxis": axis("Share of the steps", range=[0, 1.02], tickformat=".0%"),
    }
    return Chart("Distribution of step times", alt, data, layout, height=340)


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
            words.append(Words(f"{mean}: of several devices, or of neighbouring cycles of a long run.", "note"))
    return words


SECTION = PageSection("step_times", build, after="losses")
