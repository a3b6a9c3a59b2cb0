"""`inferometer.json_of` of what changed between two results of `bench`: part of `ranking`."""

from typing import Annotated, Any

from inferometer.reports.schemas.fields import Part, SchemaMark, says

Verdict = Annotated[str | None, says("`same`, `faster`, `slower` or `unclear`; null where times aren't compared.")]


class Figure(Part):
    """A figure with its 95 % interval."""

    value: Annotated[float, says("The figure.")]
    low: Annotated[float, says("Lower end.")]
    high: Annotated[float, says("Upper end.")]


class Drift(Part):
    """What is known of the drift between the runs for one candidate."""

    candidate: Annotated[str, says("The candidate.")]
    base: Annotated[str | None, says("The kernel that was timed in turns with it in both runs.")]
    why: Annotated[str | None, says("Why there is none. Its words may change.")]
    by: Annotated[str | None, says("Whose change of the base is taken out: each `shape`'s, or the `median`.")]
    base_change: Annotated[float | None, says("Time of that kernel, candidate's run over base's, median.")]
    base_shapes: Annotated[int, says("Shapes that this is of.")]
    common: Annotated[float | None, says("Without such a kernel: the change of all shapes that was taken for drift.")]


class LevelChange(Part):
    """Of one operator of a candidate, or of all its shapes."""

    candidate: Annotated[str, says("The candidate.")]
    operator: Annotated[str | None, says("The operator; null: all together.")]
    shapes: Annotated[int, says("Shapes in it.")]
    speedup: Annotated[Figure, says("Base over candidate: above 1, the candidate is faster.")]
    verdict: Annotated[str, says("`same`, `faster`, `slower` or `unclear`.")]


class SetupDifference(Part):
    """One thing that isn't alike in both runs."""

    what: Annotated[str, says("What.")]
    base: Annotated[str | None, says("In the base; null where that isn't known.")]
    candidate: Annotated[str | None, says("In the candidate.")]


class ShapeDifference(Part):
    """One shape in both runs."""

    operator: Annotated[str, says("The operator.")]
    shape: Annotated[str, says("The shape, in words.")]
    index: Annotated[int | None, says("Of a published shape.")]
    args: Annotated[dict[str, Any], says("The operator's arguments.")]
    base: Annotated[str, says("The candidate's name in the base.")]
    candidate: Annotated[str, says("Its name in the candidate.")]
    base_right: Annotated[bool, says("Whether it is right in the base.")]
    candidate_right: Annotated[bool, says("Whether it is right in the candidate.")]
    became: Annotated[str | None, says("`right` or `wrong`, where that changed.")]
    mode: Annotated[str | None, says("Caches: `cold` or `warm`.")]
    base_ns: Annotated[float | None, says("Time of a call in the base, ns.")]
    candidate_ns: Annotated[float | None, says("The same in the candidate, ns.")]
    ratio: Annotated[float | None, says("Base over candidate, as they are.")]
    speedup: Annotated[Figure | None, says("Base over candidate, without drift.")]
    verdict: Verdict
    why: Annotated[str | None, says("Why times aren't compared. Its words may change.")]


class DifferenceParts(Part):
    """What changed between two runs of bench."""

    base: Annotated[str, says("The first file.")]
    candidate: Annotated[str, says("The second file.")]
    incomparable: Annotated[str | None, says("Why no times are compared. Its words may change.")]
    regressed: Annotated[bool, says("Whether anything became wrong or slower, or nothing tells.")]
    verdicts: Annotated[dict[str, int], says("Shapes, by verdict.")]
    speedup: Annotated[float | None, says("Geometric mean over the shapes whose times are compared.")]
    smallest_effect: Annotated[float, says("The smallest change that counts, as a share of the time.")]
    drift: Annotated[list[Drift], says("One for each candidate whose times are compared.")]
    candidates: Annotated[list[LevelChange], says("Each candidate as a whole.")]
    operators: Annotated[list[LevelChange], says("Each operator of these.")]
    changes: list[SetupDifference]
    unpaired: Annotated[list[str], says("Candidates that stand in one file alone.")]
    only_base: Annotated[int, says("Shapes of the others in the first file alone.")]
    only_candidate: Annotated[int, says("Shapes of the others in the second file alone.")]
    shapes: list[ShapeDifference]


class RankingDifferences(DifferenceParts):
    """What changed between two runs of bench."""

    schema: SchemaMark


DOCUMENT = RankingDifferences
