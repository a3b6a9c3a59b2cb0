"""`inferometer.summarize`: what a file is and where the time of its devices went."""

from typing import Annotated

from msgspec import UNSET, UnsetType

from inferometer.reports.schemas.fields import (
    Basis,
    DeviceName,
    Losses,
    Part,
    Rank,
    Remarks,
    SchemaMark,
    Section,
    Source,
    says,
)
from inferometer.reports.schemas.kernels import KernelRow, KernelTable
from inferometer.trace.facts import Facts


class DeviceTimes(Part, kw_only=True):
    """One device's window, from its first launch to the end of its last one. Busy and idle time add up to it."""

    rank: Annotated[Rank | UnsetType, says("Rank of the process; absent where no device has one.")] = UNSET
    device: DeviceName
    name: Annotated[str | None, says("What the file calls it.")]
    launches: Annotated[int, says("Launches of any kind.")]
    window_ns: Annotated[int, says("Length of the window, ns.")]
    busy_share: Annotated[float | None, says("Busy time of the window, 0 to 1; null for a window of 0 ns.")]
    busy_ns: Annotated[int, says("Time in which anything ran, ns: a union of intervals.")]
    idle_ns: Annotated[int, says("Time in which nothing ran, ns.")]
    kernel_busy_ns: Annotated[int, says("Time in which a kernel ran, ns.")]
    copy_busy_ns: Annotated[int, says("Time in which a memory copy or set ran, ns.")]
    overlap_ns: Annotated[int, says("Time in which both ran, ns.")]
    kernel_summed_ns: Annotated[int, says("Sum of the durations of kernels, ns.")]


class TestTimes(Part):
    """A test of a benchmark. Statistics are null where the source doesn't have them."""

    test: Annotated[str, says("Its name, with the settings in which tests of the file differ.")]
    phase: Annotated[str | None, says("`prefill`, `decode` or `mixed`.")]
    batch: Annotated[int | None, says("Sequences that ran at once.")]
    prefill_tokens: Annotated[int | None, says("Prompt tokens of a repetition.")]
    decode_tokens: Annotated[int | None, says("Tokens that a repetition generated.")]
    context_len: Annotated[int | None, says("Tokens in the KV cache before a repetition.")]
    repetitions: Annotated[int | None, says("How many there were.")]
    mean_ns: Annotated[float | None, says("Mean time of a repetition, ns.")]
    stddev_ns: Annotated[float | None, says("Sample standard deviation of that, ns.")]
    tokens_per_s: Annotated[float | None, says("Mean of the rates of the repetitions.")]
    tokens_per_s_stddev: Annotated[float | None, says("Its sample standard deviation.")]


class LogLine(Part):
    """One line of an engine's log. A column that is null in all lines is absent."""

    line: Annotated[int | UnsetType, says("Its number in the file.")] = UNSET
    time_ns: Annotated[int | UnsetType | None, says("When, on the trace's clock, ns.")] = UNSET
    level: Annotated[str | UnsetType | None, says("Its level.")] = UNSET
    source: Annotated[str | UnsetType | None, says("Who wrote it.")] = UNSET
    kind: Annotated[str | UnsetType | None, says("What it is about.")] = UNSET
    text: Annotated[str | UnsetType | None, says("The line.")] = UNSET
    fields: Annotated[str | UnsetType | None, says("What was read from it, as JSON.")] = UNSET


class SummaryParts(Part):
    """What a file is and where time went."""

    source: Source
    facts: Annotated[Facts, says("What the file says about itself; what it doesn't say is absent.")]
    start_ns: Annotated[int | None, says("Earliest time of anything, on the trace's clock, ns; null without times.")]
    duration_ns: Annotated[int | None, says("From there to the latest end, ns.")]
    rows: Annotated[dict[str, int], says("Rows of each table of the trace.")]
    devices: list[DeviceTimes]
    total_ns: Annotated[int, says("Sum of the durations of kernels, ns.")]
    basis: Basis
    section: Section
    top_kernels: Annotated[list[KernelRow], says("The kernels with the most time, as many as `--top` says.")]
    other_sections: Annotated[list[KernelTable], says("Tables of the source's other sections; never to be added up.")]
    tests: Annotated[list[TestTimes], says("Of a benchmark's result.")]
    log: Annotated[list[LogLine], says("The first 10,000 lines, where the trace is made of printed sums.")]
    remarks: Remarks
    losses: Losses


class TraceSummary(SummaryParts):
    """What a file is and where the time of its devices went."""

    schema: SchemaMark


DOCUMENT = TraceSummary
