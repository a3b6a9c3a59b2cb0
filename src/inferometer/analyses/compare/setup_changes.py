"""What was set up in another way: versions of software, and settings of the program that recordings note.

Most differences say nothing of a run's speed, so they are reported and not judged. Of a few it is known what they do:
on how many threads the CPU computes, and whether each launch waits for its kernel.
"""

from typing import Any

import msgspec

from inferometer.trace.trace import Trace

THREADS, BLOCKING = "torch threads", "CUDA_LAUNCH_BLOCKING"


class SetupChange(msgspec.Struct, frozen=True):
    """One thing that both files note, and note differently."""

    name: str
    base: str
    candidate: str

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "base": self.base, "candidate": self.candidate}

    def describe(self) -> str:
        """As in: torch threads 2 -> 1."""
        return f"{self.name} {self.base} -> {self.candidate}"


def find_setup_changes(base: Trace, candidate: Trace) -> tuple[SetupChange, ...]:
    """All that differs, settings first; what only one of the files notes is unknown of the other."""
    pairs = (
        (base.facts.settings, candidate.facts.settings),
        (base.facts.versions, candidate.facts.versions),
    )
    return tuple(
        SetupChange(name, value, after[name])
        for before, after in pairs
        for name, value in before.items()
        if name in after and after[name] != value
    )


def telling_change(changes: tuple[SetupChange, ...], *, on_cpu: bool) -> str | None:
    """Of a slower run, the sentence about a setting that makes kernels, or launches, take longer; None without one."""
    by_name = {change.name: change for change in changes}
    threads, blocking = by_name.get(THREADS), by_name.get(BLOCKING)
    if on_cpu and threads is not None:
        return f"PyTorch ran on {_threads(threads.candidate)} in place of {threads.base}."
    if not on_cpu and blocking is not None and blocking.candidate == "1":
        return f"Each launch waits for its kernel: {BLOCKING} was set to 1."
    return None


def _threads(count: str) -> str:
    return f"{count} thread" if count == "1" else f"{count} threads"
