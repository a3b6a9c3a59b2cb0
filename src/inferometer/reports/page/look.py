"""What a page is about: a run, perhaps a second one, and what the analyses make of them, each made when first asked."""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import polars as pl

from inferometer.analyses.compare.causes.counters import Entity
from inferometer.analyses.compare.comparison import Comparison, compare
from inferometer.analyses.compare.tests import are_repeated
from inferometer.analyses.groups.groups import Groups, find_groups
from inferometer.analyses.steps.table import StepTable
from inferometer.analyses.tables.kernels import KernelTable, kernel_table
from inferometer.analyses.timeline.lanes.events import Lanes
from inferometer.analyses.timeline.lanes.find import find_lanes
from inferometer.analyses.timeline.timeline import Timeline, find_timeline
from inferometer.errors import InputError
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.first_look import FirstLook, first_look
from inferometer.names.decoding import decode_frame
from inferometer.reports.page.shades import family_shades
from inferometer.trace.facts import without_folders
from inferometer.trace.trace import Trace

if TYPE_CHECKING:
    from inferometer.analyses.compare.call_trees import CallTreeComparison
    from inferometer.analyses.launched_by.attribution import Attribution
    from inferometer.analyses.launched_by.call_tree import CallTreeTable
    from inferometer.analyses.roofline.table import Roofline
    from inferometer.architectures import Model
    from inferometer.hardware.device import Device


SIDES = ("base", "candidate")


class PageOptions(msgspec.Struct, frozen=True):
    """What the reader's engineer reported about the files: a model and a device, for bounds; captures, for replays.

    `counters`: what a profiler counted of the run's kernels. `thresholds`: what the findings are judged by in place of
    the rules' own.
    """

    model: "Model | None" = None
    device: "Device | None" = None
    bandwidths: tuple[float, ...] = ()
    captures: tuple[Trace, ...] = ()
    counters: Trace | None = None
    thresholds: Mapping[str, float] = msgspec.field(default_factory=dict)


class RunData:
    """A run, and what the analyses make of it.

    Args:
        trace: The run, opened with all tables.
        asked: What was reported about it.
        base: The run that it is compared with: families of both have its colours.
    """

    def __init__(self, trace: Trace, asked: PageOptions | None = None, base: "RunData | None" = None) -> None:
        self.trace = _to_share(trace)
        self.asked = asked or PageOptions()
        self._base = base

    @cached_property
    def first(self) -> FirstLook:
        """Facts, findings, phases, kernels."""
        asked = self.asked
        return first_look(
            self.trace,
            top=20,
            model=asked.model,
            device=asked.device,
            bandwidths=asked.bandwidths,
            launches=self.launches,
            thresholds=asked.thresholds,
        )

    @cached_property
    def kernels(self) -> KernelTable:
        """All kernels, as the file names them."""
        counters = self.asked.counters
        return kernel_table(self.trace) if counters is None else kernel_table(self.trace, counters=_to_share(counters))

    @cached_property
    def families(self) -> pl.DataFrame:
        """Of the first table of kernels: `family`, `total_ns`, `count` (null if not told), the largest first."""
        frame = self.kernels.frame
        known = decode_frame(frame["kernel"]).select("kernel", "family")
        count = pl.when(pl.col("count").null_count() == 0).then(pl.col("count").sum()).alias("count")
        sums = frame.join(known, on="kernel", how="left").group_by("family").agg(pl.col("total_ns").sum(), count)
        return sums.sort("total_ns", "family", descending=[True, False])

    @cached_property
    def shades(self) -> Mapping[str, str]:
        """The colour of each family, as `family_shades` has it: the base's families first, in its order."""
        first = [] if self._base is None else self._base.families["family"].to_list()
        return family_shades([*first, *self.families["family"].to_list()])

    @cached_property
    def launches(self) -> LaunchEvidence:
        """What the findings ask of the launches."""
        return LaunchEvidence(self.trace, device=self.asked.device)

    @cached_property
    def steps(self) -> StepTable | None:
        """The steps, where any are recorded, marked or found."""
        return self.first.steps or self.launches.steps

    @cached_property
    def timeline(self) -> Timeline | None:
        """The time line; None without launches."""
        return find_timeline(self.trace) if self.has_launches else None

    @cached_property
    def lanes(self) -> Lanes | None:
        """What ran when; None where nothing has a time, or times lie too far apart to be drawn."""
        return find_lanes(self.trace, None if self.steps is None else self.steps.steps)

    @cached_property
    def groups(self) -> Groups:
        """Kernels that one call launches together."""
        return find_groups(self.trace)

    @cached_property
    def attribution(self) -> "Attribution | None":
        """Who launched what; None without launches."""
        from inferometer.analyses.launched_by.attribution import attribute

        if not self.has_launches:
            return None
        captures = self.asked.captures
        return attribute(self.trace, captures=captures, with_op_calls=True) if captures else self.launches.attribution

    @cached_property
    def roofline(self) -> "Roofline | None":
        """How far each op is from its bound; None without launches, or where no op has shapes."""
        from inferometer.analyses.roofline.table import roofline

        if self.attribution is None or not self.asked.captures:
            return None if self.attribution is None else self.launches.roofline
        return roofline(self.attribution, self.trace, device=self.asked.device)

    @cached_property
    def call_tree(self) -> "CallTreeTable | None":
        """Device time by callers; None without launches."""
        from inferometer.analyses.launched_by.call_tree import call_tree

        return None if self.attribution is None else call_tree(self.attribution)

    def release(self) -> None:
        """Drop who launched what, and what findings asked of it; asked for again, it is made again."""
        vars(self).pop("attribution", None)
        if "launches" in vars(self):
            self.launches.release(attribution=True)

    @property
    def has_launches(self) -> bool:
        """Whether there are single launches of kernels."""
        return self.kernels.basis == "launches" and self.kernels.kernels > 0


class PageData:
    """The run in question, or two that are compared: then it is the base.

    A page goes to others: it names files without their folders.

    Args:
        trace: The run.
        candidate: A second run: then `trace` is the base of the comparison.
        asked: What was reported about them.
    """

    def __init__(self, trace: Trace, candidate: Trace | None = None, asked: PageOptions | None = None) -> None:
        self.asked = asked or PageOptions()
        self.base = RunData(trace, self.asked)
        self.candidate = None if candidate is None else RunData(candidate, self.asked, self.base)

    @property
    def runs(self) -> tuple[RunData, ...]:
        """The run, or base and candidate."""
        return (self.base,) if self.candidate is None else (self.base, self.candidate)

    @cached_property
    def comparison(self) -> Comparison | None:
        """The comparison of the base with the candidate; None without a second run."""
        if self.candidate is None:
            return None
        if are_repeated(self.base.trace, self.candidate.trace):
            raise InputError(
                f"{self.base.trace.facts.source}: expected a trace, to have a page of two, found times of whole tests "
                "or steps alone",
                hint="inferometer compare sets two of these side by side; report makes a page of one.",
            )
        return compare(self.base.trace, self.candidate.trace, device=self.asked.device)

    @cached_property
    def compared_trees(self) -> "CallTreeComparison | None":
        """The call trees of both runs as one; None without launches in both."""
        from inferometer.analyses.compare.call_trees import compare_trees

        base, candidate = self.base, self.candidate
        if candidate is None or base.attribution is None or candidate.attribution is None:
            return None
        return compare_trees((base.trace, base.attribution), (candidate.trace, candidate.attribution))

    @cached_property
    def entities(self) -> tuple[list[Entity], list[Entity]]:
        """The metrics of both runs, as the comparison sees them; none without a second run."""
        series = None if self.comparison is None else self.comparison.series
        return ([], []) if series is None else (list(series.base), list(series.candidate))


def _to_share(trace: Trace) -> Trace:
    return trace.under_name(without_folders(trace.facts.source))
