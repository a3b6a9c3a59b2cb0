"""`ops`: what ops must do by their arguments."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Losses, Part, Remarks, Source, says


class WorkOfOp(Part):
    """An op and its arguments."""

    op: Annotated[str, says("The op.")]
    family: Annotated[str | None, says("Of ops that are counted alike; null where there is no model.")]
    input_dims: Annotated[str | None, says("Shapes, as recorded.")]
    input_dtypes: Annotated[str | None, says("Types, as recorded.")]
    input_strides: Annotated[str | None, says("Strides, as recorded.")]
    scalars: Annotated[str | None, says("Other arguments, as recorded.")]
    calls: Annotated[int, says("Calls of it.")]
    counted: Annotated[int, says("Those that count: their work is known, and that of no call around them.")]
    flops: Annotated[int | None, says("Modelled, of one call; null with a `reason`.")]
    read_bytes: Annotated[int | None, says("Modelled, of one call.")]
    write_bytes: Annotated[int | None, says("Modelled, of one call.")]
    bound_ns: Annotated[float | None, says("The least time of one call on the device, ns; null without a device.")]
    binding: Annotated[str | None, says("Which bound that is.")]
    reason: Annotated[str | None, says("Why it isn't modelled or bounded. Its words may change.")]
    total_flops: Annotated[int | None, says("Of all that count.")]
    total_bytes: Annotated[int | None, says("Read and written by all that count.")]
    total_bound_ns: Annotated[float | None, says("The least time of all that count, ns.")]


class OpWork(Document):
    """Ops by what they were called with. Calls are counted, inside a counted one, without data, or unknown."""

    source: Source
    device: Annotated[str | None, says("What bounds are of; null: none was named.")]
    has_times: Annotated[bool, says("Whether the ops were recorded with times; those of an execution trace aren't.")]
    calls: Annotated[int, says("All calls.")]
    counted: Annotated[int, says("Those that count.")]
    inside: Annotated[int, says("Those within one that counts.")]
    without_data: Annotated[int, says("Views, allocations and wrappers of ops inside them, within none that counts.")]
    unknown: Annotated[int, says("Others whose work isn't known, and that are within none that counts.")]
    flops: Annotated[int, says("Of all that count.")]
    bytes: Annotated[int, says("Read and written by all that count.")]
    bound_ns: Annotated[float | None, says("The sum of their least times, ns; null without a device.")]
    rows: Annotated[list[WorkOfOp], says("The most time first where a device is known, else the most FLOPs.")]
    remarks: Remarks
    losses: Losses


DOCUMENT = OpWork
