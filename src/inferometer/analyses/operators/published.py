"""The catalogue's figures as they were published, from work, bytes and peaks: bounds, S, intensity, regime, medians.

These reproduce a data page whose bound is one number, max(W / peak, Q / bandwidth), all work charged to the matrix
units; `bounds` has bounds that hold. Leaves out the page's rounding: reports round.

Source: Atrex-Bench, commit eb8697d, its data page and roofline files.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from inferometer.hardware.device import Device
from inferometer.operators.operator import Operator
from inferometer.operators.shapes import Shape

Regime = Literal["C", "M", "I"]
PLATFORMS = ("H20", "XPU-A")
"""Devices that bounds were published for; deployed kernels were timed on the second."""
DEPLOYED = "XPU-A"

_MOST_INDEXING, _MOST_MEMORY = 0.01, 10.0  # FLOP/byte; hardware plays no part
_PEAK_OF = {"fp8_e4m3": "fp8", "fp32": "fp32", "int32": None}

T = TypeVar("T")


@dataclass(frozen=True)
class Headline:
    """A row of the page's second table: of one shape, or the median of each column over all shapes.

    `index` is the shape's, None for medians. Times in ns.
    """

    index: int | None
    regime: Regime | None
    arithmetic_intensity: float | None
    t_sol_ns: dict[str, float]
    t_prod_ns: float


def published_bound_ns(operator: Operator, shape: Shape, device: Device) -> float | None:
    """max(W / peak of the operator's dtype, Q / bandwidth) in ns; None where the device's data lacks one of them."""
    cost, bandwidth = operator.published_cost(shape), device.memory_bandwidth
    if bandwidth is None or cost.flops is None or cost.written_bytes is None:
        return None
    memory_ns = 1e9 * (cost.read_bytes + cost.written_bytes) / bandwidth.value
    dtype = operator.catalogue().dtype
    kind = _PEAK_OF.get(dtype, dtype)
    if kind is None or not cost.flops:
        return memory_ns
    peak = device.vector.get("fp32") if kind == "fp32" else device.matrix.get(kind)  # type: ignore[call-overload]
    return None if peak is None else max(memory_ns, 1e9 * cost.flops / peak.value)


def arithmetic_intensity(operator: Operator, shape: Shape) -> float:
    """Published FLOPs over published bytes."""
    cost = operator.published_cost(shape)
    return (cost.flops or 0) / (cost.read_bytes + (cost.written_bytes or 0))


def regime_of(operator: Operator) -> Regime | None:
    """Compute, memory or indexing: by the upper median of the intensity over all shapes; None without any."""
    middle = median_intensity(operator)
    if middle is None:
        return None
    return "C" if middle > _MOST_MEMORY else "I" if middle < _MOST_INDEXING else "M"


def median_intensity(operator: Operator) -> float | None:
    """Upper median over all shapes; None where none is published."""
    found = [arithmetic_intensity(operator, shape) for shape in operator.catalogue().shapes]
    return upper_median(found) if found else None


def headline(operator: Operator, device_of: Callable[[str], Device]) -> Headline:
    """The published row: of the middle shape by index, whatever that shape is."""
    shapes = operator.catalogue().shapes
    shape = shapes[len(shapes) // 2]
    return Headline(
        shape.index,
        regime_of(operator),
        arithmetic_intensity(operator, shape),
        {name: _bound(operator, shape, device_of(name)) for name in PLATFORMS},
        shape.published.t_prod_ns[DEPLOYED],
    )


def median_headline(operator: Operator, device_of: Callable[[str], Device]) -> Headline:
    """The same row with the upper median of each column, each over all shapes."""
    shapes = operator.catalogue().shapes
    return Headline(
        None,
        regime_of(operator),
        median_intensity(operator),
        {name: _median_bound(operator, device_of(name)) for name in PLATFORMS},
        upper_median([shape.published.t_prod_ns[DEPLOYED] for shape in shapes]),
    )


def upper_median(values: Sequence[float]) -> float:
    """The middle of sorted values; of two middles the greater, as the page has it."""
    return sorted(values)[len(values) // 2]


def _median_bound(operator: Operator, device: Device) -> float:
    return upper_median([_bound(operator, shape, device) for shape in operator.catalogue().shapes])


def _bound(operator: Operator, shape: Shape, device: Device) -> float:
    found = published_bound_ns(operator, shape, device)
    assert found is not None, "platforms have all that published bounds need"
    return found
