"""`groups`: kernels that one library call launches together."""

from typing import Annotated

from inferometer.reports.schemas.fields import (
    Basis,
    Document,
    Kernel,
    Launches,
    Losses,
    Part,
    Remarks,
    Section,
    Source,
    says,
)


class MemberKernel(Part):
    """A kernel of a role."""

    kernel: Kernel
    count: Annotated[int, says("Launches that are part of the group.")]
    of: Annotated[int, says("All its launches.")]
    total_ns: Annotated[int | None, says("Time of those in the group, ns; null where it isn't known.")]


class Member(Part):
    """A role of the group: kernels that stand for each other."""

    role: Annotated[str, says("What it does.")]
    kernels: Annotated[list[str], says("Names, the most launched first.")]
    count: Annotated[int, says("Launches in the group.")]
    optional: Annotated[bool, says("Whether a call may leave it out.")]
    total_ns: Annotated[int, says("Their time as far as it is measured, ns.")]
    parts: list[MemberKernel]


class GroupSite(Part):
    """Where calls come from; null is what isn't known."""

    op: Annotated[str | None, says("The op.")]
    module: Annotated[str | None, says("The module's path, all layers as one.")]
    frame: Annotated[str | None, says("The place in the user's code.")]
    count: Annotated[int, says("Calls from there.")]
    of: Annotated[int, says("All calls of the group.")]


class Edge(Part):
    """How often two kernels are neighbours."""

    from_: Annotated[str, says("The kernel before.")]
    to: Annotated[str, says("The kernel after.")]
    count: Annotated[int, says("How often the one follows the other.")]
    known: Annotated[int, says("How often the ops of both are known.")]
    same: Annotated[int, says("How often that is one op.")]
    forward: Annotated[float, says("Of the first one's launches those that the second follows, 0 to 1.")]
    backward: Annotated[float, says("Of the second one's launches those that follow the first, 0 to 1.")]
    confidence: Annotated[float | None, says("Lower bound of what speaks for one call, 0 to 1.")]
    host_gap_ns: Annotated[float | None, says("Median from one call to the next on the host, ns.")]
    device_gap_ns: Annotated[float | None, says("Median from one kernel's end to the next one's start, ns.")]
    contexts: Annotated[int, says("In how many surroundings they were seen.")]
    ruling: Annotated[str, says("As `verdict` of the group.")]
    learned_on: Annotated[str | None, says("The file that taught it.")]
    declared: Annotated[str | None, says("The library's source that declares it.")]


class AskedLine(Part):
    """A line of the source's text that names a kernel of the group."""

    line: Annotated[int, says("Its number.")]
    source: Annotated[str | None, says("Who wrote it.")]
    text: Annotated[str, says("The line.")]


class ModelledTime(Part):
    """With `--split`: a follower's time, shared out over its leaders by count."""

    kernel: Kernel
    modelled_ns: Annotated[int, says("Its part, ns: modelled, not measured.")]


class Group(Part):
    """Kernels that one call launches together, in order of launch."""

    name: Annotated[str, says("What it is called.")]
    members: list[Member]
    count: Annotated[int, says("Calls.")]
    confidence: Annotated[
        float | None, says("Lower bound of the weakest link, 0 to 1; null where counts alone are known.")
    ]
    evidence: Annotated[list[str], says("Sentences. Their words may change.")]
    site: Annotated[GroupSite | None, says("The first of `sites`.")]
    total_ns: Annotated[int, says("Time of all members as far as it is measured, ns.")]
    verdict: Annotated[
        str, says("`library call`, `learned call`, `declared call`, `fused-wrapper call` or `counts only`.")
    ]
    call: Annotated[str | None, says("The one call to intercept, in a sentence that may change.")]
    by_name: Annotated[int, says("Calls that were recognised by names alone.")]
    learned_on: Annotated[str | None, says("The file that taught the group.")]
    sites: list[GroupSite]
    edges: Annotated[list[Edge], says("From launches only.")]
    asked_about: list[AskedLine]
    modelled: list[ModelledTime]
    section: Section


class Refusal(Part):
    """What looks like a group and is none."""

    kernels: Annotated[list[str], says("Names, in order.")]
    count: Annotated[int, says("How often.")]
    why: Annotated[str, says("The reason. Its words may change.")]
    total_ns: Annotated[int, says("Their time, ns.")]
    section: Section


class Groups(Document):
    """Kernels that are launched together."""

    source: Source
    basis: Basis
    groups: Annotated[list[Group], says("The most time first, as many as `--top` says.")]
    refused: list[Refusal]
    groups_found: Annotated[int, says("Groups before `--top`.")]
    launches: Launches
    launches_with_op: Annotated[int, says("Of these, launches with a known op.")]
    launches_in_graphs: Annotated[int, says("Launches from replays of graphs.")]
    launches_captured: Annotated[int, says("Launches that are known by their host calls alone.")]
    launches_with_call: Annotated[int, says("Launches whose host call is in the file.")]
    learned_from: Annotated[list[str], says("Files of `--learn-from`.")]
    remarks: Remarks
    losses: Losses


DOCUMENT = Groups
