"""Steps of two runs as the page's viewer reads them: boxes as whole numbers, names once.

Of a box: the place of its stream in `streams`, how long after the box before it on that stream it begins (of the first:
after the step's start), how long it is, and the place of its kernel in `kernels`; a merged one has -1 there, and its
number of launches and their summed time in `merged`, by its place. Times are ns. A kernel is its short name, its whole
name, the place of its family in `families`, and the number of its match with the other run, -1 where it has none.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from inferometer.analyses.compare.shown_steps import ShownRun, ShownStep, ShownSteps, kernels_of
from inferometer.analyses.timeline.work import place_name
from inferometer.errors import clean
from inferometer.names import decode
from inferometer.reports.page.drawing import cut
from inferometer.reports.page.figures import without_surrogates

_LONGEST = 500  # characters of a name
_NONE = -1


def lines_data(shown: ShownSteps, heads: Sequence[str]) -> dict[str, Any]:
    """What the viewer reads, of both runs."""
    runs = shown.base, shown.candidate
    kernels = [kernels_of(run.steps) for run in runs]
    families = _families(kernels)
    return {
        "per": shown.per,
        "families": families,
        "sides": [
            _side(*each, families) for each in zip(heads, runs, kernels, shown.groups, strict=True)
        ],
    }  # fmt: skip


def lines_json(data: Mapping[str, Any]) -> str:
    """As JSON that can stand inside a `<script>`: ASCII, without a bracket that would end it."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e")


def _families(kernels: Iterable[Mapping[str, int]]) -> list[str]:
    """Those with the most time first, so that they have colours of their own."""
    sums: Counter[str] = Counter()
    for run in kernels:
        for kernel, time_ns in run.items():
            sums[decode(kernel).family] += time_ns
    return [family for family, _ in sorted(sums.items(), key=lambda item: (-item[1], item[0]))]


def _side(
    head: str, run: ShownRun, kernels: Mapping[str, int], groups: Mapping[str, int], families: Sequence[str]
) -> dict[str, Any]:
    places = {kernel: place for place, kernel in enumerate(kernels)}
    several = len({step.place for step in run.steps}) > 1
    return {
        "head": head,
        "of": run.of,
        "median": run.median,
        "slowest": run.slowest,
        "fastest": run.fastest,
        "kernels": [_kernel(kernel, groups, families) for kernel in kernels],
        "steps": [_step(step, places, several=several) for step in run.steps],
    }


def _kernel(kernel: str, groups: Mapping[str, int], families: Sequence[str]) -> list[Any]:
    known = decode(kernel)
    whole = without_surrogates(clean(kernel[:_LONGEST]))
    short = without_surrogates(clean(cut(known.short_name)))
    return [short, whole, families.index(known.family), groups.get(kernel, _NONE)]


def _step(step: ShownStep, places: Mapping[str, int], *, several: bool) -> dict[str, Any]:
    boxes: list[int] = []
    merged: dict[str, list[int]] = {}
    streams: dict[str, int] = {}
    ends: dict[str, int] = {}
    for row, (stream, start_ns, dur_ns, kernel, launches, summed_ns) in enumerate(step.boxes.iter_rows()):
        name = "-" if stream is None else stream
        place = streams.setdefault(name, len(streams))
        boxes += (place, start_ns - ends.get(name, 0), dur_ns, _NONE if kernel is None else places[kernel])
        ends[name] = start_ns + dur_ns
        if kernel is None:
            merged[str(row)] = [launches, summed_ns]
    return {
        "name": f"{step.number}, {place_name(*step.place)}" if several else f"{step.number}",
        "dur": step.dur_ns,
        "idle": step.idle_ns,
        "streams": [without_surrogates(clean(name[:_LONGEST])) for name in streams],
        "boxes": boxes,
        "merged": merged,
    }
