"""`calls`: driver and runtime calls, launch delay, the queues of devices, and waits."""

from typing import Annotated

from inferometer.reports.schemas.fields import (
    DeviceName,
    Document,
    Losses,
    Part,
    Rank,
    Remarks,
    Source,
    Statistics,
    says,
)


class Api(Statistics):
    """One call of the driver or runtime."""

    api: Annotated[str, says("Its name.")]


class LaunchDelay(Part):
    """From a call to its work on the device; null where no call has work in the file."""

    api: Annotated[str | None, says("The call; null: all of them.")]
    calls: Annotated[int, says("Calls.")]
    launches: Annotated[int, says("Launches that they queued.")]
    launches_per_call: Annotated[float | None, says("Launches of a call, on the mean.")]
    delay_min_ns: Annotated[int | None, says("From the call's beginning to that of its work: shortest, ns.")]
    delay_median_ns: Annotated[float | None, says("Median of it, ns.")]
    delay_p95_ns: Annotated[float | None, says("95th percentile of it, ns.")]
    delay_p99_ns: Annotated[float | None, says("99th percentile of it, ns.")]
    delay_max_ns: Annotated[int | None, says("Longest, ns.")]
    queued_min_ns: Annotated[
        int | None,
        says("From the call's end to the beginning of its work: shortest, ns; negative where it began before."),
    ]
    queued_median_ns: Annotated[float | None, says("Median of it, ns.")]
    queued_p95_ns: Annotated[float | None, says("95th percentile of it, ns.")]
    queued_p99_ns: Annotated[float | None, says("99th percentile of it, ns.")]
    queued_max_ns: Annotated[int | None, says("Longest, ns.")]


class Queue(Part):
    """A device's queue: launches whose call has begun and which the device has not. Three times make the window."""

    rank: Rank
    device: DeviceName
    launches: Annotated[int, says("Launches on it.")]
    queued_launches: Annotated[int, says("Of these, launches whose call is in the file.")]
    start_ns: Annotated[int, says("Beginning of the window on the trace's clock, ns.")]
    window_ns: Annotated[int, says("From the first launch to the end of the last one, ns.")]
    mean_depth: Annotated[float | None, says("Launches that wait, on the mean over the window.")]
    max_depth: Annotated[int | None, says("The most that wait at once.")]
    busy_ns: Annotated[int, says("Time in which the device ran anything, ns.")]
    queued_idle_ns: Annotated[int, says("Time idle with work queued, ns.")]
    starved_ns: Annotated[int, says("Time idle with nothing queued, ns.")]


class QueueSlice(Part):
    """A slice of the window of a device's queue."""

    rank: Rank
    device: DeviceName
    start_ns: Annotated[int, says("Its beginning on the trace's clock, ns.")]
    end_ns: Annotated[int, says("Its end, ns.")]
    mean_depth: Annotated[float | None, says("Launches that wait, on the mean.")]
    max_depth: Annotated[int | None, says("The most that wait at once.")]


class Wait(Part):
    """A call in which the host waits for a device."""

    api: Annotated[str, says("The call.")]
    kind: Annotated[str, says("`synchronize` or `copy`.")]
    count: Annotated[int, says("Calls that waited.")]
    of_calls: Annotated[int, says("Of so many.")]
    total_ns: Annotated[int, says("Time in these calls, ns.")]
    max_ns: Annotated[int, says("The longest, ns.")]
    idle_ns: Annotated[
        int | None, says("Of that time, when no device of the process worked, ns; null without launches.")
    ]
    idle_share: Annotated[float | None, says("The one of the other, 0 to 1.")]


class Calls(Document):
    """Host calls by API, and what came of them on the device."""

    source: Source
    total_ns: Annotated[int, says("Sum of all calls selected, ns: calls inside others count twice.")]
    shown_ns: Annotated[int, says("Sum of the rows, ns.")]
    apis: Annotated[int, says("Rows before `--top` and `--match`.")]
    launches: Annotated[int, says("Device work selected.")]
    launches_without_call: Annotated[int, says("Of these, launches whose call is not in the file.")]
    rows: list[Api]
    launch_delay: list[LaunchDelay]
    queues: list[Queue]
    queue_series: list[QueueSlice]
    waits: list[Wait]
    remarks: Remarks
    losses: Losses


DOCUMENT = Calls
