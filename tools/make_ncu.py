"""Writes what `ncu --csv` prints of a program that is synthetic, and exactly known.

    python -m tools.make_ncu OUT [--page raw|details] [--units scaled|base] [--point .] [--thousands ,] [--seed N]

Values are drawn in base units and then printed as ncu prints them: scaled by prefixes, in any locale, the details with
two decimals. Every file has what readers trip over: lines of the program and of ncu between rows, a launch in each of
two processes with one id, a metric that is not a number, and one that counts nothing (nan). The truth is printed as
JSON. Times are drawn, not measured.
"""

import argparse
import csv
import io
import json
from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Final, Literal

Page = Literal["raw", "details"]
_ABOUT: Final = (
    *("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream"),
    *("Block Size", "Grid Size", "Device", "CC"),
)
_DETAILS: Final = ("Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name", "Rule Type")
_KERNELS: Final = ('gemm<float, "a">(int)', "void ns::norm<2, true>(T *, long)", "add")
_SCALES: Final = {"ns": ("us", 10**3), "byte": ("Mbyte", 10**6), "hz": ("Ghz", 10**9)}
_METRICS: Final = (  # raw name, section and name of the details, base unit
    ("gpu__time_duration.sum", "GPU Speed Of Light Throughput", "Duration", "ns"),
    ("dram__bytes_read.sum", "Memory Workload Analysis", "Bytes Read", "byte"),
    ("sm__cycles_elapsed.avg.per_second", "GPU Speed Of Light Throughput", "SM Frequency", "hz"),
    ("lts__t_sector_hit_rate.pct", "Memory Workload Analysis", "L2 Hit Rate", "%"),
    ("launch__grid_size", "Launch Statistics", "Grid Size", ""),
    ("smsp__nothing.sum", "Source Counters", "Nothing", ""),
)
_NAN: Final = "smsp__nothing.sum"


@dataclass(frozen=True)
class Options:
    """How it is printed: `point` stands before decimals, `thousands` between those."""

    page: Page = "raw"
    scaled: bool = True
    point: str = "."
    thousands: str = ","
    launches: int = 20
    seed: int = 0


@dataclass
class Truth:
    """`values`: of each launch, by the metric's name in the file, in base units, and half of the last printed digit.

    `sums`: launches and ns by kernel. `units`: the base unit of each metric.
    """

    values: list[dict[str, tuple[Decimal | None, Decimal]]] = field(default_factory=list)
    kernels: list[str] = field(default_factory=list)
    grids: list[tuple[int, int, int]] = field(default_factory=list)
    sums: dict[str, tuple[int, Decimal]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)


def make_ncu(options: Options = Options()) -> tuple[str, Truth]:
    """What is printed, and what is in it."""
    rng, truth = Random(options.seed), Truth()
    text = io.StringIO()
    table = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    text.write("==PROF== Connected to process 7 (/usr/bin/python3)\nstep 1, loss 3\n")
    columns = [name for name, *_ in _METRICS] + ["policy"] if options.page == "raw" else [*_DETAILS]
    table.writerow([*_ABOUT, *columns])
    if options.page == "raw":
        table.writerow([""] * len(_ABOUT) + [_printed_unit(unit, options) for *_, unit in _METRICS] + [""])
    for i in range(options.launches):
        if i == options.launches // 2:
            text.write('==PROF== Profiling "gemm": 0%....100% - 4 passes\nloss 2, 5\n==WARNING== Slow clock\n')
        _write_launch(table, rng, i, options, truth)
    text.write("==PROF== Disconnected from process 7\n")
    totals: dict[str, list[Decimal]] = defaultdict(list)
    for kernel, values in zip(truth.kernels, truth.values, strict=True):
        duration = values[_name(_METRICS[0], options)][0]
        totals[kernel].append(duration or Decimal())
    truth.sums = {kernel: (len(each), sum(each, Decimal())) for kernel, each in totals.items()}
    return text.getvalue(), truth


def _write_launch(table: "csv.Writer", rng: Random, i: int, options: Options, truth: Truth) -> None:  # type: ignore[name-defined]
    kernel, grid = rng.choice(_KERNELS), (rng.randrange(1, 4000), rng.randrange(1, 3), 1)
    process, number = (7, i) if i < options.launches - 1 else (8, 0)
    about = [number, process, "python3", "127.0.0.1", kernel, 1, 7, "(256, 1, 1)", str(grid), 0, "9.0"]
    drawn = {
        "gpu__time_duration.sum": Decimal(rng.randrange(800, 90_000_000)),
        "dram__bytes_read.sum": Decimal(rng.randrange(1, 10**10) * 32),
        "sm__cycles_elapsed.avg.per_second": Decimal(rng.randrange(10**8, 2 * 10**9)),
        "lts__t_sector_hit_rate.pct": Decimal(rng.randrange(10_001)) / 100,
        "launch__grid_size": Decimal(grid[0] * grid[1]),
        _NAN: None,
    }
    truth.kernels.append(kernel)
    truth.grids.append(grid)
    truth.values.append({})
    cells = []
    for metric in _METRICS:
        text, exact, half = _print(drawn[metric[0]], metric[3], options)
        truth.values[-1][_name(metric, options)] = (exact, half)
        truth.units[_name(metric, options)] = metric[3]
        cells.append((metric, text))
    if options.page == "raw":
        table.writerow([*about, *(text for _, text in cells), "Spread"])
        return
    for (_, section, name, unit), text in cells:
        table.writerow([*about, section, name, _printed_unit(unit, options), text, "", ""])
    table.writerow([*about, "Launch Statistics", "", "", "", "A rule", "OPT"])


def _name(metric: tuple[str, str, str, str], options: Options) -> str:
    return metric[0] if options.page == "raw" else f"{metric[1]}: {metric[2]}"


def _printed_unit(unit: str, options: Options) -> str:
    return _SCALES[unit][0] if options.scaled and unit in _SCALES else unit


def _print(value: Decimal | None, unit: str, options: Options) -> tuple[str, Decimal | None, Decimal]:
    """As text, as that text's value in base units, and half of its last digit."""
    if value is None:
        return "nan", None, Decimal()
    scale = _SCALES[unit][1] if options.scaled and unit in _SCALES else 1
    shown = value / scale
    if options.page == "details" and unit:
        shown = shown.quantize(Decimal("0.01"))
    exponent = shown.as_tuple().exponent
    half = Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0) / 2
    return _in_locale(f"{shown:,f}", options), shown * scale, half * scale


def _in_locale(text: str, options: Options) -> str:
    whole, dot, decimals = text.partition(".")
    return whole.replace(",", options.thousands) + (options.point if dot else "") + decimals


def main() -> None:
    """Write one, and print what is in it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--page", choices=("raw", "details"), default="raw")
    parser.add_argument("--units", choices=("scaled", "base"), default="scaled")
    for name, default in (("point", "."), ("thousands", ",")):
        parser.add_argument(f"--{name}", default=default)
    for name, count in (("launches", 20), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=count)
    asked = parser.parse_args()
    scaled = asked.units == "scaled"
    options = Options(asked.page, scaled, asked.point, asked.thousands, asked.launches, asked.seed)
    text, truth = make_ncu(options)
    asked.out.write_text(text, "utf-8")
    sums = {kernel: {"launches": count, "ns": float(ns)} for kernel, (count, ns) in truth.sums.items()}
    print(json.dumps(sums, indent=2))


if __name__ == "__main__":
    main()
