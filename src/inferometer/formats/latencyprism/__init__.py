"""LatencyPrism runs: a folder with `perf_data.csv` and `counters_data.csv`, or either file, plain or `.gz`.

Source: the artifact of arXiv 2601.09258, January 2026, and its published files. `perf_data.csv` has a row per cycle,
process, function, device and metric, and fills function_times, function_metrics and steps; `counters_data.csv` has the
raw samples and fills counters. Modules: `pair` finds the files, `cells` gives text in columns, `values` makes numbers
of it, `metric_units` says what each metric is in, `perf` and `samples` fill the tables. A file is held in memory while
it is read.

`formats/latencyprism` reads text with Polars, and line by line where a file is damaged. In each table, rows in the
file = rows + dropped. `analyses/latencyprism` repeats the comparison that was published with such runs, for all rows
at once, and `reports/published.py` lays it out as published (`compare --published`).
"""

from pathlib import Path
from typing import TYPE_CHECKING

from inferometer.formats.base import Format

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder
    from inferometer.trace.facts import Facts


def _sniff(head: bytes) -> bool:
    from inferometer.formats.latencyprism.pair import kind_of_header

    return kind_of_header(head) is not None


def _sniff_path(path: Path) -> bool:
    """A folder with either file; and one of several runs, which is refused with what to do."""
    from inferometer.formats.latencyprism.pair import find_runs, is_run

    return path.is_dir() and (is_run(path) or bool(find_runs(path)))


def _read(source: "Source", out: "TraceBuilder", tables: frozenset[str]) -> "Facts":
    from inferometer.formats.latencyprism.reader import read

    return read(source, out)


FORMAT = Format(
    name="latencyprism",
    title="LatencyPrism: perf_data.csv and counters_data.csv (or .gz), or the folder of both",
    suffixes=(".csv", ".csv.gz"),
    sniff=_sniff,
    sniff_path=_sniff_path,
    read=_read,
    tables=frozenset({"function_times", "function_metrics", "steps", "counters"}),
    limits=(
        "Holds sums by function and cycle, no launches. Metrics without a known unit are kept as recorded. "
        "Samples of a host's GPUs are pooled in the file: their device isn't known."
    ),
)
