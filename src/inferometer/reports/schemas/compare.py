"""`compare`: what changed between two runs, and the cause."""

from typing import Annotated

from msgspec import UNSET, UnsetType

from inferometer.reports.schemas.fields import Document, Losses, Part, Remarks, says

Interval = Annotated[
    tuple[float, float] | None, says("Candidate over base in 95 of 100 samples: low and high; null where not known.")
]
IntervalNs = Annotated[
    tuple[int, int] | None, says("The difference in 95 of 100 samples: low and high, ns; null where not known.")
]
FunctionClass = Annotated[str, says("`compute`, `transfer`, `collective`, `host` and the like.")]
ChangeKind = Annotated[
    str,
    says("`same`, `slower`, `faster`, `new`, `gone`, `renamed`, `fused`, `split`, `more calls` or `fewer calls`."),
]


class Comparable(Part):
    """Whether the runs did the same work."""

    ok: Annotated[bool, says("Whether they did, as recorded.")]
    why: Annotated[str, says("Why, or why not. Its words may change.")]
    repair: Annotated[str | None, says("How they were made comparable, where that was needed.")]
    step_ratio: Annotated[float | None, says("Length of a step, candidate over base.")]
    step_ratio_interval: Interval


class ClassRatio(Part):
    """Duration of a call of the functions of one class, candidate over base."""

    class_: FunctionClass
    ratio: Annotated[float, says("Above 1, the candidate's calls are longer.")]
    interval: Interval
    functions: Annotated[int, says("Functions that both runs have.")]
    share: Annotated[float, says("Of the base's step, 0 to 1.")]


class Cause(Part):
    """A metric that might be the cause; only the verdict `cause named` claims the first one."""

    metric: Annotated[str, says("The metric.")]
    device: Annotated[str, says("Of which device, or `host`.")]
    class_: Annotated[str, says("The class of causes.")]
    role: Annotated[str, says("`cause`.")]
    score: Annotated[float, says("Severity times agreement times (1 - q), 0 to 1.")]
    base: Annotated[float, says("Median over the base, in `unit`; of states the mean.")]
    candidate: Annotated[float, says("The same of the candidate.")]
    unit: Annotated[str | None, says("The unit of both.")]
    p: Annotated[float, says("Probability of such a difference by chance.")]
    q: Annotated[float, says("The same, corrected for the number of metrics.")]
    severity: Annotated[float, says("How grave, 0 to 1.")]
    interval: Interval
    ticks: Annotated[tuple[int, int], says("Samples in base and candidate.")]
    agreement: Annotated[float, says("How well the functions that slowed fit, 0 to 1.")]
    family: Annotated[str, says("The family of metrics.")]
    assumed: Annotated[str | None, says("What was taken for a capacity that nobody gave.")]
    explains: Annotated[
        tuple[float, float] | None,
        says(
            "The part of what a step takes longer that a wait accounts for, and the most that this may be; null where "
            "it isn't known how long anything waited."
        ),
    ]


class Change(Part):
    """A function's part in the change of a step."""

    name: Annotated[str, says("The function.")]
    class_: Annotated[str, says("Its class, or `idle`, `overlap` or `not on the device`.")]
    kind: ChangeKind
    base_ns: Annotated[int, says("Its time of a step of the base, ns.")]
    candidate_ns: Annotated[int, says("The same of the candidate, ns.")]
    delta_ns: Annotated[int, says("Candidate less base, ns.")]
    share: Annotated[float | None, says("Of the step's change; null where that is none.")]
    interval_ns: IntervalNs
    base_calls: Annotated[float, says("Calls of a step of the base.")]
    candidate_calls: Annotated[float, says("The same of the candidate.")]
    basis: Annotated[str, says("Why functions of both runs are one line. Its words may change.")]
    base_names: Annotated[list[str], says("Raw names in the base.")]
    candidate_names: Annotated[list[str], says("Raw names in the candidate.")]
    added: Annotated[bool, says("Whether it counts for the step's change: these add up to it.")]


class ContributionRow(Part, kw_only=True):
    """A function's part in the change of a step; where runs can't be compared, a family's times in both (`family`)."""

    name: Annotated[str, says("The function, or the family.")]
    class_: Annotated[str | UnsetType, says("Its class, or `idle`, `overlap`, `not on the device`.")] = UNSET
    kind: Annotated[str, says("As of a phase's contributions, or `family`.")]
    base_ns: Annotated[int, says("Its time of a step of the base, of a family of the run, ns.")]
    candidate_ns: Annotated[int, says("The same of the candidate, ns.")]
    delta_ns: Annotated[int | None, says("Candidate less base, ns; of a family null.")]
    share: Annotated[float | None, says("Of the step's change; null where that is none.")]
    interval_ns: IntervalNs
    base_calls: Annotated[float | UnsetType, says("Calls of a step of the base.")] = UNSET
    candidate_calls: Annotated[float | UnsetType, says("The same of the candidate.")] = UNSET
    basis: Annotated[str | UnsetType, says("Why functions of both runs are one line. Its words may change.")] = UNSET
    base_names: Annotated[list[str] | UnsetType, says("Raw names in the base.")] = UNSET
    candidate_names: Annotated[list[str] | UnsetType, says("Raw names in the candidate.")] = UNSET
    added: Annotated[bool | UnsetType, says("Whether it counts for the step's change: these add up to it.")] = UNSET
    base_share: Annotated[float | UnsetType, says("Of a family: of the base's function time, 0 to 1.")] = UNSET
    candidate_share: Annotated[float | UnsetType, says("Of a family: of the candidate's, 0 to 1.")] = UNSET


class ComparedKernel(Part):
    """A kernel in both runs, or several that are one line; null where a compared step calls none."""

    name: Annotated[str, says("What it is called.")]
    family: Annotated[str, says("The kind of work.")]
    kind: Annotated[str | None, says("As of contributions; null where no compared step calls it.")]
    delta_ns: Annotated[int | None, says("Time of a compared step, candidate less base, ns.")]
    interval_ns: IntervalNs
    base_names: Annotated[list[str], says("Names in the base.")]
    base_ns: Annotated[int | None, says("Time of a compared step of the base, ns.")]
    base_calls: Annotated[float | None, says("Calls of it.")]
    base_mean_ns: Annotated[float | None, says("Time of one call, ns.")]
    base_total_ns: Annotated[int, says("Time in the whole base, ns.")]
    base_launches: Annotated[int, says("Launches in the whole base.")]
    candidate_names: Annotated[list[str], says("Names in the candidate.")]
    candidate_ns: Annotated[int | None, says("Time of a compared step of the candidate, ns.")]
    candidate_calls: Annotated[float | None, says("Calls of it.")]
    candidate_mean_ns: Annotated[float | None, says("Time of one call, ns.")]
    candidate_total_ns: Annotated[int, says("Time in the whole candidate, ns.")]
    candidate_launches: Annotated[int, says("Launches in the whole candidate.")]


class ComparedKernels(Part):
    """All kernels of both runs; totals of the rows add up to those of the runs."""

    per: Annotated[str, says("What times of a step are of: `step`, or the whole recording.")]
    base_total_ns: Annotated[int, says("All device time of the base, ns.")]
    candidate_total_ns: Annotated[int, says("All device time of the candidate, ns.")]
    rows: Annotated[list[ComparedKernel], says("The largest difference first.")]


class StepMarks(Part):
    """Where a run's steps come from."""

    anchor: Annotated[str | None, says("What marks them.")]
    confidence: Annotated[float | None, says("Of steps found in the order of kernels, 0 to 1.")]
    used: Annotated[bool, says("Whether they are compared.")]


class SidesMarks(Part):
    """Of both runs; null where steps come from no launches."""

    base: StepMarks | None
    candidate: StepMarks | None


class WorkChange(Part):
    """What other numbers of calls add to a step."""

    delta_ns: Annotated[int, says("Change of the step by calls that are more or fewer, ns.")]
    ratio: Annotated[float | None, says("Of calls, candidate over base, that functions have in common.")]
    functions: Annotated[int, says("Functions that have it.")]
    shared: Annotated[int, says("Functions that both runs have.")]
    repeats: Annotated[tuple[int, int] | None, says("How often something is repeated in base and candidate.")]


class InputChange(Part):
    """On what else most matrix products ran."""

    dtypes: Annotated[tuple[str, str] | None, says("Types in base and candidate, where they differ.")]
    sizes: Annotated[tuple[list[int], list[int]], says("Sizes of a weight that the base has alone, and the candidate.")]


class SetupChange(Part):
    """A setting or version that differs."""

    name: Annotated[str, says("Which one.")]
    base: Annotated[str, says("In the base.")]
    candidate: Annotated[str, says("In the candidate.")]


class IdleGrowth(Part):
    """Idle time of a step."""

    base_ns: Annotated[int, says("Of the base, ns.")]
    candidate_ns: Annotated[int, says("Of the candidate, ns.")]
    delta_ns: Annotated[int, says("Candidate less base, ns.")]


class IdlePlace(IdleGrowth):
    """Idle time between two functions."""

    after: Annotated[str | None, says("The function before; null before the first of a recording.")]
    before: Annotated[str, says("The function after.")]
    called_in: Annotated[str | None, says("The frame that calls the second one most often.")]


class IdleFrame(IdleGrowth):
    """Idle time while a Python frame was open."""

    frame: Annotated[str, says("The frame.")]
    caller: Annotated[str | None, says("The Python code around a native one.")]
    own: Annotated[bool, says("Whether it is the innermost of the user's code, whatever it called.")]


class HostTime(Part):
    """Where the host was in what the device waited longer."""

    idle: IdleGrowth
    place: IdlePlace | None
    frame: IdleFrame | None


class PhaseComparison(Part):
    """One phase that both runs have, by itself."""

    phase: Annotated[str | None, says("`prefill`, `decode` or `mixed`.")]
    base_steps: Annotated[int, says("Steps of the base.")]
    candidate_steps: Annotated[int, says("Steps of the candidate.")]
    base_step_ns: Annotated[int, says("Length of a step of the base, ns.")]
    candidate_step_ns: Annotated[int, says("Length of a step of the candidate, ns.")]
    step_ratio: Annotated[float | None, says("Candidate over base.")]
    step_ratio_interval: Interval
    speed: Annotated[str, says("What became of the step: `same`, `slower`, `faster` or `unclear`.")]
    same_work: Annotated[bool, says("Whether steps do the same work.")]
    contributions: list[Change]


class Calibration(Part):
    """How often two halves of one normal run would have a cause named."""

    false_alarm_rate: Annotated[float | None, says("0 to 1; null where there are no halves to try.")]
    halves: Annotated[list[float], says("The highest score of each pair of halves.")]


class LossesOfBoth(Part):
    """Of each run."""

    base: Losses
    candidate: Losses


class Comparison(Document):
    """The verdict over two runs, with all that it rests on."""

    verdict: Annotated[str, says("Such as `cause named`, `no difference`, `software change`, `not comparable`.")]
    outcome: Annotated[
        str,
        says(
            "What became of the step: `slower`, `faster`, `no difference`, `no clear difference`, `can't tell` or "
            "`not comparable`."
        ),
    ]
    why: Annotated[str, says("Why. Its words may change.")]
    base: Annotated[str, says("The normal run's file.")]
    candidate: Annotated[str, says("The file of the run in question.")]
    comparable: Comparable
    domain: Annotated[str | None, says("The class of functions whose calls slowed most; null where none did.")]
    classes: list[ClassRatio]
    causes: Annotated[list[Cause], says("Ranked.")]
    contributions: list[ContributionRow]
    kernels: ComparedKernels
    base_step_ns: Annotated[int | None, says("Length of a step of the base, ns; null where times aren't compared.")]
    candidate_step_ns: Annotated[int | None, says("The same of the candidate, ns.")]
    unexplained_ns: Annotated[int | None, says("Change of the step that no line explains, ns: rounding.")]
    steps: SidesMarks
    phase: Annotated[str | None, says("The phase that leads, where phases are known.")]
    work: WorkChange | None
    inputs: InputChange | None
    setup: list[SetupChange]
    host_time: HostTime | None
    phases: list[PhaseComparison]
    calibration: Calibration
    not_measured: Annotated[list[str], says("Classes of causes of which both runs have no metric.")]
    not_judged: Annotated[list[str], says("Metrics that couldn't be judged. Their words may change.")]
    remarks: Remarks
    losses: LossesOfBoth


DOCUMENT = Comparison
