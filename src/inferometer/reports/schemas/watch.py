"""`watch`: slowdowns of steps, and what steps should take."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Losses, Part, Remarks, Source, says

Ratio = Annotated[float, says("Sum of their times over the sum of what they should have taken.")]
Phase = Annotated[str | None, says("`prefill`, `decode` or `mixed`; null where the source doesn't know it.")]


class SlowPhase(Part):
    """The slow steps of one phase."""

    phase: Phase
    steps: Annotated[int, says("How many.")]
    ratio: Ratio
    interval: Annotated[list[float] | None, says("Its 98 % interval; null of too few steps.")]


class Worse(Part):
    """Slow steps that became slower still."""

    since_ns: Annotated[int, says("When, ns of the source's clock.")]
    phases: list[SlowPhase]


class Why(Part):
    """What `compare` says of the slow time next to the normal time before it."""

    verdict: Annotated[str, says("As `compare` has it.")]
    outcome: Annotated[str, says("As `compare` has it.")]
    why: Annotated[str, says("The reason, a sentence for people.")]
    metric: Annotated[str | None, says("The cause that is named; null where none is.")]
    device: Annotated[str | None, says("Whose metric that is.")]


class SlowTime(Part):
    """From an alarm to what ended it. Times are ns of the source's clock."""

    owner: Annotated[str | None, says("Whose steps: `rank 3` or `process 4711`; null where there is only one.")]
    noticed_ns: Annotated[int, says("When the alarm was raised.")]
    since_ns: Annotated[int, says("When the first slow step likely began.")]
    since_interval_ns: Annotated[list[int], says("Ends of its 95 % interval.")]
    step: Annotated[int, says("Number of that step among its owner's, from 0.")]
    steps_to_alarm: Annotated[int, says("Judged steps from it to the alarm, both counted.")]
    recovered_ns: Annotated[int | None, says("When steps were normal again; null where they were slow to the end.")]
    phases: Annotated[list[SlowPhase], says("The slow steps, to the end, the most excess time first.")]
    worse: list[Worse]
    why: Why | None


class WatchedPhase(Part):
    """All steps of one phase."""

    phase: Phase
    steps: Annotated[int, says("How many.")]
    judged: Annotated[int, says("How many of them could be held against what was learned.")]
    median_ns: Annotated[float, says("Median time of the last 16,384.")]
    ratio: Annotated[float | None, says("Median of time over expected time of those judged; null where none was.")]
    drift: Annotated[
        float | None,
        says("By what part normal steps take longer now than those learned first; null where none was judged."),
    ]


class Watch(Document):
    """What a watch saw."""

    source: Source
    unit: Annotated[str, says("What a step is: `step`, or `interval` of an engine's metrics.")]
    state: Annotated[str, says("At the end: `learning`, `normal` or `slow`.")]
    steps: Annotated[int, says("How many were seen.")]
    judged: Annotated[int, says("How many of them could be judged.")]
    first_ns: Annotated[int, says("Start of the first, on the source's clock.")]
    last_ns: Annotated[int, says("End of the last.")]
    least: Annotated[float, says("The smallest slowdown that was looked for, as a part.")]
    phases: list[WatchedPhase]
    slowdowns: list[SlowTime]
    remarks: Remarks
    losses: Losses


DOCUMENT = Watch
