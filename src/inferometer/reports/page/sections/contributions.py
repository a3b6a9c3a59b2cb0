"""What makes the step of the candidate another length than the base's: a waterfall, the classes, and every line.

Bars are the lines of the comparison: from the base's step through each change to the candidate's, nothing left out and
nothing counted twice. Where the runs can't be compared, their kernel families stand side by side instead.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from inferometer.analyses.compare.changes import Changes
from inferometer.analyses.compare.class_ratios import ClassRatio
from inferometer.analyses.compare.comparison import Comparison
from inferometer.analyses.compare.contributions import Contribution
from inferometer.analyses.compare.families import FamilyLine
from inferometer.analyses.compare.sampling_units import REMAINDERS
from inferometer.reports.page.blocks import Block, Chart, Grid, Part
from inferometer.reports.page.drawing import REST_COLOR, TimeUnit, axis, color, cut, distinct, vertical_line
from inferometer.reports.page.look import PageData
from inferometer.reports.page.sampling import rounded
from inferometer.reports.page.section import PageSection
from inferometer.reports.views.comparison import compare_sections, every_line
from inferometer.reports.views.layout import Field, Section
from inferometer.units import format_duration, format_signed_duration

MOST_BARS = 12
"""Functions with a bar of their own in the waterfall."""

MOST_FAMILIES = 16

_TITLE = "What changed"
_LACKING = "Complete steps or sums of kernels in both runs: the {side} has only counters, or no complete step."
_EXACT = 15  # digits: the bars of a waterfall add up, so they are not rounded
_ZOOM = 0.25  # changes within so much of the step are looked at closely
_TEXT_ROOM = 0.32  # of the axis, for the numbers after the bars on a narrow screen
_FIELDS = (
    Field("delta_ns", "Change", "ns"),
    Field("low_ns", "95 % from", "ns"),
    Field("high_ns", "95 % to", "ns"),
    Field("base_ns", "Base", "ns"),
    Field("candidate_ns", "Candidate", "ns"),
    Field("base_calls", "Base calls", "number"),
    Field("candidate_calls", "Candidate calls", "number"),
    Field("kind", "Kind", "text"),
    Field("class", "Class", "text"),
    Field("name", "Function", "name"),
    Field("basis", "One line because of", "text"),
)
_SUMS = ("delta_ns", "base_ns", "candidate_ns")
_BESIDE = "They run in parallel with the device, on several threads at once: their times are not added to the step."


def build(look: PageData) -> Block | None:
    """The waterfall, classes of functions and tables of lines; or the families of runs that can't be compared."""
    found = look.comparison
    if found is None:
        return None
    if found.comparable.stops:
        return Block("contributions", "Kernel families of both runs", [*_families(found)])
    changes = found.changes
    if not (changes.base_steps and changes.candidate_steps):
        side = "candidate" if changes.base_steps else "base"
        return Block("contributions", _TITLE, lacking=_LACKING.format(side=side))
    return Block("contributions", _TITLE, [_waterfall(changes), *_classes(changes), *_tables(found)])


class Bar(msgspec.Struct, frozen=True):
    """One bar of the waterfall: a change of the step in ns, or with `measure` "absolute" or "total" a step."""

    label: str
    ns: int
    about: str
    measure: str = "relative"


def waterfall_bars(changes: Changes) -> list[Bar]:
    """From the base's step to the candidate's: the changes between them add up exactly.

    The functions that changed most, beyond noise, and what the device did besides functions, the largest first. Then
    the rest of those that changed, together; those that are the same within noise; what rounding leaves unexplained.
    """
    added = [line for line in changes.contributions if line.added]
    besides = [line for line in added if line.cls in REMAINDERS]
    functions = [line for line in added if line.cls not in REMAINDERS]
    changed = _by_size([line for line in functions if line.kind != "same"])
    same = [line for line in functions if line.kind == "same"]
    shown, rest = changed[:MOST_BARS], changed[MOST_BARS:]
    bars = [Bar("base: a step", changes.base_step_ns, "", "absolute")]
    bars += [Bar(cut(line.label), line.delta_ns, _about(line)) for line in _by_size([*shown, *besides])]
    if rest:
        bars.append(Bar(f"{len(rest):,} more that changed", _sum(rest), "smaller changes beyond noise, together"))
    if same:
        bars.append(Bar(f"{len(same):,} the same within noise", _sum(same), "none of them differs beyond noise"))
    if changes.unexplained_ns:
        bars.append(Bar("unexplained", changes.unexplained_ns, "what rounding each line to a nanosecond leaves"))
    return [*bars, Bar("candidate: a step", changes.candidate_step_ns, "", "total")]


def _by_size(lines: Sequence[Contribution]) -> list[Contribution]:
    return sorted(lines, key=lambda line: -abs(line.delta_ns))


def _sum(lines: Sequence[Contribution]) -> int:
    return sum(line.delta_ns for line in lines)


def _about(line: Contribution) -> str:
    times = f"{format_duration(line.base_ns)} -> {format_duration(line.candidate_ns)}, {line.kind}"
    if line.interval_ns is None:
        return f"{line.name}: {times}, spread unknown"
    low, high = map(format_duration, line.interval_ns)
    return f"{line.name}: {times}, 95 %: {low} to {high}"


def _waterfall(changes: Changes) -> Chart:
    bars = waterfall_bars(changes)
    unit = TimeUnit.of(max(changes.base_step_ns, changes.candidate_step_ns))
    data = {
        "type": "waterfall",
        "orientation": "h",
        "y": distinct([bar.label for bar in bars]),
        "x": unit.scaled([bar.ns for bar in bars], _EXACT),
        "measure": [bar.measure for bar in bars],
        "text": [
            format_duration(bar.ns) if bar.measure != "relative" else format_signed_duration(bar.ns) for bar in bars
        ],
        "textposition": "outside",
        "cliponaxis": False,
        "customdata": [bar.about or format_duration(bar.ns) for bar in bars],
        "hovertemplate": "%{y}<br>%{text}<br>%{customdata}<extra></extra>",
        "increasing": {"marker": {"color": "var(--bad)"}},
        "decreasing": {"marker": {"color": "var(--good)"}},
        "totals": {"marker": {"color": color(0)}},
        "connector": {"line": {"color": REST_COLOR, "width": 1, "dash": "dot"}},
        "showlegend": False,
    }
    low, high = axis_range(bars)
    begins = f" (the axis begins at {format_duration(low)})" if low else ""
    layout = {
        "xaxis": unit.axis(f"Time of a step{begins}", range=unit.scaled([low, high], 6)),
        "yaxis": {"autorange": "reversed", "automargin": True, "type": "category"},
    }
    return Chart("From the base's step to the candidate's", _alt(changes, bars), [data], layout, 130 + 28 * len(bars))


def axis_range(bars: Sequence[Bar]) -> tuple[float, float]:
    """Where the axis begins and ends, ns: at 0, unless the changes are a small part of the step."""
    levels = [bars[0].ns]
    for bar in bars[1:-1]:
        levels.append(levels[-1] + bar.ns)
    low, high = min(levels), max(levels)
    room = 0.15 * (high - low)
    if high - low >= _ZOOM * high:
        return min(0.0, low - room), high + _TEXT_ROOM * high
    room = room or 0.01 * high or 1.0
    return max(0.0, low - 2 * room), high + 2 * room + _TEXT_ROOM * (high - low)


def _alt(changes: Changes, bars: Sequence[Bar]) -> str:
    steps = f"{format_duration(changes.base_step_ns)} to {format_duration(changes.candidate_step_ns)}"
    moved = [bar for bar in bars if bar.measure == "relative" and bar.ns]
    if not moved:
        return f"The step goes from {steps}: no line differs."
    largest = max(moved, key=lambda bar: abs(bar.ns))
    part = f"{largest.label}: {format_signed_duration(largest.ns)}"
    return f"The step goes from {steps}; the largest part of that is {part}."


def _classes(changes: Changes) -> Iterator[Chart]:
    """How much longer one call takes, by class: whatever a step is, and whatever it calls."""
    classes = changes.domain.classes
    if not classes:
        return
    ratios = [1.0, *(one.ratio for one in classes)]
    ends = [end for one in classes if one.interval for end in one.interval]
    low = max(min([*ratios, *ends]), 0.5 * min(ratios))  # what is known badly must not press the rest together
    high = min(max([*ratios, *ends]), 1.5 * max(ratios))
    room = 0.05 * (high - low) or 0.05
    layout = {
        "xaxis": axis("Time of a call, candidate over base", range=rounded([low - room, high + room])),
        "yaxis": {"autorange": "reversed", "automargin": True, "type": "category"},
        "shapes": [vertical_line(1.0, width=1)],
    }
    alt = f"{_slowed(classes)} 1 is as before."
    yield Chart("How calls changed, by class of functions", alt, [_ratios(classes)], layout, 130 + 40 * len(classes))


def _slowed(classes: Sequence[ClassRatio]) -> str:
    most = next((one for one in classes if one.is_slower), None)
    first = most or classes[0]
    within = f"95 %: {first.interval[0]:.3f} to {first.interval[1]:.3f}" if first.interval else "spread unknown"
    ratio = f"{first.ratio:.3f} times as long ({within})"
    if most is None:
        return f"Calls of no class of functions slowed beyond noise; those of {first.cls} take {ratio}."
    return f"Calls of {first.cls} functions slowed most: they take {ratio}."


def _ratios(classes: Sequence[ClassRatio]) -> dict[str, Any]:
    spans = [one.interval or (one.ratio, one.ratio) for one in classes]
    return {
        "type": "scatter",
        "mode": "markers",
        "y": [one.cls for one in classes],
        "x": rounded(one.ratio for one in classes),
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": rounded(high - one.ratio for one, (_, high) in zip(classes, spans, strict=True)),
            "arrayminus": rounded(one.ratio - low for one, (low, _) in zip(classes, spans, strict=True)),
            "color": color(1),
        },
        "marker": {"color": color(1), "size": 10, "symbol": "diamond"},
        "customdata": [f"{one.functions:,} functions, {one.share:.3g} of the base's step" for one in classes],
        "hovertemplate": "%{y}: %{x} times<br>%{customdata}<extra></extra>",
        "showlegend": False,
    }


def _tables(found: Comparison) -> Iterator[Part]:
    frame = every_line(found).frame
    for of_step, title, notes in ((True, "All lines of the step", ()), (False, "Functions of the host", (_BESIDE,))):
        rows = frame.filter((frame["added"] == "yes") == of_step)
        if rows.height:
            table = rows.with_columns(rows["base_calls"].round(2), rows["candidate_calls"].round(2))
            grid = Section(title, _FIELDS, table, notes)
            yield Grid(grid, group="class" if of_step else None, sums=_SUMS if of_step else ())


def _families(found: Comparison) -> Iterator[Part]:
    shown = found.families[:MOST_FAMILIES]
    if shown:
        yield _family_chart(shown, found)
    yield Grid(compare_sections(found)[0], sums=("base_ns", "candidate_ns"))


def _family_chart(shown: Sequence[FamilyLine], found: Comparison) -> Chart:
    """An axis for each run: a bar of the one is not to be measured against one of the other."""
    data, layout = [], {"yaxis": {"autorange": "reversed", "automargin": True, "type": "category"}}
    sides = (("base", [line.base_ns for line in shown]), ("candidate", [line.candidate_ns for line in shown]))
    for side, (name, times) in enumerate(sides):
        unit = TimeUnit.of(max(times))
        anchor = "x" if side == 0 else "x2"
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": name,
                "y": [line.name for line in shown],
                "x": unit.scaled(times),
                "xaxis": anchor,
                "marker": {"color": color(side)},
                "hovertemplate": f"{name}, %{{y}}: %{{x}} {unit.name}<extra></extra>",
            }
        )
        layout["xaxis" if side == 0 else "xaxis2"] = unit.axis(name.capitalize(), domain=[[0, 0.47], [0.53, 1]][side])
    before = max(found.families, key=lambda line: line.base_ns)
    after = max(found.families, key=lambda line: line.candidate_ns)
    alt = (
        f"Most kernel time of the base is in {before.name} ({format_duration(before.base_ns)}), of the candidate in "
        f"{after.name} ({format_duration(after.candidate_ns)}). Each run has an axis of its own."
    )
    return Chart("Kernel time by family, as recorded", alt, data, layout, 140 + 26 * len(shown))


SECTION = PageSection("contributions", build, after="step_times")
