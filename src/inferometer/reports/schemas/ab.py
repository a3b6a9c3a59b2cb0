"""`ab`: one model with several kernel backends, by call path."""

from typing import Annotated, Any

from msgspec import UNSET, UnsetType

from inferometer.reports.schemas.fields import Document, Losses, Part, Remarks, says
from inferometer.reports.schemas.report import Page

Interval = Annotated[tuple[float, float] | None, says("95 % interval: low and high; null of too few repetitions.")]
Ratio = Annotated[float | None, says("Time of the candidate over that of the base: above 1 it is slower.")]
Verdict = Annotated[
    str | None,
    says("`faster`, `slower`, `carried over`, `same`, `unclear` or `too few`; null where one arm lacks the path."),
]


class LayerTime(Part):
    """A layer of a row that pools several."""

    layer: Annotated[str, says("Which one.")]
    ns: Annotated[float, says("Its median of a repetition, ns.")]


class Layers(Part):
    """The shortest and the longest of pooled layers."""

    count: Annotated[int, says("Layers.")]
    min: LayerTime
    max: LayerTime


class ArmPath(Part):
    """A path in one arm; times of one repetition, means, ns."""

    backend: Annotated[str | None, says("What ran, in words; null where it is no call of an operator.")]
    backends: Annotated[dict[str, int], says("What ran, with its calls in all repetitions.")]
    calls: Annotated[float, says("Calls, of all layers together.")]
    host_ns: Annotated[int, says("On the host, with what it calls, ns.")]
    host_self_ns: Annotated[int, says("On the host, without what it calls, ns.")]
    device_busy_ns: Annotated[int | None, says("Time in which the device ran its work, ns; null: not recorded.")]
    gap_ns: Annotated[int | None, says("Between its work on the device, ns; null: not recorded.")]
    kernels: Annotated[int | None, says("Launches; null: not recorded.")]
    allocated_bytes: Annotated[int | None, says("Device memory that was allocated; null: not recorded.")]
    span_ns: Annotated[int | None, says("Between events at entry and exit, ns; null: some calls have none.")]
    time_ns: Annotated[int, says("The one that is compared, ns.")]
    self_ns: Annotated[int, says("Of it, without what it calls, ns: these add up to the root's.")]
    steady_ns: Annotated[int, says("`time_ns` without interruptions, ns.")]
    steady_self_ns: Annotated[int, says("Of it, without what it calls, ns.")]
    interval_ns: Annotated[tuple[float, float] | None, says("95 % interval of the mean of `time_ns`, ns.")]
    median_call_ns: Annotated[float, says("Median of a call, ns.")]
    p95_call_ns: Annotated[float, says("95th percentile of a call, ns.")]
    share: Annotated[float | None, says("Of the root's steady time, 0 to 1.")]
    layers: Annotated[Layers | None, says("Null where no layers are pooled.")]


class KernelRatio(Part):
    """The candidate's kernels of a path over the base's in the same surroundings."""

    ratio: Annotated[float, says("Geometric mean over pairs of completions.")]
    interval: Interval
    p: Annotated[float | None, says("Probability of such a difference by chance; null of too few pairs.")]


class CandidatePath(Part):
    """A path in a candidate, compared with the base."""

    ratio: Ratio
    interval: Interval
    p: Annotated[float | None, says("Probability of such a difference by chance.")]
    pairs: Annotated[int, says("Repetitions in which both called it.")]
    verdict: Verdict
    absent: Annotated[str | None, says("Which arm doesn't call it. Its words may change.")]
    difference_ns: Annotated[int, says("Steady time, candidate less base, ns.")]
    difference_interval_ns: Annotated[tuple[float, float] | None, says("Its 95 % interval, ns.")]
    self_difference_ns: Annotated[int, says("Of the path without what it calls, ns.")]
    self_interval_ns: Annotated[tuple[float, float] | None, says("Its 95 % interval, ns.")]
    self_differs: Annotated[bool, says("Whether the path itself differs, beyond chance of all paths.")]
    max_error: Annotated[float | None, says("Greatest error of its answers on the base's inputs.")]
    normalised_error: Annotated[float | None, says("The same over what is allowed.")]
    tolerance: Annotated[float | None, says("What is allowed.")]
    failing_call: Annotated[int | None, says("The first call that is wrong, from 1.")]
    failure: Annotated[str | None, says("Why it is wrong. Its words may change.")]
    control: Annotated[KernelRatio | None, says("Null where it wasn't measured, or the arms call other operators.")]


class Path(Part):
    """One path. `ratio`, `interval`, `verdict`, `max_error` are of the first candidate."""

    path: Annotated[str, says("The whole path.")]
    name: Annotated[str, says("Its last part.")]
    depth: Annotated[int, says("0 for the outermost.")]
    operator: Annotated[str | None, says("The operator that it calls; null where it is none.")]
    calls: Annotated[float, says("Calls of a repetition.")]
    arms: Annotated[dict[str, ArmPath], says("By arm that calls it.")]
    ratio: Ratio
    interval: Interval
    verdict: Verdict
    max_error: Annotated[float | None, says("Greatest error of its answers on the base's inputs.")]
    candidates: Annotated[dict[str, CandidatePath], says("By arm other than the base.")]


class Pass(Part):
    """A phase without any instrument."""

    wall_ns: Annotated[float, says("Median over repetitions, ns.")]
    interval_ns: Annotated[tuple[float, float] | None, says("95 % interval of the median, ns.")]
    tokens_per_s: Annotated[float | None, says("Tokens of all sequences; null where their number isn't known.")]
    repetitions: Annotated[int, says("Repetitions.")]
    ratio: Annotated[float | None, says("Candidate over base; null of the base.")]
    interval: Interval
    verdict: Verdict


class Root(Part):
    """An arm as a whole."""

    time_ns: Annotated[int | None, says("Time of all paths, ns; null where nothing was measured.")]
    phases: Annotated[dict[str, Pass], says("By phase, and the whole.")]
    agreement: Annotated[
        dict[str, Any] | None, says("How far its next tokens are the base's; null of the base, or not measured.")
    ]


class Roots(Part):
    """The outermost path."""

    path: Annotated[str | None, says("Its name; null where nothing was measured.")]
    arms: Annotated[dict[str, Root], says("By arm.")]


class Overhead(Part):
    """What measuring costs."""

    ratio: Annotated[float | None, says("Time with scopes over time without.")]
    interval: Interval


class PathDifference(Part):
    """A place that differs by itself, beyond chance."""

    path: Annotated[str, says("The nearest path that both arms call.")]
    gone: Annotated[list[str], says("Paths below that the base alone calls.")]
    new: Annotated[list[str], says("Paths below that the candidate alone calls.")]
    base_ns: Annotated[int, says("Steady time of its own in the base, ns.")]
    candidate_ns: Annotated[int, says("The same in the candidate, ns.")]
    difference_ns: Annotated[int, says("Candidate less base, ns.")]
    interval_ns: Annotated[tuple[float, float] | None, says("95 % interval of that, ns.")]
    share: Annotated[float | None, says("Of the difference at the root; null where that is 0.")]


class AnswerFault(Part):
    """Where an arm's answers are first wrong."""

    kind: Annotated[str, says("What is wrong.")]
    path: Annotated[str | None, says("The operator's path; null of logits.")]
    call: Annotated[int, says("Of that path in its completion, from 1; of logits the step.")]
    completions: Annotated[int, says("Completions that had such an answer.")]
    completions_of: Annotated[int, says("Completions that were looked at.")]
    failure: Annotated[str, says("In words, which may change.")]


class Ab(Document):
    """An A/B by call path."""

    arms: Annotated[list[str], says("Names, the base first.")]
    paths: Annotated[list[Path], says("Callers before what they call.")]
    root: Roots
    overhead: Annotated[dict[str, dict[str, Overhead]], says("By arm and phase.")]
    differences: Annotated[dict[str, list[PathDifference]], says("By candidate, the largest first.")]
    carried_over_ns: Annotated[dict[str, int], says("By candidate: what it takes more in paths of the same code, ns.")]
    compared: Annotated[str, says("Which times are compared: `span_ns` or `host_ns`.")]
    repetitions: Annotated[int, says("Repetitions that all arms have.")]
    level: Annotated[float, says("Of all differences called one, at most this part is chance, 0 to 1.")]
    layers: Annotated[str, says("`pooled` where all layers are one row, or `apart`.")]
    facts: Annotated[
        dict[str, Any], says("What ran: model, sizes, versions, machine. Nothing is promised of its keys.")
    ]
    ended: Annotated[str | None, says("Why it ended early. Its words may change.")]
    faults: Annotated[dict[str, AnswerFault], says("By arm, the base too.")]
    disturbed: Annotated[list[str], says("Arms whose repetitions are too unlike for verdicts.")]
    refused: Annotated[dict[str, list[str]], says("By arm: what it couldn't run, and why. These words may change.")]
    stores: Annotated[dict[str, str], says("With `--traces`: each arm's recording.")]
    remarks: Remarks
    losses: Losses
    page: Annotated[Page | UnsetType, says("With `-o`: the page that was written.")] = UNSET


DOCUMENT = Ab
