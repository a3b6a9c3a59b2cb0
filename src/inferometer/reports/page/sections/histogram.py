"""How long single launches of the largest kernels take: quartiles side by side, and the histogram of a chosen one."""

from collections.abc import Sequence
from math import ceil
from typing import Any

import msgspec
import numpy as np
import polars as pl

from inferometer.analyses.labels import label_names
from inferometer.reports.page.blocks import Block, Chart, Part, Words
from inferometer.reports.page.drawing import TimeUnit, axis, color, kernel_labels
from inferometer.reports.page.look import RunData
from inferometer.reports.page.sampling import Values, log_counts
from inferometer.reports.page.section import RunSection
from inferometer.trace.lean import collect_lean
from inferometer.units import format_duration

KERNELS = 12
BINS = 40
_TITLE = "Durations of kernels"
_UNIT = TimeUnit("μs", 1_000)  # one for all kernels, since one axis shows them in turn
_NEEDS = "The trace would need single launches of kernels"
_NONE = -1  # not one of the kernels that are drawn


class _Durations(msgspec.Struct, frozen=True):
    """A kernel's launches; `times_ns` has shape (n,)."""

    kernel: str
    label: str
    times_ns: Values

    def quantile(self, share: float) -> float:
        return float(np.quantile(self.times_ns, share))


def build(run: RunData) -> Block | None:
    """A chart of quartiles, then the histogram of a kernel to choose."""
    if run.kernels.basis == "totals":
        return Block("histogram", _TITLE, lacking=f"{_NEEDS}: the source holds only sums by kernel.")
    every = _read(run)
    if not every:
        return Block("histogram", _TITLE, lacking=f"{_NEEDS}, of a kernel that ran more than once.")
    parts: list[Part] = []
    if run.kernels.kernels > len(every):
        parts.append(Words(f"Of the {len(every)} kernels with the most time, of {run.kernels.kernels:,}.", "note"))
    if len(every) > 1:
        parts.append(_quartiles(every))
    return Block("histogram", _TITLE, [*parts, _histograms(every)])


def _read(run: RunData) -> list[_Durations]:
    """Of the kernels with the most time that ran more than once; launches of 0 ns have no place on a log axis."""
    repeated = run.kernels.frame.filter(pl.col("count") > 1, pl.col("max_ns") > 0)
    chosen = repeated.sort("total_ns", "kernel", descending=[True, False])["kernel"].head(KERNELS).to_list()
    is_kernel = pl.col("kind").cast(pl.String) == "kernel"
    launches = collect_lean(run.trace.compact("launches"), ("kernel", "dur_ns"), is_kernel)
    kernels, times_ns = launches["kernel"], launches["dur_ns"].to_numpy()
    names = kernels.unique()
    codes, number = names.to_physical().to_numpy(), {kernel: i for i, kernel in enumerate(chosen)}
    spellings = label_names(names.cast(pl.String), "name")
    of_code = np.full(int(codes.max(initial=0)) + 1, _NONE, dtype=np.int16)
    of_code[codes] = [number.get(spellings[name], _NONE) for name in names.cast(pl.String)]
    which = of_code[kernels.to_physical().to_numpy()]
    labels = kernel_labels(chosen)
    return [
        _Durations(kernel, labels[kernel], times_ns[(which == i) & (times_ns > 0)].astype(np.float64))
        for i, kernel in enumerate(chosen)
    ]


def _quartiles(every: Sequence[_Durations]) -> Chart:
    unit = TimeUnit.of(max(one.quantile(0.99) for one in every))
    shares = {"lowerfence": 0.01, "q1": 0.25, "median": 0.5, "q3": 0.75, "upperfence": 0.99}
    data = {
        "type": "box",
        "orientation": "h",
        "y": [one.label for one in every],
        **{name: unit.scaled(one.quantile(share) for one in every) for name, share in shares.items()},
        "marker": {"color": color(0)},
        "showlegend": False,
    }
    spread = max(every, key=lambda one: one.quantile(0.99) / one.quantile(0.5))
    alt = (
        f"{spread.label} varies most: its median launch takes {format_duration(spread.quantile(0.5))}, one in a "
        f"hundred {format_duration(spread.quantile(0.99))} or more. Boxes are quartiles, whiskers the 1st and 99th "
        "percentile."
    )
    layout = {
        "xaxis": unit.axis("Duration of a launch", type="log"),
        "yaxis": {"autorange": "reversed", "automargin": True},
    }
    return Chart("Spread of durations", alt, [data], layout, height=120 + 28 * len(every))


def _histograms(every: Sequence[_Durations]) -> Chart:
    """One kernel is seen, a menu chooses it."""
    data, owners = [], []
    for i, one in enumerate(every):
        traces = _drawn(one, color(i))
        data += [{**trace, "visible": i == 0} for trace in traces]
        owners += [i] * len(traces)
    buttons = [
        {"label": one.label, "method": "restyle", "args": [{"visible": [owner == i for owner in owners]}]}
        for i, one in enumerate(every)
    ]
    first = every[0]
    alt = (
        f"{len(first.times_ns):,} launches of {first.label}: median {format_duration(first.quantile(0.5))}, "
        f"99th percentile {format_duration(first.quantile(0.99))}, from {format_duration(first.times_ns.min())} "
        f"to {format_duration(first.times_ns.max())}."
    )
    layout: dict[str, Any] = {"xaxis": _UNIT.axis("Duration of a launch", type="log"), "yaxis": axis("Launches")}
    if len(every) > 1:
        layout["updatemenus"] = [{"buttons": buttons}]
    return Chart("Histogram of a kernel", alt, data, layout)


def _drawn(one: _Durations, shade: str) -> list[dict[str, Any]]:
    """Launches by duration, over bins of equal width on the axis, with the median and the 99th percentile."""
    edges, counts = log_counts(one.times_ns, min(BINS, ceil(2 * len(one.times_ns) ** (1 / 3))))  # Rice's rule
    bars = {
        "type": "scatter",
        "mode": "lines",
        "line": {"shape": "hv", "color": shade, "width": 1},
        "fill": "tozeroy",
        "x": _UNIT.scaled(edges, 6),
        "y": [*counts.tolist(), int(counts[-1])],
        "name": one.label,
        "hovertemplate": f"from %{{x}} {_UNIT.name}: %{{y}} launches<extra></extra>",
    }
    marks = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": _UNIT.scaled([one.quantile(share)] * 2, 6),
            "y": [0, int(counts.max())],
            "name": name,
            "line": {"color": "var(--ink)", "dash": dash, "width": 2},
            "hovertemplate": f"{name} %{{x}} {_UNIT.name}<extra></extra>",
        }
        for name, share, dash in (("median", 0.5, "solid"), ("99th percentile", 0.99, "dot"))
    ]
    return [bars, *marks]


SECTION = RunSection("histogram", build, after="bounds")
