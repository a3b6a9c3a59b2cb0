"""`compare --published`: the comparison that was published with LatencyPrism."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Losses, Part, says


class ComparedProcess(Part):
    """A process of one of the runs."""

    label: Annotated[str, says("What it is called.")]
    process: Annotated[int | None, says("Its number.")]
    cycles: Annotated[int, says("Its cycles.")]
    mean_cycle_us: Annotated[float | None, says("Their mean length, µs; null where no length is known.")]


class CycleRank(Part):
    """The k-th longest cycle of both; null where one has no more."""

    rank: Annotated[int, says("k.")]
    base_us: Annotated[float | None, says("Of the base, µs.")]
    candidate_us: Annotated[float | None, says("Of the candidate, µs.")]


class MetricMeans(Part):
    """A metric while a function ran."""

    metric: Annotated[str, says("The metric.")]
    base: Annotated[float, says("Mean in the base, in its own unit.")]
    candidate: Annotated[float, says("Mean in the candidate.")]


class PublishedFinding(Part):
    """A function that the published rule picks."""

    function: Annotated[str, says("The function.")]
    device: Annotated[str, says("Its device.")]
    beta_base: Annotated[float, says("Its part of the cycle in the base, %.")]
    beta_candidate: Annotated[float, says("The same in the candidate, %.")]
    p: Annotated[float, says("The published p-value.")]
    metrics: list[MetricMeans]


class ProcessComparison(Part):
    """Two processes."""

    pairing: Annotated[str, says("`strict` or `cross`.")]
    base: ComparedProcess
    candidate: ComparedProcess
    cycle_ranks: list[CycleRank]
    findings: list[PublishedFinding]
    table: Annotated[list[dict[str, str | float | None]], says("The published table, by the published titles.")]


class Published(Document):
    """The published comparison, pair of processes by pair."""

    scenario: Annotated[str, says("What the title calls the pair.")]
    comparisons: list[ProcessComparison]
    losses: Losses


DOCUMENT = Published
