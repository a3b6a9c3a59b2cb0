"""The bars that ingestion must clear, each a number computed from the measurements of one run.

Times are medians; memory is the greatest peak of any repetition. Ratios without a limit are told for honesty: there is
no bar on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


def judge(results: Mapping[str, Measurement], sizes: Mapping[str, int], *, binding: bool) -> list[Verdict]:
    """Every bar with its verdict; `binding` is false for files too small to mean anything, where none is given."""
    return [_judge(bar, results, sizes, binding) for bar in BARS]


def _judge(bar: Bar, results: Mapping[str, Measurement], sizes: Mapping[str, int], binding: bool) -> Verdict:
    limit = None if bar.limit is None else f"at most {bar.show(bar.limit)}"
    try:
        value = bar.measure(results, sizes)
    except KeyError:  # a case that this run left out
        return Verdict(bar.title, limit, None, "–", None)
    met = value <= bar.limit if binding and bar.limit is not None else None
    return Verdict(bar.title, limit, value, bar.show(value), met)


def _seconds(case: str) -> Measure:
    return lambda results, sizes: results[case].wall_ns / 1e9


def _peak(case: str) -> Measure:
    return lambda results, sizes: results[case].peak_bytes


def _ratio(case: str, base: str) -> Measure:
    return lambda results, sizes: results[case].wall_ns / results[base].wall_ns


def _growth(case: str, base: str) -> Measure:
    """Ratio of the times over the ratio of the sizes: 1 is linear."""
    return lambda results, sizes: (results[case].wall_ns / results[base].wall_ns) / (sizes[case] / sizes[base])


def _show_fraction(value: float) -> str:
    return f"1/{1 / value:.1f}".removesuffix(".0") if value < 1 else f"{value:.1f} ×"


def _show_factor(value: float) -> str:
    return f"{value:.2f} ×"


def _show_seconds(value: float) -> str:
    return f"{value:.2f} s"


def _show_mib(value: float) -> str:
    return f"{value / MIB:,.0f} MiB"


def _show_gb(value: float) -> str:
    return f"{value / GB:.2f} GB"


BARS: Final = (
    Bar("`kernels`: time over HTA's", 1 / 30, _show_fraction, _ratio("kernels", "hta")),
    Bar("`kernels`: peak memory", 300 * MIB, _show_mib, _peak("kernels")),
    Bar("`kernels`, large file: peak memory", 600 * MIB, _show_mib, _peak("kernels-large")),
    Bar("`kernels`: time ratio over size ratio, large file", 1.25, _show_factor, _growth("kernels-large", "kernels")),
    Bar("`import`: time over HTA's", 1 / 6, _show_fraction, _ratio("import", "hta")),
    Bar("`import`: peak memory", 700 * MIB, _show_mib, _peak("import")),
    Bar("`import`, large file: peak memory", 1.2 * GB, _show_gb, _peak("import-large")),
    Bar("`kernels` from the store: time", 1.0, _show_seconds, _seconds("kernels-store")),
    Bar("`kernels`, `.json.gz` over plain: time", 1.3, _show_factor, _ratio("kernels-gz", "kernels")),
    Bar("`--help`: time", 0.3, _show_seconds, _seconds("help")),
    Bar("`kernels`: time over HTA's fastest", None, _show_fraction, _ratio("kernels", "hta-fastest")),
    Bar("`import`: time over HTA's fastest", None, _show_fraction, _ratio("import", "hta-fastest")),
    Bar("`kernels`: time over `json.load`'s", None, _show_fraction, _ratio("kernels", "json-load")),
    Bar("`import`: time ratio over size ratio, large file", None, _show_factor, _growth("import-large", "import")),
    Bar("`kernels` from the large file's store: time", None, _show_seconds, _seconds("kernels-store-large")),
)
