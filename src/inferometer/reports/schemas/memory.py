"""`memory`: what an allocator of device memory held."""

from typing import Annotated

from inferometer.reports.schemas.fields import DeviceName, Document, Losses, Part, Remarks, Source, says


class DeviceMemory(Part):
    """One device. Its reserved bytes are the allocated ones and the free ones."""

    device: DeviceName
    reserved_bytes: Annotated[int, says("What the allocator has of the driver at the end.")]
    allocated_bytes: Annotated[int, says("Of that, blocks that are in use.")]
    requested_bytes: Annotated[int | None, says("What the program asked for of these; null where not all say.")]
    rounding_bytes: Annotated[int, says("What blocks in use have more than was asked for, as far as they say.")]
    free_bytes: Annotated[int, says("Reserved and not in use.")]
    largest_free_bytes: Annotated[int, says("The largest such block.")]
    events: Annotated[int, says("Events that were kept.")]
    peak_bytes: Annotated[int, says("The most that was allocated, as far as events go back.")]
    peak_event: Annotated[int, says("After how many events that was; 0: before the first.")]
    peak_ns: Annotated[int | None, says("When, on the file's clock, ns; null before the first event.")]
    mismatched_bytes: Annotated[int, says("Of blocks on which the events and the state at the end disagree.")]


class Holder(Part):
    """What held memory at a device's peak."""

    device: DeviceName
    holder: Annotated[str, says("What `by` says: a frame, a file, or a stack with the innermost frame first.")]
    bytes: Annotated[int, says("Of its blocks.")]
    blocks: Annotated[int, says("How many.")]
    share: Annotated[float | None, says("Of the peak, 0 to 1.")]


class MemorySlice(Part):
    """Some events of a device, one after the other."""

    device: DeviceName
    first_event: Annotated[int, says("After how many events it begins.")]
    time_ns: Annotated[int | None, says("When, ns; null before the first event.")]
    bytes: Annotated[int, says("The most that was allocated in it.")]


class Memory(Document):
    """Device memory over time."""

    source: Source
    by: Annotated[str, says("What holds memory: `frame`, `file` or `stack`.")]
    devices: list[DeviceMemory]
    holders: list[Holder]
    series: list[MemorySlice]
    remarks: Remarks
    losses: Losses


DOCUMENT = Memory
