"""Fills `kernel_counters` and `totals` from launches of ncu's pages."""

from collections import defaultdict
from decimal import Decimal
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING, Any, Final

from inferometer.errors import FormatError
from inferometer.formats.ncu.pages import Launch, launches_of
from inferometer.formats.ncu.units import Unit, half_digit, in_base, read_number
from inferometer.formats.text_lines import Ends, read_lines
from inferometer.trace.facts import Device, Facts, NamedId

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder

DURATIONS: Final = ("gpu__time_duration.sum", "gpu__time_duration.avg", "GPU Speed Of Light Throughput: Duration")
_NAME, _SMS = "device__attribute_display_name", "device__attribute_multiprocessor_count"
_COUNTERS, _TOTALS = "kernel_counters", "totals"
_BATCH = 100_000


def read(source: "Source", out: "TraceBuilder") -> Facts:
    """Read all of it.

    Raises:
        FormatError: There is no header of ncu, or no launch below it.
    """
    reader = _Reader(out)
    broken: list[str] = []
    with source.open() as stream:
        limits = source.limits
        text = Ends(
            line
            for _, line in read_lines(
                stream, out.losses, longest=limits.event_bytes, most=limits.lines, name=source.name
            )
        )
        for launch in launches_of(text, broken):
            reader.take(launch)
    if stream.damage:
        out.losses.count("broken_compression", example=stream.damage)
    if text.is_cut:
        out.losses.count("truncated", example="the last line has no end")
    for example in broken:
        out.losses.see(_COUNTERS)
        out.losses.count("unreadable_row", category=_COUNTERS, example=example)
    if not reader.launches:
        raise FormatError(
            f"{source.name}: expected rows of launches below the header of ncu, found none",
            hint="Export it again: ncu --csv --page raw --import REPORT.ncu-rep",
        )
    return reader.finish(source.name)


class _Reader:
    """What was read so far: counters to hand over, and durations by kernel and device."""

    def __init__(self, out: "TraceBuilder") -> None:
        self.launches = 0
        self._out = out
        self._columns: dict[str, list[Any]] = defaultdict(list)
        self._durations: dict[tuple[str, str | None], list[tuple[Decimal, Decimal] | None]] = defaultdict(list)
        self._devices: dict[str, Device] = {}
        self._processes: dict[int, str | None] = {}
        self._hosts: dict[str, None] = {}

    def take(self, launch: Launch) -> None:
        """One launch."""
        number = launch.number("Device")
        device = None if number is None else f"gpu:{number}"
        kernel = launch.about.get("Kernel Name", "")
        self._note(launch, device)
        if self._out.wants(_COUNTERS):
            self._add_counters(launch, kernel, device)
        self._durations[kernel, device].append(_duration(launch))
        self.launches += 1

    def finish(self, name: str) -> Facts:
        """Hand over what is left."""
        self._flush()
        if self._out.wants(_TOTALS):
            self._add_totals()
        return Facts(
            "ncu",
            name,
            tool="Nsight Compute",
            hosts=tuple(self._hosts),
            devices=tuple(self._devices.values()),
            processes=tuple(NamedId(process, name=text) for process, text in self._processes.items()),
        )

    def _note(self, launch: Launch, device: str | None) -> None:
        if host := launch.about.get("Host Name"):
            self._hosts[host] = None
        if (process := launch.number("Process ID")) is not None:
            self._processes[process] = launch.about.get("Process Name") or None
        if device is not None and device not in self._devices:
            said = {name: text for name, _, text in launch.metrics if name in (_NAME, _SMS)}
            count = read_number(said.get(_SMS, ""))
            self._devices[device] = Device(
                device,
                name=said.get(_NAME),
                multiprocessors=int(count) if count is not None and count.is_finite() else None,
                compute_capability=launch.about.get("CC") or None,
            )

    def _add_counters(self, launch: Launch, kernel: str, device: str | None) -> None:
        numbers = [
            (metric, unit, number) for metric, unit, text in launch.metrics if (number := read_number(text)) is not None
        ]
        self._out.losses.see(_COUNTERS, len(numbers))
        about = {
            "launch": self.launches,
            "kernel": kernel,
            "device": device,
            "process": launch.number("Process ID"),
            "stream": launch.number("Stream"),
            "grid": launch.size("Grid Size"),
            "block": launch.size("Block Size"),
        }
        for name, value in about.items():
            self._columns[name] += [value] * len(numbers)
        self._columns["metric"] += [metric for metric, _, _ in numbers]
        self._columns["value"] += [in_base(number, unit) for _, unit, number in numbers]
        self._columns["unit"] += [unit.text or None for _, unit, _ in numbers]
        if len(self._columns["metric"]) >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        self._out.add(_COUNTERS, len(self._columns["metric"]), self._columns)
        self._columns = defaultdict(list)

    def _add_totals(self) -> None:
        rows = [_total(kernel, device, times) for (kernel, device), times in self._durations.items()]
        self._out.losses.see(_TOTALS, len(rows))
        self._out.losses.count("profiled_alone", self.launches, category=_TOTALS)
        self._out.add(_TOTALS, len(rows), {name: [row.get(name) for row in rows] for name in rows[0]})


def _duration(launch: Launch) -> tuple[Decimal, Decimal] | None:
    """How long it took and half of the last digit, ns; None where that wasn't counted."""
    found = {name: (unit, text) for name, unit, text in launch.metrics if name in DURATIONS}
    for name in DURATIONS:
        unit, text = found.get(name, (Unit(""), ""))
        number = read_number(text)
        if number is not None and number.is_finite() and number >= 0 and unit.text == "ns":
            return number * unit.scale, half_digit(number, unit)
    return None


def _total(kernel: str, device: str | None, times: list[tuple[Decimal, Decimal] | None]) -> dict[str, Any]:
    """The sums of one kernel; of launches without a duration, no times."""
    row: dict[str, Any] = {"section": 0, "kernel": kernel, "device": device, "count": len(times)}
    known = [each for each in times if each is not None]
    names = ("total_ns", "mean_ns", "median_ns", "min_ns", "max_ns", "stddev_ns", "resolution_ns")
    if len(known) < len(times):
        return row | dict.fromkeys(names)
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
    return row | dict(zip(names, statistics, strict=True))
