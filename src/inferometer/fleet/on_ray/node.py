"""What a task does on a node: read a place by a process of `fleet.workers`, with the same limits as on one machine.

The process stays for the next task of the same Ray worker, and ends with it.
"""

import platform
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache

from inferometer import __version__
from inferometer.fleet.reasons import SetAside
from inferometer.fleet.sources import Place
from inferometer.fleet.workers import WorkerLimits, Workers


@dataclass(frozen=True)
class Answer:
    """`node` found the content `trace`, None where it can't read the place at all: `unread` says why.

    `packed` is the digest, `reason` why there is none; both None where none was asked for, or the content is another.
    """

    node: str
    trace: str | None = None
    unread: str | None = None
    packed: bytes | None = None
    reason: str | None = None


def read(name: str, trace: str | None, limits: WorkerLimits, version: str) -> Answer:
    """The content of a place; where that is `trace`, its digest too. `version` of inferometer is asking."""
    node = platform.node()
    if version != __version__:
        return Answer(node, unread=f"inferometer {__version__} is installed there, expected {version}")
    with ExitStack() as stack:
        try:
            found = stack.enter_context(_workers(limits).reading(Place(name)))
        except SetAside as error:
            return Answer(node, unread=error.reason)
        if found.trace != trace:
            return Answer(node, found.trace)
        try:
            return Answer(node, trace, packed=found.digest())
        except SetAside as error:
            return Answer(node, trace, reason=error.reason)


@cache
def _workers(limits: WorkerLimits) -> Workers:
    return Workers(1, limits)
