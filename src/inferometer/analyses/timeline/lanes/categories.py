"""What sort an event is, by its name: the family of a kernel, what a host call does, the phase of a step."""

from inferometer.names import decode
from inferometer.names.apis import api_kind
from inferometer.names.communication import find_collective

_CALLS = {
    "launch": "calls that launch",
    "graph": "calls that launch a graph",
    "copy": "calls that copy",
    "wait": "calls that wait",
    "allocation": "calls that allocate",
    "other": "other calls",
}
_NOUNS = {
    "step": "step",
    "device_range": "range",
    "range": "range",
    "frame": "frame",
    "op": "op",
    "call": "call",
    "system": "event",
}
_MODULE = "nn.Module: "

Sort = tuple[str, str]
"""The name of a category, and what one of its events is called."""


def launch_sort(kind: str, name: str) -> Sort:
    """Of device work: copies, communication, whole graphs, or the family of its kernel."""
    if kind in ("memcpy", "memset"):
        return "copies and sets", "copy"
    if kind == "graph":
        return "whole graphs", "graph"
    if find_collective(name):
        return "communication", "kernel"
    return family_words(decode(name).family), "kernel"


def family_words(family: str) -> str:
    """What kernels of a family are called."""
    return f"{family.replace('_', ' ')} kernels"


def host_sort(kind: str, name: str) -> Sort:
    """Of what a host thread did, or of ranges on any track; `kind` is that of the lane."""
    if kind == "call":
        return _CALLS[api_kind(name)], "call"
    if kind == "frame":
        return ("modules" if name.startswith(_MODULE) else "Python functions"), "frame"
    words = {"op": "ops", "system": "system events", "step": "steps"}
    return words.get(kind, "ranges"), _NOUNS[kind]
