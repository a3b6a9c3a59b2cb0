"""Windows of a time line that is kept as files, packed for the viewer. Served by `guarded.py`; some stay open."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from inferometer.analyses.timeline.lanes.events import NO_TIE, Lanes, Numbers
from inferometer.analyses.timeline.lanes.levels import Slices
from inferometer.analyses.timeline.lanes.window import Excerpt, cut_window
from inferometer.reports.page.time_line.fit import thin_samples
from inferometer.reports.page.time_line.pack import pack
from inferometer.reports.page.time_line.palette import category_colors
from inferometer.reports.serve.work.line_files import KeptLevels
from inferometer.reports.serve.work.line_search import find_names, find_next

_FIRST_PIXELS = 4_000  # of the whole time line, as the viewer begins with it
_MOST_PIXELS = 1 << 16
_MOST_OPEN = 4
_OPEN: "OrderedDict[str, KeptLevels]" = OrderedDict()


def first(folder: str) -> bytes:
    """The whole time line as a screen shows it, with its counters, marks and colours."""
    levels = _levels(folder)
    excerpt = cut_window(levels, 0, max(1, levels.lanes.length_ns), _FIRST_PIXELS)
    thinned = thin_samples(levels.lanes)
    more = {"colors": category_colors(levels.lanes.categories), "marks": list(levels.marks)}
    return _packed(excerpt, more, replace(thinned))


def rows(folder: str, lanes: Sequence[int], start_ns: int, end_ns: int, pixels: int) -> bytes:
    """What there is to see of these lanes in a window: single events where they are wide enough, slices of others."""
    levels = _levels(folder)
    pixels = min(max(pixels, 1), _MOST_PIXELS)
    excerpt = cut_window(levels, start_ns, max(end_ns, start_ns + 1), pixels, lanes)
    return _packed(excerpt, {}, replace(levels.lanes, samples=()))


def sums(folder: str, start_ns: int, end_ns: int) -> list[tuple[int, int, int, int]]:
    """How many events of every lane and category begin from `start_ns` to `end_ns`, and their time within."""
    lanes = _levels(folder).lanes
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for row, lane in enumerate(lanes.row_lane.tolist()):
        first, last = int(lanes.row_at[row]), int(lanes.row_at[row + 1])
        low, high = first + np.searchsorted(lanes.start_ns[first:last], (start_ns, end_ns))
        reached = max(first, low - 1)  # of those before, only the last can reach into the range
        start, dur = lanes.start_ns[reached:high], lanes.dur_ns[reached:high]
        within = np.maximum(0, np.minimum(start + dur, end_ns) - np.maximum(start, start_ns))
        category = lanes.name_category[lanes.name[reached:high]]
        for each in np.unique(category[(start >= start_ns) | (within > 0)]).tolist():
            own = category == each
            count, ns = found.get((lane, each), (0, 0))
            found[lane, each] = count + int((own & (start >= start_ns)).sum()), ns + int(within[own].sum())
    return [(*key, *value) for key, value in found.items()]


def found(folder: str, words: str, at_ns: int, row: int, by: int) -> bytes:
    """The next event whose name has the words, packed: `by` 1 or -1; 0 for their number alone, as `total`."""
    levels = _levels(folder)
    lanes = levels.lanes
    names = find_names(lanes, words)
    total = int(np.bincount(lanes.name, minlength=len(names))[names].sum())
    place = find_next(lanes, names, at_ns, row, by) if by and total else None
    single = np.array([] if place is None else [place], dtype=np.int64)
    excerpt = Excerpt(lanes, np.zeros(len(lanes.lanes), dtype=np.int64), single, Slices.none())
    return _packed(excerpt, {"total": total}, replace(lanes, samples=()))


def _levels(folder: str) -> KeptLevels:
    """As it was opened last; of a time line that was made anew, the new one."""
    key = f"{folder} {(Path(folder) / 'about.json').stat().st_mtime_ns}"
    if key not in _OPEN:
        _OPEN[key] = KeptLevels(Path(folder))
        if len(_OPEN) > _MOST_OPEN:
            _OPEN.popitem(last=False)
    _OPEN.move_to_end(key)
    return _OPEN[key]


def _packed(excerpt: Excerpt, more: Mapping[str, Any], lanes: Lanes) -> bytes:
    """Packed as if its events were all that there are, with their places and those of their calls in the whole."""
    single = excerpt.single
    part = replace(
        lanes,
        row_at=np.searchsorted(single, lanes.row_at),
        start_ns=lanes.start_ns[single],
        dur_ns=lanes.dur_ns[single],
        name=lanes.name[single],
        tie=np.full(len(single), NO_TIE, dtype=np.int64),
    )
    places = {"places": single.tolist(), "calls": lanes.tie[single].tolist()}
    return pack(_moved(excerpt, part), more={**more, **places})


def _moved(excerpt: Excerpt, part: Lanes) -> Excerpt:
    own: Numbers = np.arange(len(excerpt.single))
    return Excerpt(part, excerpt.levels, own, excerpt.slices)


SERVED: Mapping[str, Callable[..., Any]] = {"first": first, "rows": rows, "sums": sums, "found": found}
