"""`kernels --model-config`: each kernel of an engine's log with its least work and bounds."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Kernel, Losses, Part, Remarks, Source, says


class ElementBytes(Part):
    """Bytes of one number."""

    weight: Annotated[float, says("Of a weight.")]
    activation: Annotated[float, says("Of an activation.")]
    kv: Annotated[float, says("In the KV cache.")]


class BandwidthBound(Part):
    """Bounds at one bandwidth, of one unit."""

    bandwidth_bytes_per_s: Annotated[float, says("The bandwidth of memory.")]
    memory_bound_ns: Annotated[float | None, says("Bytes over that, ns.")]
    compute_bound_ns: Annotated[float | None, says("FLOPs over the device's peak, ns; null without a device.")]
    bound_ns: Annotated[float | None, says("The larger one, ns.")]
    bound: Annotated[str | None, says("Which one that is.")]
    sol_fraction: Annotated[float | None, says("Bound over measured; above 1, bytes or bandwidth aren't as assumed.")]


class ModelRow(Part):
    """A class of kernels in one phase. What is modelled is null where its part in the model isn't known."""

    phase: Annotated[str | None, says("`prefill` or `decode`.")]
    kernel: Kernel
    roles: Annotated[list[str], says("Its parts in the model.")]
    layers: Annotated[int, says("Layers that it is in; 0 where it is in none.")]
    steps: Annotated[int, says("Steps that it is in.")]
    unit: Annotated[str, says("What figures are of: `token` or `step`.")]
    units: Annotated[int, says("How many of these.")]
    total_ns: Annotated[int, says("Its time, as printed, ns.")]
    share: Annotated[float | None, says("Of the phase, 0 to 1.")]
    measured_ns: Annotated[float | None, says("Its time of one unit, ns.")]
    flops: Annotated[float | None, says("Modelled, of one unit.")]
    weight_bytes: Annotated[float | None, says("Modelled, of one unit: bytes of weights read.")]
    moved_bytes: Annotated[float | None, says("Modelled, of one unit: all bytes moved.")]
    bytes_per_s: Annotated[float | None, says("Modelled bytes over measured time.")]
    flops_per_s: Annotated[float | None, says("Modelled FLOPs over measured time.")]
    best_bytes_per_s: Annotated[float | None, says("The highest rate of any class of the run.")]
    bounds: list[BandwidthBound]


class ModelBounds(Document):
    """Each kernel's work, rate and bounds."""

    source: Source
    model: Annotated[str, says("The model whose dimensions these are.")]
    bytes_an_element: ElementBytes
    device: Annotated[str | None, says("The device that bounds are of; null: bandwidths alone.")]
    bandwidths_bytes_per_s: Annotated[list[float], says("Bandwidths of memory that bounds are at.")]
    rows: list[ModelRow]
    unclaimed: Annotated[dict[str, list[str]], says("Parts of the model that no kernel names, by phase.")]
    remarks: Remarks
    losses: Losses


DOCUMENT = ModelBounds
