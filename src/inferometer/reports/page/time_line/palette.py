"""The page's colours for sorts of events: device work in the strong ones, by time; host work by what it means."""

from collections.abc import Sequence
from typing import Final

from inferometer.analyses.timeline.lanes.events import Category

_FIXED: Final = {
    "communication": "--series-2",
    "copies and sets": "--series-3",
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
_DEVICE: Final = ("--series-1", "--series-4", "--series-5", "--series-6", "--series-7")
_REST: Final = "--series-8"
_HOST: Final = "--series-4"
_AROUND: Final = frozenset({"range", "frame", "step", "op"})
_PALE: Final = 0.5


def category_colors(categories: Sequence[Category]) -> list[tuple[str, float]]:
    """The name of a CSS variable for each, and how much of the paper's colour is mixed in.

    Families of kernels have the colours that tell most apart, the longest first. What is around others is pale.
    """
    kernels = [each for each in categories if each.noun in ("kernel", "graph") and each.name not in _FIXED]
    kernels.sort(key=lambda each: (-each.summed_ns, each.name))
    own = {each.name: _DEVICE[i] if i < len(_DEVICE) else _REST for i, each in enumerate(kernels)}
    names = [
        _FIXED.get(each.name) or own.get(each.name) or (_REST if each.noun == "step" else _HOST) for each in categories
    ]
    return [(name, _PALE if each.noun in _AROUND else 0.0) for name, each in zip(names, categories, strict=True)]
