"""What Nsight Compute counted of each launch: `ncu --csv`, `--page raw` (a column per metric) or `details` (a row).

Source: what ncu printed on an H200 in 2026 (`samples/h200/ncu_*.csv.gz`), and Nsight Compute's documentation of units.
Fills `kernel_counters` (a row per launch and metric, in base units) and `totals` (the sum of durations by kernel).
Launches have no start, and their times are never those of a trace: ncu runs each by itself, often several times, as a
rule with clocks locked and caches flushed. Leaves out what is no number (policies, names) and the sentences of rules.

`report.py` has ncu print a report, `pages.py` finds launches and their metrics in the text, table by table,
`numerals.py` finds out how the file writes numbers, `units.py` makes base units, `totals.py` sums durations by kernel,
`reader.py` fills the tables.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from inferometer.formats.base import Format

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder
    from inferometer.trace.facts import Facts

_SAYS = ("==PROF== ", "==ERROR== ")


def _sniff(head: bytes) -> bool:
    """Text with ncu's header, which what the program printed may come before, or with what ncu says to its user."""
    from inferometer.formats.ncu.pages import is_header
    from inferometer.formats.text_lines import decode_head

    return any(is_header(line) or line.startswith(_SAYS) for line in decode_head(head).split("\n"))


def _sniff_path(path: Path) -> bool:
    """A report, by its name."""
    return path.suffix == ".ncu-rep" and path.is_file()


def _read(source: "Source", out: "TraceBuilder", tables: frozenset[str]) -> "Facts":
    from inferometer.formats.ncu.reader import read

    return read(source, out)


FORMAT = Format(
    name="ncu",
    title="counters of Nsight Compute (ncu --csv, page raw or details), .csv or .txt; .ncu-rep where ncu is installed",
    suffixes=(".csv", ".txt", ".ncu-rep"),
    sniff=_sniff,
    sniff_path=_sniff_path,
    read=_read,
    tables=frozenset({"totals", "kernel_counters"}),
    recorded_by="ncu --csv --page raw --set full python decode.py > ncu.csv",
    limits=(
        "Times are those of kernels that run alone, with clocks locked and caches flushed unless ncu was told "
        "otherwise: never compare them with a trace's. Launches have no start. Settings that aren't numbers and the "
        "sentences of rules are left out."
    ),
    aliases=("nsight-compute",),
)
