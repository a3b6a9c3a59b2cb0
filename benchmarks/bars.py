"""The bars that a suite must clear, each a number computed from the measurements of one run.

Times are medians; memory is the greatest peak of any repetition. Ratios without a limit are reported for honesty: there
is no bar on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.processes import Measurement

MIB: Final = 1 << 20
GB: Final = 10**9

Measure = Callable[[Mapping[str, Measurement], Mapping[str, int]], float]


@dataclass(frozen=True, slots=True)
class Bar:
    """A limit that a measured value must not exceed; None: no limit is set. `measure` takes runs and file sizes."""

    title: str
    limit: float | None
    show: Callable[[float], str]
    measure: Measure


@dataclass(frozen=True, slots=True)
class Verdict:
    """A bar, measured. `value` is None where a case of it wasn't run, `met` also where no limit is set or binds."""

    title: str
    limit: str | None
    value: float | None
    shown: str
    met: bool | None

    @property
    def word(self) -> str:
        """For the table."""
        if self.value is None:
            return "not measured"
        if self.limit is None:
            return "no bar"
        return {True: "met", False: "**not met**", None: "no verdict"}[self.met]


def judge(
    bars: Sequence[Bar], results: Mapping[str, Measurement], sizes: Mapping[str, int], *, binding: bool
) -> list[Verdict]:
    """Every bar with its verdict; `binding` is false for files too small to mean anything, where none is given."""
    return [_judge(bar, results, sizes, binding) for bar in bars]


def _judge(bar: Bar, results: Mapping[str, Measurement], sizes: Mapping[str, int], binding: bool) -> Verdict:
    limit = None if bar.limit is None else f"at most {bar.show(bar.limit)}"
    try:
        value = bar.measure(results, sizes)
    except KeyError:  # a case that this run left out
        return Verdict(bar.title, limit, None, "–", None)
    met = value <= bar.limit if binding and bar.limit is not None else None
    return Verdict(bar.title, limit, value, bar.show(value), met)


def seconds(case: str) -> Measure:
    return lambda results, sizes: results[case].wall_ns / 1e9


def peak(case: str) -> Measure:
    return lambda results, sizes: results[case].peak_bytes


def ratio(case: str, base: str) -> Measure:
    return lambda results, sizes: results[case].wall_ns / results[base].wall_ns


def growth(case: str, base: str) -> Measure:
    """Ratio of the times over the ratio of the sizes: 1 is linear."""
    return lambda results, sizes: (results[case].wall_ns / results[base].wall_ns) / (sizes[case] / sizes[base])


def show_fraction(value: float) -> str:
    return f"1/{1 / value:.1f}".removesuffix(".0") if value < 1 else f"{value:.1f} ×"


def show_factor(value: float) -> str:
    return f"{value:.2f} ×"


def show_seconds(value: float) -> str:
    return f"{value:.2f} s"


def show_mib(value: float) -> str:
    return f"{value / MIB:,.0f} MiB"


def show_gb(value: float) -> str:
    return f"{value / GB:.2f} GB"
