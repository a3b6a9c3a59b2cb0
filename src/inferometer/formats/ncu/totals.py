"""Durations of launches, summed by kernel and device: rows of `totals`."""

from collections import defaultdict
from decimal import Decimal
from statistics import fmean, median, stdev
from typing import Any, Final

from inferometer.formats.ncu.numerals import Mark, read_number
from inferometer.formats.ncu.pages import Launch
from inferometer.formats.ncu.units import Unit, half_digit

DURATIONS: Final = ("gpu__time_duration.sum", "gpu__time_duration.avg", "GPU Speed Of Light Throughput: Duration")
_NAMES: Final = ("total_ns", "mean_ns", "median_ns", "min_ns", "max_ns", "stddev_ns", "resolution_ns")

Time = tuple[Decimal, Decimal]


class Durations:
    """How long each launch took, and half of the last digit of that, ns; None where it wasn't counted."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, str | None], dict[int, Time | None]] = defaultdict(dict)

    def take(self, which: int, launch: Launch, device: str | None, mark: Mark) -> None:
        """Take the duration from the first table that has one."""
        times = self._of[launch.about.get("Kernel Name", ""), device]
        if times.get(which) is None:
            times[which] = _duration(launch, mark)

    def rows(self) -> list[dict[str, Any]]:
        """The sums of each kernel on each device."""
        return [_total(kernel, device, [*times.values()]) for (kernel, device), times in self._of.items()]


def _duration(launch: Launch, mark: Mark) -> Time | None:
    found = {name: (unit, text) for name, unit, text in launch.metrics if name in DURATIONS}
    for name in DURATIONS:
        unit, text = found.get(name, (Unit(""), ""))
        number = read_number(text, mark)
        if number is not None and number.is_finite() and number >= 0 and unit.text == "ns":
            return number * unit.scale, half_digit(number, unit)
    return None


def _total(kernel: str, device: str | None, times: list[Time | None]) -> dict[str, Any]:
    """The sums of one kernel; of launches without a duration, no times."""
    row: dict[str, Any] = {"section": 0, "kernel": kernel, "device": device, "count": len(times)}
    known = [each for each in times if each is not None]
    if len(known) < len(times):
        return row | dict.fromkeys(_NAMES)
    each = [value for value, _ in known]
    blur = sum(half for _, half in known)
    statistics = (
        round(sum(each)),
        fmean(map(float, each)),
        float(median(each)),
        round(min(each)),
        round(max(each)),
        stdev(map(float, each)) if len(each) > 1 else None,
        float(blur) if blur >= Decimal("0.5") else None,
    )
    return row | dict(zip(_NAMES, statistics, strict=True))
