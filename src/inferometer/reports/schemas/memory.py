"""`memory`: what an allocator of device memory held."""

from typing import Annotated

from inferometer.reports.schemas.fields import DeviceName, Document, Losses, Part, Rank, Remarks, Source, says


class DeviceMemory(Part):
    """One device. Its reserved bytes are the allocated ones and the free ones."""

    rank: Rank
    device: DeviceName
    reserved_bytes: Annotated[int | None, says("What the allocator has of the driver at the end; null: not recorded.")]
    allocated_bytes: Annotated[int, says("Of that, blocks that are in use.")]
    requested_bytes: Annotated[int | None, says("What the program asked for of these; null where not all say.")]
    rounding_bytes: Annotated[int | None, says("What blocks in use have more, as far as they say; null of records.")]
    free_bytes: Annotated[int | None, says("Reserved and not in use; null where reserved bytes are.")]
    largest_free_bytes: Annotated[int | None, says("The largest such block; null of records.")]
    events: Annotated[int, says("Events that were kept.")]
    peak_bytes: Annotated[int, says("The most that was allocated, as far as events go back.")]
    peak_event: Annotated[int, says("After how many events that was; 0: before the first.")]
    peak_ns: Annotated[int | None, says("When, on the file's clock, ns; null before the first event.")]
    before_bytes: Annotated[int, says("Allocated before the first event.")]
    mismatched_bytes: Annotated[
        int, says("About which the events and the state at the end, or the records' own totals, disagree.")
    ]
    refused: Annotated[int, says("Requests that the allocator had no memory for.")]


class Holder(Part):
    """What held memory at a device's peak."""

    rank: Rank
    device: DeviceName
    holder: Annotated[str, says("What `by` says: a frame, a file, a stack with the innermost first, ops, a module.")]
    bytes: Annotated[int, says("Of its blocks.")]
    blocks: Annotated[int | None, says("How many; null of what was allocated before the records began.")]
    share: Annotated[float | None, says("Of the peak, 0 to 1.")]


class MemorySlice(Part):
    """Some events of a device, one after the other."""

    rank: Rank
    device: DeviceName
    first_event: Annotated[int, says("After how many events it begins.")]
    time_ns: Annotated[int | None, says("When, ns; null before the first event.")]
    bytes: Annotated[int, says("The most that was allocated in it.")]


class Memory(Document):
    """Device memory over time."""

    source: Source
    by: Annotated[str, says("What holds memory: `frame`, `file`, `stack`, `op` or `module`.")]
    basis: Annotated[str, says("`snapshot`: of an allocator; `records`: of a profiler.")]
    devices: list[DeviceMemory]
    holders: list[Holder]
    series: list[MemorySlice]
    remarks: Remarks
    losses: Losses


DOCUMENT = Memory
