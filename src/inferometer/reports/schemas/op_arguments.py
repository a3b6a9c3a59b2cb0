"""`kernels --by op-args`: time by op and its arguments."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Launches, Losses, Part, Remarks, Share, Source, TotalNs, says


class OpCall(Part):
    """An op and its arguments; launches without a known op are one row, whose `op` is null."""

    number: Annotated[int | None, says("Its number, as `replay --op` takes it.")]
    op: Annotated[str | None, says("The op.")]
    input_dims: Annotated[str | None, says("Shapes, as recorded.")]
    input_dtypes: Annotated[str | None, says("Types, as recorded.")]
    input_strides: Annotated[str | None, says("Strides, as recorded.")]
    scalars: Annotated[str | None, says("Other arguments, as recorded.")]
    calls: Annotated[int | None, says("Whole calls of it.")]
    cut_calls: Annotated[int | None, says("Calls of which only some launches are selected.")]
    launches: Launches
    total_ns: TotalNs
    share: Share
    mean_of_call_ns: Annotated[float | None, says("Device time of a call, on the mean, ns.")]
    flops: Annotated[int | None, says("Modelled, of one call; null with a `reason`.")]
    read_bytes: Annotated[int | None, says("Modelled, of one call.")]
    write_bytes: Annotated[int | None, says("Modelled, of one call.")]
    flops_per_s: Annotated[float | None, says("Modelled FLOPs over the measured time.")]
    bytes_per_s: Annotated[float | None, says("Modelled bytes over the measured time.")]
    reason: Annotated[str | None, says("Why it isn't modelled. Its words may change.")]


class OpArguments(Document):
    """Time by op and its arguments."""

    source: Source
    total_ns: TotalNs
    rows: Annotated[list[OpCall], says("The most time first.")]
    remarks: Remarks
    losses: Losses


DOCUMENT = OpArguments
