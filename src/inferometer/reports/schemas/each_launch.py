"""`launches --each`: one row per launch, with all that is known of it."""

from typing import Annotated

from inferometer.reports.schemas.fields import DeviceName, Document, Kernel, Losses, Part, Rank, Remarks, Source, says


class Launch(Part):
    """One execution of device work. What stood around its call is null where nothing of the kind did."""

    start_ns: Annotated[int, says("When the device began it, on the trace's clock, ns.")]
    dur_ns: Annotated[int, says("How long it ran, ns.")]
    kind: Annotated[str, says("`kernel`, `memcpy`, `memset` or `graph`.")]
    kernel: Kernel
    device: DeviceName
    stream: Annotated[int | None, says("The stream, as the source numbers it.")]
    rank: Rank
    how: Annotated[str, says("How it was attributed, or why not.")]
    op_chain: Annotated[str | None, says("Ops around the call, the outermost first.")]
    module: Annotated[str | None, says("The module's path.")]
    module_recorded: Annotated[str | None, says("The module as the source recorded it.")]
    frame: Annotated[str | None, says("The innermost Python frame.")]
    user_frame: Annotated[str | None, says("The innermost frame of the user's own code.")]
    span: Annotated[str | None, says("The innermost named range.")]
    region: Annotated[str | None, says("The compiled region.")]
    kernel_file: Annotated[str | None, says("The file of a compiled kernel.")]
    kernel_hash: Annotated[str | None, says("The hash of a compiled kernel.")]
    chain: Annotated[int | None, says("Its key in `chains`.")]


class EachLaunch(Document):
    """Every launch, in order of time."""

    source: Source
    launches: Annotated[int, says("Rows before `--top` and `--match`.")]
    rows: list[Launch]
    chains: Annotated[
        dict[str, list[tuple[str, str]]],
        says("All that stood around a call, outermost first: kind (span, frame, module, op, graph) and name."),
    ]
    remarks: Remarks
    losses: Losses


DOCUMENT = EachLaunch
