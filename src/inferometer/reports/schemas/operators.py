"""`operators`: the operators of the catalogue, with their shapes and bounds on a device."""

from typing import Annotated, Any

from inferometer.hardware.device import Quantity
from inferometer.reports.schemas.fields import Part, SchemaMark, says


class Upstream(Part):
    """Where the operator is from."""

    framework: Annotated[str, says("The framework.")]
    symbol: Annotated[str, says("What it is called there.")]
    module: Annotated[str, says("Where it is there.")]


class Work(Part):
    """The least work of one call, modelled."""

    dtype: Annotated[str | None, says("Type of matrix products; null where there are none.")]
    matrix_flops: Annotated[int, says("Of matrix units.")]
    vector_flops: Annotated[int, says("Of vector units.")]
    special_ops: Annotated[int, says("Special functions.")]
    read_bytes: Annotated[int, says("Bytes read.")]
    written_bytes: Annotated[int, says("Bytes written.")]
    chain: Annotated[int, says("Operations that wait for each other.")]
    assumes: Annotated[list[str], says("What shapes don't say. Their words may change.")]


class NamedBounds(Part):
    """Lower bounds of the time by name; null where there is nothing of the kind, or no peak is known."""

    dependency_ns: Annotated[float | None, says("Of operations that wait for each other, ns.")]
    matrix_ns: Annotated[float | None, says("Of matrix units, ns.")]
    vector_ns: Annotated[float | None, says("Of vector units, ns.")]
    special_ns: Annotated[float | None, says("Of special functions, ns.")]
    memory_ns: Annotated[float | None, says("Of memory, ns.")]
    memory_warm_ns: Annotated[float | None, says("Of L2, where all that moves fits into it, ns.")]


class Fractions(Part):
    """Each bound over the deployed time."""

    dependency: Annotated[float | None, says("Of operations that wait for each other.")]
    matrix: Annotated[float | None, says("Of matrix units.")]
    vector: Annotated[float | None, says("Of vector units.")]
    special: Annotated[float | None, says("Of special functions.")]
    memory: Annotated[float | None, says("Of memory.")]


class PublishedFigures(Part):
    """What was published of a shape, in the publisher's units."""

    w_flops: Annotated[int, says("FLOPs.")]
    q_bytes: Annotated[int, says("Bytes moved.")]
    q_read_bytes: Annotated[int, says("Bytes read.")]
    q_written_bytes: Annotated[int, says("Bytes written.")]
    t_sol_us: Annotated[dict[str, float], says("Bound by device, µs.")]
    t_prod_us: Annotated[float | None, says("Time of a deployed kernel, µs.")]
    implementation: Annotated[str | None, says("Which kernel that is.")]
    s: Annotated[float | None, says("Bound over that time.")]
    carried: Annotated[list[str], says("Figures that no formula gives.")]


class Traced(Part):
    """What was seen of a shape in traces; null is what isn't known."""

    frameworks: Annotated[list[str], says("Frameworks that call it.")]
    tensor_parallel: Annotated[int | None, says("Ranks that share a layer.")]
    calls: Annotated[int | None, says("Calls seen.")]
    mean_ns: Annotated[float | None, says("Mean time of a call, ns.")]


class BoundShape(Part):
    """One shape on the device."""

    index: Annotated[int, says("Its number.")]
    label: Annotated[str, says("As published.")]
    args: Annotated[dict[str, Any], says("The operator's arguments.")]
    flops: Annotated[int, says("All operations of one call, modelled.")]
    bytes: Annotated[int, says("Bytes that one call moves, modelled.")]
    work: Work
    bounds: NamedBounds
    bound_ns: Annotated[float | None, says("The largest bound, ns; null where no peak is known.")]
    binding: Annotated[str, says("Which one that is, or `unknown`.")]
    launch_ns: Annotated[float | None, says("What a launch that does nothing takes, ns; a reference, no bound.")]
    sources: Annotated[dict[str, str], says("By bound: whether its peak is `measured`, `datasheet` or `derived`.")]
    deployed_ns: Annotated[float | None, says("Published time of a deployed kernel on this device, ns.")]
    sol_fraction: Annotated[float | None, says("Bound over deployed time; above 1, they aren't of the same work.")]
    sol_fractions: Annotated[Fractions, says("Each bound over the deployed time.")]
    published: PublishedFigures
    traced: Traced
    flags: Annotated[list[str], says("What is odd about it.")]


class CatalogueOperator(Part):
    """One operator."""

    id: Annotated[str, says("Its published number.")]
    name: Annotated[str, says("Its name.")]
    summary: Annotated[str, says("What it does, in words.")]
    dtype: Annotated[str, says("Type of its data.")]
    status: Annotated[str, says("How well founded its shapes are.")]
    phase: Annotated[str, says("`prefill`, `decode` or both.")]
    upstream: Upstream
    importance: Annotated[float, says("Published share of GPU time; profiles overlap.")]
    importance_normalised: Annotated[float, says("The same of all operators', 0 to 1.")]
    profiles: Annotated[int, says("Profiles that it is in.")]
    regime: Annotated[str, says("`C` compute, `M` memory, `I` in between.")]
    arithmetic_intensity: Annotated[float | None, says("FLOPs over bytes, median over shapes.")]
    sol_fraction: Annotated[float | None, says("Bound over deployed time, upper median over shapes.")]
    published_s: Annotated[float | None, says("The published one, upper median over shapes.")]
    shapes_below_launch: Annotated[int | None, says("Shapes whose bound is below what a launch takes.")]
    shapes: list[BoundShape]


class OperatorsOnDevice(Part):
    """Operators on one device."""

    device: Annotated[str, says("The device that bounds are of.")]
    launch: Annotated[Quantity | None, says("What a launch that does nothing takes; null where that isn't known.")]
    no_launch: Annotated[str | None, says("Why it isn't known.")]
    operators: Annotated[list[CatalogueOperator], says("The most important first.")]


class Operators(OperatorsOnDevice):
    """The catalogue on one device."""

    schema: SchemaMark


DOCUMENT = Operators
