"""`timeline`: whether devices are idle and why, what is exposed, which rank lags."""

from typing import Annotated

from inferometer.reports.schemas.fields import DeviceName, Document, Kernel, Losses, Part, Rank, Remarks, Source, says

PerSlice = Annotated[list[int], says("ns in each slice.")]
GroupName = Annotated[str | None, says("The process group, as the source names it.")]


class DeviceExposure(Part):
    """Where a device's window went. Compute, exposed communication, exposed copies and idle time add up to it."""

    rank: Rank
    device: DeviceName
    launches: Annotated[int, says("Launches on it.")]
    from_ns: Annotated[int, says("Beginning of the window on the trace's clock, ns.")]
    window_ns: Annotated[int, says("Length of the window, ns.")]
    busy_share: Annotated[float | None, says("Busy time of the window, 0 to 1; null for a window of 0 ns.")]
    busy_ns: Annotated[int, says("Time in which anything ran, ns.")]
    idle_ns: Annotated[int, says("Time in which nothing ran, ns.")]
    compute_busy_ns: Annotated[int, says("Time in which compute ran, ns.")]
    communication_busy_ns: Annotated[int, says("Time in which communication ran, ns.")]
    exposed_communication_ns: Annotated[int, says("Time in which communication ran and no compute, ns.")]
    hidden_communication_share: Annotated[float | None, says("Of communication what compute hides, 0 to 1.")]
    copy_busy_ns: Annotated[int, says("Time in which copies or memory sets ran, ns.")]
    exposed_copy_ns: Annotated[int, says("Time in which they ran and nothing else, ns.")]
    concurrent_ns: Annotated[int, says("Time in which at least two launches ran, ns.")]
    summed_ns: Annotated[int, says("Sum of all durations, ns.")]


class StreamTimes(Part):
    """One stream of a device."""

    rank: Rank
    device: DeviceName
    stream: Annotated[int | None, says("The stream, as the source numbers it.")]
    mostly: Annotated[str, says("What takes most of its time: `compute`, `communication` or `copy`.")]
    launches: Annotated[int, says("Launches on it.")]
    busy_share: Annotated[float | None, says("Its busy time of the device's window, 0 to 1.")]
    busy_ns: Annotated[int, says("Time in which anything ran on it, ns.")]
    summed_ns: Annotated[int, says("Sum of its durations, ns.")]
    longest_gap_ns: Annotated[int | None, says("Longest time in which nothing ran on it, ns.")]


class IdleCause(Part):
    """Idle time of a device by cause."""

    rank: Rank
    device: DeviceName
    cause: Annotated[
        str, says("`host_late`, `sync`, `dependency`, `launch_gap`, `graph`, `recorder`, or `unknown` without calls.")
    ]
    idle_ns: Annotated[int, says("Idle time of that cause, ns.")]
    share: Annotated[float | None, says("Of the device's idle time, 0 to 1.")]
    count: Annotated[int, says("How many pieces of gaps: a gap that has several causes is a piece of each.")]
    longest_ns: Annotated[int, says("The longest, ns.")]


class Gap(Part):
    """A time in which a device ran nothing. What isn't recorded of the call that ended it is null."""

    at_ns: Annotated[int, says("Its beginning since `origin_ns`, ns.")]
    gap_ns: Annotated[int, says("How long, ns.")]
    rank: Rank
    device: DeviceName
    gap_start_ns: Annotated[int, says("Its beginning on the trace's clock, ns.")]
    cause: Annotated[str, says("As of `idle_causes`.")]
    waited_in: Annotated[str | None, says("The call in which the host was waiting when the device went idle.")]
    wait_end_ns: Annotated[int | None, says("When that call returned, on the trace's clock, ns.")]
    api: Annotated[str | None, says("The call that queued the work that ended it.")]
    called_ns: Annotated[int | None, says("When that call began, ns.")]
    call_end_ns: Annotated[int | None, says("When it ended, ns.")]
    called_after_ns: Annotated[int | None, says("From the gap's beginning to the call, ns; negative: before.")]
    call_ns: Annotated[int | None, says("How long the call took, ns.")]
    stream: Annotated[int | None, says("The stream of what ended it.")]
    kernel: Kernel
    after: Annotated[str | None, says("The kernel before it.")]


class RankTimes(Part):
    """A rank against the others; null where nothing could be compared."""

    rank: Rank
    device: DeviceName
    compute_busy_ns: Annotated[int, says("Time in which compute ran, ns.")]
    against_mean: Annotated[float | None, says("That time over the mean of all ranks, less 1.")]
    compared: Annotated[int | None, says("Collectives that were compared.")]
    compared_ns: Annotated[int | None, says("Their time, ns.")]
    last: Annotated[int | None, says("How often it arrived last.")]
    waited_ns: Annotated[int | None, says("How long it waited for others in them, ns.")]
    kept_waiting_ns: Annotated[int | None, says("How long all others waited for it, ns.")]
    last_share: Annotated[float | None, says("Of the collectives compared, 0 to 1.")]


class Message(Part):
    """What collectives exchange, where the source records it."""

    rank: Rank
    device: DeviceName
    collective: Annotated[str | None, says("The collective.")]
    dtype: Annotated[str | None, says("The type of the data, as the source has it.")]
    message_bytes: Annotated[int | None, says("Bytes of one.")]
    group: GroupName
    group_size: Annotated[int | None, says("Ranks in that group.")]
    kernel: Kernel
    count: Annotated[int, says("How often.")]
    dur_ns: Annotated[int, says("Sum of the durations, ns.")]
    bytes_per_s: Annotated[float | None, says("Algorithm bandwidth: bytes of all over that time.")]


class Collective(Part):
    """A kind of collective on all ranks."""

    kernel: Kernel
    collective: Annotated[str | None, says("The collective.")]
    group: GroupName
    ranks: Annotated[int, says("Ranks that have it.")]
    fewest: Annotated[int, says("Launches on the rank with the fewest.")]
    most: Annotated[int, says("Launches on the rank with the most.")]
    compared: Annotated[int | None, says("How many were compared; null: none could be.")]
    waited_ns: Annotated[int | None, says("How long ranks waited in these, summed, ns.")]
    step_ns: Annotated[float | None, says("How far ranks are from leaving in step, median, ns.")]
    not_compared: Annotated[str | None, says("Why they weren't compared. Its words may change.")]


class Lane(Part):
    """A line of the strip. In each slice the four times add up to its length."""

    rank: Rank
    device: DeviceName
    stream: Annotated[int | None, says("The stream; null of the whole device.")]
    whole: Annotated[bool, says("Whether it is the device, all streams together.")]
    compute_ns: PerSlice
    exposed_communication_ns: PerSlice
    exposed_copy_ns: PerSlice
    idle_ns: PerSlice


class Strip(Part):
    """The window cut into slices."""

    edges_ns: Annotated[list[int], says("Bounds of the slices on the trace's clock, ns; one more than slices.")]
    lanes: list[Lane]


class Timeline(Document):
    """What devices did when, and why they were idle."""

    source: Source
    origin_ns: Annotated[int, says("The trace's earliest time on its clock, ns.")]
    launch_gap_limit_ns: Annotated[int, says("A gap between queued launches up to so long is a `launch_gap`, ns.")]
    devices: list[DeviceExposure]
    streams: list[StreamTimes]
    idle_causes: list[IdleCause]
    gap_count: Annotated[int, says("How many gaps all the pieces of `idle_causes` are of.")]
    gaps: Annotated[list[Gap], says("The longest, as many as `--top` says.")]
    ranks: Annotated[list[RankTimes], says("Empty where there is one rank and device only.")]
    messages: list[Message]
    compute_imbalance: Annotated[float | None, says("The largest compute time over the mean of all ranks, less 1.")]
    collectives: Annotated[list[Collective], says("Empty where there is one rank and device only.")]
    strip: Strip
    remarks: Remarks
    losses: Losses


DOCUMENT = Timeline
