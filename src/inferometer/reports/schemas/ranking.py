"""`leaderboard RESULTS`: candidates in order by the results of bench."""

from typing import Annotated, Any

from msgspec import UNSET, UnsetType

from inferometer.bench.results import CandidateRecord, Conditions, ShapeResult
from inferometer.reports.schemas.fields import Document, Part, says
from inferometer.reports.schemas.ranking_differences import DifferenceParts, Figure
from inferometer.reports.schemas.report import Page


class RankedRun(Part):
    """A file of results, without these."""

    name: Annotated[str, says("The file.")]
    date: Annotated[str, says("UTC, ISO 8601.")]
    inferometer: Annotated[str, says("Version of inferometer.")]
    device: Annotated[str, says("Full name of the device.")]
    on: Annotated[str, says("Where it ran: `cpu`, `cuda:0`.")]
    functional_only: Annotated[bool, says("Whether it ran on a CPU: times show that kernels run, not how fast.")]
    stage: Annotated[str, says("`correct` or `fast`.")]
    versions: Annotated[dict[str, str], says("Versions of libraries.")]
    settings: Annotated[dict[str, Any], says("What was asked.")]
    contenders: Annotated[list[CandidateRecord], says("Whose kernels ran.")]
    conditions: Annotated[Conditions, says("The machine while it ran.")]
    format: Annotated[str, says("`inferometer-bench`.")]
    version: Annotated[int, says("Version of the file's form.")]


class Superseded(Part):
    """Results of a candidate that a newer file has again."""

    contender: Annotated[str, says("The candidate.")]
    operator: Annotated[str, says("The operator.")]
    run: Annotated[str, says("The older file.")]
    date: Annotated[str, says("Its date.")]
    shapes: Annotated[int, says("Shapes.")]


class Aggregates(Part):
    """S (bound over time) of several shapes as one number, four ways; null where there is none."""

    median: Annotated[Figure | None, says("Median.")]
    geometric_mean: Annotated[Figure | None, says("Geometric mean.")]
    mean: Annotated[Figure | None, says("Mean.")]
    time_weighted: Annotated[Figure | None, says("Sum of bounds over sum of times.")]


class OperatorScore(Part):
    """The shapes of one operator."""

    operator: Annotated[str, says("The operator.")]
    importance: Annotated[float | None, says("As published; null of one that the catalogue lacks.")]
    asked: Annotated[int, says("Shapes asked for.")]
    right: Annotated[int, says("Shapes that are right.")]
    with_fraction: Annotated[int, says("Shapes that have an S.")]
    below_launch: Annotated[int, says("Shapes whose bound is below what a launch takes.")]
    over_right: Annotated[Aggregates, says("Over the shapes that have an S.")]
    strict: Annotated[Aggregates, says("With 0 for each that is wrong or has no time.")]
    speedup: Annotated[Figure | None, says("Over the base, geometric mean.")]


class Score(Part):
    """A candidate over all shapes."""

    asked: Annotated[int, says("Shapes asked for.")]
    right: Annotated[int, says("Shapes that are right.")]
    timed: Annotated[int, says("Shapes that were timed.")]
    with_fraction: Annotated[int, says("Shapes that have an S.")]
    above_one: Annotated[int, says("Shapes whose S is above 1.")]
    importance_asked: Annotated[float, says("Importance of the operators asked for, of the catalogue's, 0 to 1.")]
    importance_covered: Annotated[float | None, says("Of that, importance of operators that have an S, 0 to 1.")]
    over_right: Annotated[Aggregates, says("Over the shapes that have an S, weighted by importance.")]
    strict: Annotated[Aggregates, says("With 0 for each that is wrong or has no time, weighted by importance.")]
    pooled: Annotated[Figure | None, says("Sum of bounds over sum of times.")]
    speedup: Annotated[Figure | None, says("Over the base, geometric mean.")]
    compared: Annotated[int, says("Shapes that this is of.")]
    fast: Annotated[
        dict[str, float] | None, says("By p: shapes that are right and faster than p times the base, 0 to 1.")
    ]
    below_launch: Annotated[int, says("Shapes whose bound is below what a launch takes.")]
    operators: list[OperatorScore]
    functional_only: Annotated[bool, says("Whether it ran on a CPU: right and wrong alone count.")]


class RankedShape(ShapeResult, frozen=True, kw_only=True):
    """A candidate's result of one shape, and what it comes to."""

    right: Annotated[bool, says("Whether it is right.")]
    sol_fraction: Annotated[float | None, says("Bound over time.")]
    no_sol_fraction: Annotated[str | None, says("Why there is none. Its words may change.")]


class RankedCandidate(Part):
    """A candidate on one device."""

    rank: Annotated[int | None, says("Its place; null where nothing decides.")]
    tied: Annotated[bool, says("Whether it can't be told from a neighbour.")]
    contender: Annotated[str, says("Its name.")]
    about: Annotated[CandidateRecord, says("Whose kernels these are.")]
    right: Annotated[bool, says("Whether every shape is right.")]
    own_share: Annotated[float | None, says("Of its time, in kernels of its own, 0 to 1; null where nothing tells.")]
    library: Annotated[bool, says("Whether most of its time is in kernels of others.")]
    runs: Annotated[list[str], says("Files that its results are from, the newest first.")]
    score: Score
    shapes: list[RankedShape]


class DeviceRanking(Part):
    """The candidates of one device."""

    device: Annotated[str, says("The device.")]
    functional_only: Annotated[bool, says("Whether it is a CPU: right and wrong alone count.")]
    by: Annotated[str, says("What decides: `score`, `speedup` or `nothing`.")]
    base: Annotated[str | None, says("The candidate that speedups are over.")]
    shapes: Annotated[int, says("Shapes that count: all candidates ran them.")]
    shapes_left_out: Annotated[int, says("Shapes that only some ran.")]
    superseded: list[Superseded]
    contenders: Annotated[list[RankedCandidate], says("The best first.")]


class Ranking(Document):
    """Candidates in order, for each device apart."""

    weighed_by: Annotated[
        str | None, says("The file of shapes whose weights are the importance; null: it is as published.")
    ]
    runs: list[RankedRun]
    devices: list[DeviceRanking]
    differences: Annotated[DifferenceParts | None, says("Where exactly two files were given.")]
    page: Annotated[Page | UnsetType, says("With `-o`: the page that was written.")] = UNSET


DOCUMENT = Ranking
