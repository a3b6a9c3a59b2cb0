"""A measured device next to its datasheet: each value with its spread, and what part of the peak it reaches.

A part above 1 is shown as it is, and reported: then the datasheet is of another device or clock, or we measure wrongly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from inferometer.analyses.hardware.devices import find_scale, name_fact
from inferometer.analyses.result import Field, Result, Section
from inferometer.hardware.device import Quantity
from inferometer.hardware.measure.measure import Measured, Measurement
from inferometer.hardware.measure.timing import STEADY
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES
from inferometer.units import format_share

_DIGITS = 4
_FIELDS = (
    Field("fact", "Fact", "text"),
    Field("value", "Measured", "number"),
    Field("unit", "Unit", "text"),
    Field("p10", "P10", "number", spare=2),
    Field("p90", "P90", "number", spare=2),
    Field("samples", "Samples", "count", spare=4),
    Field("clock_mhz", "Clock (MHz)", "number", spare=3),
    Field("datasheet", "Datasheet", "number", spare=1),
    Field("fraction", "Measured / datasheet", "number", spare=1),
    Field("source", "How", "name", spare=5),
)
_SCHEMA = {field.column: pl.Float64 for field in _FIELDS} | {
    "fact": pl.String,
    "unit": pl.String,
    "samples": pl.Int64,
    "source": pl.String,
}


@dataclass(frozen=True)
class MeasuredDevice(Result):
    """One row a measured value; as JSON the device as its file has it, and what the file leaves out.

    `fraction` is measured over datasheet, null where no datasheet is known.
    """

    measured: Measured
    file: str
    frame: pl.DataFrame
    losses: Losses

    def facts(self) -> Sequence[tuple[str, str]]:
        measured = self.measured
        known = [] if measured.known is None else [("Known as", measured.known.name)]
        return (
            ("Device", f"{measured.subject.device.name}, {measured.subject.on}"),
            *known,
            ("By", f"{measured.subject.library}, {measured.date}"),
            ("File", self.file),
        )

    def sections(self) -> Sequence[Section]:
        return (Section("Measured", _FIELDS, self.frame),)

    def remarks(self) -> Sequence[str]:
        over = [name for name, part in self.frame.select("fact", "fraction").iter_rows() if part and part > 1]
        shaky = [
            f"{name_fact(each.fact)} ±{format_share(each.spread)}"
            for each in self.measured.measurements
            if each.spread >= STEADY
        ]
        lines = []
        if over:
            lines.append(f"Above the datasheet: {', '.join(over)}. Is it of this device, and at this clock?")
        if shaky:
            lines.append(f"Not steady when the time was over: {', '.join(shaky)}.")
        lines += [f"Not measured: {name_fact(fact)}: {why}." for fact, why in self.measured.missing.items()]
        return (*lines, *self.measured.subject.remarks)

    def as_json(self) -> dict[str, Any]:
        measured = self.measured
        return {
            "file": self.file,
            "on": measured.subject.on,
            "library": measured.subject.library,
            "date": measured.date,
            "device": msgspec.to_builtins(measured.device),
            "measurements": [
                {**msgspec.to_builtins(each), "datasheet": sheet and sheet.value, "fraction": _part(each, sheet)}
                for each in measured.measurements
                for sheet in [_datasheet(measured, each.fact)]
            ],
            "not_measured": dict(measured.missing),
            "remarks": list(self.remarks()),
        }


def describe_measured(measured: Measured, file: str) -> MeasuredDevice:
    """What was measured, for people and programs; `file` is where the device went."""
    rows = [_row(each, _datasheet(measured, each.fact)) for each in measured.measurements]
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    return MeasuredDevice(measured, file, frame, Losses(ALL_TABLES))


def _row(each: Measurement, sheet: Quantity | None) -> tuple[Any, ...]:
    unit, scale = find_scale(each.quantity)
    values = [_rounded(value / scale) for value in (each.quantity.value, each.p10, each.p90)]
    clock_mhz = None if each.clock_hz is None else _rounded(each.clock_hz / 1e6)
    expected = None if sheet is None else sheet.value / scale
    how = each.quantity.source
    return (
        name_fact(each.fact),
        values[0],
        unit,
        *values[1:],
        each.samples,
        clock_mhz,
        expected,
        _part(each, sheet),
        how,
    )


def _datasheet(measured: Measured, fact: str) -> Quantity | None:
    """What is published of the fact; what others measured is none."""
    found = None if measured.known is None else measured.known.quantity(fact)
    return None if found is None or found.kind == "measured" else found


def _part(each: Measurement, sheet: Quantity | None) -> float | None:
    """Of the datasheet's value; no part of a time."""
    return None if sheet is None or sheet.unit == "ns" else _rounded(each.quantity.value / sheet.value)


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
