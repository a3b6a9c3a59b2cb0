"""A measured device next to its datasheet: each value with its spread, and what part of the peak it reaches.

A part above 1 is shown as it is, and reported: then the datasheet is of another device or clock, or we measure wrongly.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import polars as pl

from inferometer.analyses.hardware.devices import find_scale, name_fact
from inferometer.analyses.result import Result
from inferometer.hardware.device import Quantity
from inferometer.hardware.measure.measure import Measured, Measurement
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES

_DIGITS = 4
_SCHEMA = {
    "fact": pl.String,
    "value": pl.Float64,
    "unit": pl.String,
    "p10": pl.Float64,
    "p90": pl.Float64,
    "samples": pl.Int64,
    "clock_mhz": pl.Float64,
    "datasheet": pl.Float64,
    "fraction": pl.Float64,
    "source": pl.String,
}


@dataclass(frozen=True)
class MeasuredDevice(Result):
    """One row a measured value; as JSON the device as its file has it, and what the file leaves out.

    `fraction` is measured over datasheet, null where no datasheet is known.
    """

    view: ClassVar[str] = "measured_device"
    measured: Measured
    file: str
    frame: pl.DataFrame
    losses: Losses

    def to_polars(self) -> pl.DataFrame:
        """One row a measured value."""
        return self.frame

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
    """What the vendor publishes of the fact, which is never a time: those that are known were read from traces."""
    found = None if measured.known is None else measured.known.quantity(fact)
    return None if found is None or found.kind == "measured" or found.unit == "ns" else found


def _part(each: Measurement, sheet: Quantity | None) -> float | None:
    return None if sheet is None else _rounded(each.quantity.value / sheet.value)


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
