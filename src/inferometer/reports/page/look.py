"""What a page is about: a run, perhaps a second one, and what the analyses make of them, each made when first asked."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from inferometer.analyses.compare.causes.counters import Entity
from inferometer.analyses.compare.comparison import Comparison, compare
from inferometer.analyses.groups.groups import Groups, find_groups
from inferometer.analyses.steps.table import StepTable
from inferometer.analyses.tables.kernels import KernelTable, kernel_table
from inferometer.analyses.timeline.timeline import Timeline, find_timeline
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.first_look import FirstLook, first_look
from inferometer.trace.facts import without_folders
from inferometer.trace.trace import Trace

if TYPE_CHECKING:
    from inferometer.analyses.launched_by.call_tree import CallTreeTable
    from inferometer.architectures import Model
    from inferometer.hardware.device import Device


SLICES = 300
"""Of the time line, as many as a chart shows side by side."""


@dataclass(frozen=True)
class PageOptions:
    """What the reader's engineer reported about the files: a model and a device, for bounds; captures, for replays."""

    model: "Model | None" = None
    device: "Device | None" = None
    bandwidths: tuple[float, ...] = ()
    captures: tuple[Trace, ...] = ()


class PageData:
    """The run in question, opened with all tables, and the one that it is compared with, its base.

    A page goes to others: it names files without their folders.

    Args:
        trace: The run.
        candidate: A second run: then `trace` is the base of the comparison.
        asked: What was reported about them.
    """

    def __init__(self, trace: Trace, candidate: Trace | None = None, asked: PageOptions | None = None) -> None:
        self.trace = _to_share(trace)
        self.candidate = None if candidate is None else _to_share(candidate)
        self.asked = asked or PageOptions()

    @cached_property
    def first(self) -> FirstLook:
        """Facts, findings, phases, kernels of the run."""
        return self._first_look(self.trace, self.launches)

    @cached_property
    def second(self) -> FirstLook | None:
        """The same of the candidate."""
        return None if self.candidate is None else self._first_look(self.candidate)

    @cached_property
    def kernels(self) -> KernelTable:
        """All kernels, as the file names them."""
        return kernel_table(self.trace)

    @cached_property
    def launches(self) -> LaunchEvidence:
        """What the findings of the run ask of its launches."""
        return LaunchEvidence(self.trace)

    @cached_property
    def steps(self) -> StepTable | None:
        """The steps, where any are recorded, marked or found."""
        return self.first.steps or self.launches.steps

    @cached_property
    def timeline(self) -> Timeline | None:
        """The time line; None without launches."""
        if self.kernels.basis != "launches" or not self.kernels.kernels:
            return None
        return find_timeline(self.trace, width=SLICES)

    @cached_property
    def groups(self) -> Groups:
        """Kernels that one call launches together."""
        return find_groups(self.trace)

    @cached_property
    def call_tree(self) -> "CallTreeTable | None":
        """Device time by callers; None without launches."""
        from inferometer.analyses.launched_by.attribution import attribute
        from inferometer.analyses.launched_by.call_tree import call_tree

        if self.kernels.basis != "launches" or not self.kernels.kernels:
            return None
        captures = self.asked.captures
        return call_tree(attribute(self.trace, captures=captures) if captures else self.launches.attribution)

    @cached_property
    def entities(self) -> tuple[list[Entity], list[Entity]]:
        """The metrics of both runs, as the comparison sees them; none without a second run."""
        series = None if self.comparison is None else self.comparison.series
        return ([], []) if series is None else (list(series.base), list(series.candidate))

    @cached_property
    def comparison(self) -> Comparison | None:
        """Of the run as base with the candidate."""
        return None if self.candidate is None else compare(self.trace, self.candidate, device=self.asked.device)

    def _first_look(self, trace: Trace, launches: LaunchEvidence | None = None) -> FirstLook:
        asked = self.asked
        return first_look(
            trace, top=20, model=asked.model, device=asked.device, bandwidths=asked.bandwidths, launches=launches
        )


def _to_share(trace: Trace) -> Trace:
    return trace.under_name(without_folders(trace.facts.source))
