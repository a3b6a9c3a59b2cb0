"""Why a trace shows no kernels or no launches at all, and what it has instead: one sentence for every analysis."""

from collections.abc import Mapping
from typing import Literal

from inferometer.trace.trace import Trace
from inferometer.units import format_list

_NONE = "No {} in the file."
_LISTED = 5
_LONGEST_NAME = 60
_WORDS = {  # of each kind of launch: one and several
    "kernel": ("kernel", "kernels"),
    "memcpy": ("copy", "copies"),
    "memset": ("memory set", "memory sets"),
    "graph": ("graph launch recorded whole", "graph launches recorded whole"),
}


def say_why_none(trace: Trace, what: Literal["kernels", "launches"]) -> str:
    """A sentence for a trace of which nothing is shown: what its file lacks, or that only the selection does.

    Args:
        trace: Needs `launches`.
        what: Whether copies and memory sets would have been shown, too.
    """
    kinds = dict(trace.launches.group_by("kind").len().sort("len", "kind", descending=True).collect().iter_rows())
    if what == "launches" and kinds:
        return "No device work in the selection."
    if "kernel" in kinds:
        return "No kernels in the selection."
    if kinds:
        return (
            f"No {what}: all device work in the file is {format_list([_count(kind, n) for kind, n in kinds.items()])}."
        )
    if any(trace.losses.total(name) for name in ("truncated", "broken_compression")):
        return f"No {what} before the place where the file breaks off."
    if trace.facts.other_events:
        return (
            f"No {what}: apart from what the host did, the file has {_list_events(trace.facts.other_events)}, but no "
            "kernel, copy or memory set."
        )
    if trace.facts.framework != "PyTorch":
        return _NONE.format(what)
    return (
        f"No {what}: only the host was recorded, or recording the device failed. "
        "Record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]."
    )


def say_no_launches(trace: Trace) -> str:
    """The same for what needs launches, and what the file is, where it has none by its nature: what helps stands there.

    Args:
        trace: Needs `launches`.
    """
    why = say_why_none(trace, "launches")
    return " ".join((why, *trace.facts.notes)) if why == _NONE.format("launches") else why


def _count(kind: str, n: int) -> str:
    one, several = _WORDS.get(kind, (kind, kind))
    return f"{n:,} {one if n == 1 else several}"


def _list_events(events: Mapping[str, int]) -> str:
    """The most frequent categories with their numbers of events, and how many events the others have."""
    ordered = sorted(events.items(), key=lambda item: (-item[1], item[0]))
    texts = [f"{n:,} {_cut(name)} event{'' if n == 1 else 's'}" for name, n in ordered[:_LISTED]]
    rest = ordered[_LISTED:]
    if rest:
        texts.append(f"{sum(n for _, n in rest):,} events of {len(rest):,} other categories")
    return format_list(texts)


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
