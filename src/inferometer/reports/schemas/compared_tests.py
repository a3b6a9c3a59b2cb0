"""`compare` of two results of a benchmark, or of two files that time steps alone."""

from typing import Annotated

from inferometer.reports.schemas.compare import LossesOfBoth, SetupChange
from inferometer.reports.schemas.fields import Document, Part, Remarks, says

Rate = Annotated[float | None, says("Tokens/s, the mean over repetitions; null where the source has none.")]
Deviation = Annotated[float | None, says("Sample standard deviation of that; null where it isn't known.")]
Count = Annotated[int | None, says("Repetitions; null where the source doesn't say, or the run lacks the test.")]
MeanNs = Annotated[float | None, says("Mean time of a repetition (of decode steps: of a token), ns.")]


class ComparedTest(Part):
    """A test, or steps of one kind, in both runs."""

    name: Annotated[str, says("What it is called in both.")]
    kind: Annotated[str, says("`slower`, `faster`, `same`, `unclear`, `unknown` (no spread), `new` or `gone`.")]
    time_ratio: Annotated[float | None, says("Time of the candidate over that of the base: above 1 is slower.")]
    interval: Annotated[tuple[float, float] | None, says("What holds the ratio in 95 of 100 such pairs of runs.")]
    base_repetitions: Count
    base_mean_ns: MeanNs
    base_stddev_ns: Deviation
    base_tokens_per_s: Rate
    base_tokens_per_s_stddev: Deviation
    candidate_repetitions: Count
    candidate_mean_ns: MeanNs
    candidate_stddev_ns: Deviation
    candidate_tokens_per_s: Rate
    candidate_tokens_per_s_stddev: Deviation


class ComparedTests(Document):
    """Tests of two runs side by side."""

    verdict: Annotated[
        str, says("`slower`, `faster`, `both`, `no difference`, `unclear` or `not comparable`, of all tests.")
    ]
    stops: Annotated[str | None, says("Why they can't be compared; null where they can. Its words may change.")]
    base: Annotated[str, says("The base's file.")]
    candidate: Annotated[str, says("The candidate's file.")]
    tests: list[ComparedTest]
    setup: Annotated[list[SetupChange], says("Settings and versions that differ.")]
    remarks: Remarks
    losses: LossesOfBoth


DOCUMENT = ComparedTests
