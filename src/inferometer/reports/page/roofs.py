"""What rooflines have in common: their axes, and the lines of what a device allows.

Intensity is FLOPs over bytes, the rate FLOP/s; both axes are logarithmic.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec

from inferometer.hardware.device import Device
from inferometer.reports.page.drawing import axis
from inferometer.reports.page.sampling import rounded

TERA = 1e12
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


class _Roof(msgspec.Struct, frozen=True):
    """A peak of the device, FLOP/s."""

    name: str
    peak: float


def intensity_axis() -> dict[str, Any]:
    """The horizontal one."""
    return axis("Arithmetic intensity, FLOP/B", type="log", dtick=1, exponentformat="power")


def rate_axis(what: str) -> dict[str, Any]:
    """The vertical one, in TFLOP/s; `what` says whose: attained, allowed."""
    return axis(f"TFLOP/s {what}", type="log", dtick=1, exponentformat="power")


def roof_lines(
    device: Device, dtypes: Collection[str | None], dots: Sequence[tuple[float, float]]
) -> list[dict[str, Any]]:
    """The slope of memory up to the highest peak, and each peak from where it meets that.

    Args:
        device: Whose; without a bandwidth it has no lines.
        dtypes: Types of products whose peaks are shown; that of fp32 on vector units always is.
        dots: Intensity and rate of what is drawn below them; none: no lines.
    """
    return [*_lines(device, _roofs(device, dtypes), dots)]


def _lines(device: Device, roofs: Sequence[_Roof], dots: Sequence[tuple[float, float]]) -> Iterator[dict[str, Any]]:
    if device.memory_bandwidth is None or not dots:
        return
    bandwidth = float(device.memory_bandwidth.value)
    highest = max((roof.peak for roof in roofs), default=max(rate for _, rate in dots))
    first = min(intensity for intensity, _ in dots) / 2
    last = max(2 * max(intensity for intensity, _ in dots), 4 * highest / bandwidth)
    name = f"memory, {bandwidth / TERA:.4g} TB/s"
    yield _line(name, [first, highest / bandwidth], [first * bandwidth, highest], "solid", "var(--ink)")
    for roof, dash in zip(roofs, _DASHES * len(roofs), strict=False):
        name = f"{roof.name}, {roof.peak / TERA:.4g} TFLOP/s"
        yield _line(name, [roof.peak / bandwidth, last], [roof.peak, roof.peak], dash, "var(--muted)")


def _roofs(device: Device, dtypes: Collection[str | None]) -> list[_Roof]:
    """Peaks, equal ones as one, the highest first; fp32 of the vector units last."""
    shared = defaultdict(list)
    for dtype, peak in device.matrix.items():
        if dtype in dtypes:
            shared[float(peak.value)].append(dtype)
    roofs = [_Roof(f"{' and '.join(each)} matrix", peak) for peak, each in sorted(shared.items(), reverse=True)]
    vector = device.vector.get("fp32")
    return [*roofs, *([] if vector is None else [_Roof("fp32 vector", float(vector.value))])]


def _line(name: str, xs: Sequence[float], ys: Sequence[float], dash: str, color: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": rounded(xs),
        "y": rounded(y / TERA for y in ys),
        "line": {"color": color, "width": 2, "dash": dash},
        "hovertemplate": "%{fullData.name}<extra></extra>",
    }
