"""The clock at which a device's peak of the matrix units holds, which may be below its highest.

Derived: matrix units do a power of two of FLOPs per cycle and multiprocessor (4,096 of bf16 on sm_90), so it is the
least one that reaches the peak at the highest clock. Of H100 SXM that gives 1,830 MHz, as its notes say.
"""

from math import ceil, log2
from typing import cast

from inferometer.hardware.device import Device, Dtype

_ROUNDED = 1.01  # datasheets give peaks in three or four digits


def peak_clock(device: Device, dtype: str) -> float | None:
    """In Hz; None where the device's data lacks a peak of this type, the count of multiprocessors or the clock."""
    peak = device.matrix.get(cast("Dtype", dtype))
    if peak is None or device.multiprocessors is None or device.graphics_clock is None:
        return None
    a_hz = peak.value / device.multiprocessors.value
    a_cycle = 2 ** ceil(log2(a_hz / device.graphics_clock.value / _ROUNDED))
    return float(a_hz / a_cycle)
