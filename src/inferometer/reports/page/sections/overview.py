"""At a glance: how busy the devices are, why they wait, which kernels take most, how long a step takes; one bar of it.

Numbers of several devices are of all their windows together. What a file can't show is said in the number's place.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import quote

import msgspec
import numpy as np
import polars as pl

from inferometer.analyses.steps.table import StepTable
from inferometer.analyses.steps.usual import UsualSteps, find_usual
from inferometer.analyses.timeline.budget import COMMUNICATION, COMPUTE, COPIES, IDLE, SEVERAL, describe_part
from inferometer.analyses.timeline.timeline import Timeline
from inferometer.analyses.timeline.work import place_name
from inferometer.reports.page.beside import beside
from inferometer.reports.page.blocks import Block, Number, Numbers, Part, Slice, Stack, Words
from inferometer.reports.page.drawing import color
from inferometer.reports.page.look import PageData, RunData
from inferometer.reports.page.section import PageSection
from inferometer.reports.page.shades import COLLECTIVE
from inferometer.reports.page.shades import COPIES as COPIES_SHADE
from inferometer.units import format_counted, format_duration, format_share

TITLE: Final = "At a glance"
NONE: Final = "-"

_SMALL = 0.005  # of the windows: smaller parts are one slice
_CAUSES = 3  # named in the number; all of them are in the bar
_NO_LAUNCHES = "The file holds no single launches."
_SHADES = {SEVERAL: color(7), COPIES: f"var({COPIES_SHADE})", IDLE: "var(--line)"}
_ORDER = (COMPUTE, SEVERAL, COMMUNICATION, COPIES, IDLE)


def build(look: PageData) -> Block:
    """Four numbers and the bar; of two runs, the base's first."""
    if look.candidate is None:
        return Block("overview", TITLE, [*_parts(look.base)])
    sides = ([*_parts(run, is_alone=False)] for run in look.runs)
    return Block("overview", TITLE, [*beside(*sides)])


def _parts(run: RunData, *, is_alone: bool = True) -> Iterator[Part]:
    links = _Links(is_alone)
    timeline = None if run.timeline is None or run.timeline.devices.is_empty() else run.timeline
    numbers = [_busy(timeline, links), _idle(timeline, links), _family(run, links), _step(run.steps, links)]
    yield Numbers([number for number in numbers if number.value != NONE])
    yield from _unknown([number for number in numbers if number.value == NONE])
    budget = run.first.findings.budget
    if budget["time_ns"].sum():
        yield _stack(budget, run.shades, links)


def _unknown(numbers: Sequence[Number]) -> Iterator[Words]:
    """What the file can't say, and why."""
    for why in dict.fromkeys(number.about for number in numbers):
        labels = ", ".join(number.label for number in numbers if number.about == why)
        yield Words(f"{labels}: {why}", "note")


class _Links(msgspec.Struct, frozen=True):
    """Addresses of sections. Of two runs each section is about both: an address can't filter one's table alone."""

    is_alone: bool
    timeline: str = "#timeline"
    kernels: str = "#kernels"
    steps: str = "#steps"

    def family(self, name: str) -> str:
        """The table of kernels, with this family alone where the page is about one run."""
        return f"{self.kernels}?filter={quote(name)}" if self.is_alone else self.kernels


def _busy(timeline: Timeline | None, links: _Links) -> Number:
    if timeline is None:
        return Number("Busy", NONE, _NO_LAUNCHES)
    devices = timeline.devices
    window_ns, idle_ns = int(devices["window_ns"].sum()), int(devices["idle_ns"].sum())
    about = f"{format_duration(window_ns - idle_ns)} of {format_duration(window_ns)}{_whose(devices)}."
    share = format_share((window_ns - idle_ns) / window_ns) if window_ns else NONE
    return Number("Busy", share, about, links.timeline)


def _whose(devices: pl.DataFrame) -> str:
    """Of which device; of several, which is the least busy."""
    least = devices.sort("busy_share", nulls_last=True, maintain_order=True).row(0, named=True)
    place = place_name(least["rank"], least["device"])
    if devices.height == 1:
        return f", the window of {place}"
    return (
        f", the windows of {devices.height:,} devices together; "
        f"the least busy is {place} with {format_share(least['busy_share'])}"
    )


def _idle(timeline: Timeline | None, links: _Links) -> Number:
    if timeline is None:
        return Number("Idle", NONE, _NO_LAUNCHES)
    window_ns, idle_ns = (int(timeline.devices[column].sum()) for column in ("window_ns", "idle_ns"))
    share = format_share(idle_ns / window_ns) if window_ns else NONE
    if not idle_ns:
        return Number("Idle", share, "From the first launch to the end of the last, there is no gap.", links.timeline)
    causes = timeline.causes.group_by("cause").agg(pl.col("idle_ns").sum())
    causes = causes.sort("idle_ns", "cause", descending=[True, False])
    named = [f"{format_duration(ns)} {_cause(cause)}" for cause, ns in causes.head(_CAUSES).iter_rows()]
    more = format_counted(causes.height - _CAUSES, "more cause") if causes.height > _CAUSES else ""
    return Number("Idle", share, f"{'; '.join(filter(None, [*named, more]))}.", links.timeline)


def _cause(name: str) -> str:
    return describe_part(IDLE, name).removeprefix("idle: ")


def _family(run: RunData, links: _Links) -> Number:
    families, total_ns = run.families, run.kernels.total_ns
    if families.is_empty() or not total_ns:
        return Number("Largest family", NONE, "The file holds neither launches nor sums by kernel.")
    name, family_ns, count = families.row(0)
    launches = "" if count is None else f", {count:,} {'launch' if count == 1 else 'launches'}"
    about = f"{format_duration(family_ns)} of {format_duration(total_ns)} kernel time{launches}."
    return Number(f"Largest family: {name}", format_share(family_ns / total_ns), about, links.family(name))


def _step(table: StepTable | None, links: _Links) -> Number:
    """The median of the phase with the most steps that may be used, and how far they spread."""
    if table is None:
        return Number("Step", NONE, "No steps are recorded, marked or found.")
    usual = find_usual(table)
    if usual.median_ns is None:
        return Number("Step", NONE, "Of none of the steps the whole time is known.")
    return Number("Step", format_duration(usual.median_ns), _spread(usual), links.steps)


def _spread(usual: UsualSteps) -> str:
    times, steps = usual.time_ns, usual.steps
    noun = "step" if steps == 1 else "steps"
    of = f"{noun} of unknown phase" if usual.phase is None else f"{usual.phase} {noun}"
    if len(times) == 1:
        few = f"There is one {of}" if steps == 1 else f"Of {steps:,} {of} one can be used"
        return f"{few}: the spread isn't known."
    mad = format_duration(float(np.median(np.abs(times - np.median(times)))))
    p95 = format_duration(float(np.quantile(times, 0.95)))
    which = f"{len(times):,}" if len(times) == steps else f"{len(times):,} of {steps:,}"
    work = ", until their device work has ended" if usual.has_work else ""
    return f"Median of {which} {of}{work}; MAD {mad}, 95th percentile {p95}."


def _stack(budget: pl.DataFrame, shades: Mapping[str, str], links: _Links) -> Stack:
    whole_ns = int(budget["time_ns"].sum())
    parts = budget.group_by("sort", "name").agg(pl.col("time_ns").sum())
    order = pl.col("sort").replace_strict({sort: n for n, sort in enumerate(_ORDER)}, return_dtype=pl.Int64)
    parts = parts.sort(order, "time_ns", "name", descending=[False, True, False]).filter(pl.col("time_ns") > 0)
    is_small = pl.col("time_ns") < _SMALL * whole_ns
    small = parts.filter(is_small)
    shown = parts if small.height < 2 else parts.filter(~is_small)
    slices = [
        Slice(describe_part(sort, name), _text(ns, whole_ns), ns / whole_ns, _shade(sort, name, shades), link)
        for sort, name, ns in shown.iter_rows()
        for link in [links.family(name) if sort == COMPUTE and name else links.timeline]
    ]
    if small.height > 1:
        ns = int(small["time_ns"].sum())
        slices.append(Slice(f"{small.height} smaller parts", _text(ns, whole_ns), ns / whole_ns, color(7)))
    places = budget.select("rank", "device").unique().height
    of = "the device's window" if places == 1 else f"the windows of {places:,} devices, summed"
    return Stack("Where the time went", f"The parts add up to {format_duration(whole_ns)}: {of}.", slices)


def _text(ns: int, whole_ns: int) -> str:
    return f"{format_duration(ns)}, {format_share(ns / whole_ns)}"


def _shade(sort: str, name: str | None, shades: Mapping[str, str]) -> str:
    """The colour that a family has on the whole page."""
    family = COLLECTIVE if sort == COMMUNICATION else name
    if sort in (COMPUTE, COMMUNICATION):
        return f"var({shades[family]})" if family is not None and family in shades else "var(--warning)"
    return _SHADES[sort]


SECTION = PageSection("overview", build, after="verdict")
