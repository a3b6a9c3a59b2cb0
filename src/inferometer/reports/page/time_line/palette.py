"""The page's colours for sorts of events: device work in the strong ones, by time; host work by what it means."""

from collections.abc import Mapping, Sequence
from typing import Final

from inferometer.analyses.timeline.lanes.categories import family_words
from inferometer.analyses.timeline.lanes.events import Category
from inferometer.reports.page.shades import COMMUNICATION, COPIES, REST, family_shades

_FIXED: Final = {
    "communication": COMMUNICATION,
    "copies and sets": COPIES,
    "calls that launch": "--series-7",
    "calls that launch a graph": "--series-1",
    "calls that copy": "--series-3",
    "calls that wait": "--series-5",
    "calls that allocate": "--series-6",
    "other calls": "--series-8",
    "modules": "--series-4",
    "Python functions": "--series-8",
    "ops": "--series-7",
    "system events": "--series-8",
    "prefill steps": "--series-5",
    "mixed steps": "--series-6",
}
_HOST: Final = "--series-4"
_AROUND: Final = frozenset({"range", "frame", "step", "op"})
_PALE: Final = 0.5


def category_colors(categories: Sequence[Category], shades: Mapping[str, str] | None = None) -> list[tuple[str, float]]:
    """The name of a CSS variable for each, and how much of the paper's colour is mixed in.

    What is around others is pale.

    Args:
        categories: Sorts of events, as a time line has them.
        shades: Colours of families of kernels, as the page has them elsewhere; else the longest have the strong ones.
    """
    kernels = [each for each in categories if each.noun in ("kernel", "graph") and each.name not in _FIXED]
    kernels.sort(key=lambda each: (-each.summed_ns, each.name))
    own = family_shades(each.name for each in kernels)
    if shades is not None:
        known = {family_words(family): shade for family, shade in shades.items()}
        own = {name: known.get(name, REST) for name in own}
    names = [
        _FIXED.get(each.name) or own.get(each.name) or (REST if each.noun == "step" else _HOST) for each in categories
    ]
    return [(name, _PALE if each.noun in _AROUND else 0.0) for name, each in zip(names, categories, strict=True)]
