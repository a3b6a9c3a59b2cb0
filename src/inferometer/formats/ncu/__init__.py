"""What Nsight Compute counted of each launch: `ncu --csv`, `--page raw` (a column per metric) or `details` (a row).

Source: what ncu printed on an H200 in 2026 (`samples/h200/ncu_*.csv.gz`), and Nsight Compute's documentation of units.
Fills `kernel_counters` (a row per launch and metric, in base units) and `totals` (the sum of durations by kernel).
Launches have no start: ncu runs each by itself, often several times, as a rule with clocks locked and caches flushed.
Leaves out: what isn't a number (policies, names), and the sentences of rules. Modules: `pages` finds launches in the
text, `units` reads numbers, `reader` fills the tables.

`formats/ncu` reads what Nsight Compute prints as CSV, the raw page and the details, whatever units it scaled to.
`pages.py` finds the launches and their metrics, `units.py` makes base units of both number and unit, `reader.py` sums
durations by kernel. It has counters of launches (`kernel_counters`), and times that are never those of a trace: clocks
are locked and caches flushed.
"""

from typing import TYPE_CHECKING

from inferometer.formats.base import Format

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder
    from inferometer.trace.facts import Facts


def _sniff(head: bytes) -> bool:
    """Text with ncu's header, which what the program printed may come before."""
    from inferometer.formats.ncu.pages import is_header
    from inferometer.formats.text_lines import decode_head

    return any(map(is_header, decode_head(head).split("\n")))


def _read(source: "Source", out: "TraceBuilder", tables: frozenset[str]) -> "Facts":
    from inferometer.formats.ncu.reader import read

    return read(source, out)


FORMAT = Format(
    name="ncu",
    title="counters of Nsight Compute (ncu --csv, page raw or details), .csv or .txt",
    suffixes=(".csv", ".txt"),
    sniff=_sniff,
    read=_read,
    tables=frozenset({"totals", "kernel_counters"}),
    limits=(
        "Times are those of kernels that run alone, with clocks locked and caches flushed unless ncu was told "
        "otherwise: never compare them with a trace's. Launches have no start. Settings that aren't numbers and the "
        "sentences of rules are left out."
    ),
    record="ncu --csv --page raw python app.py > counters.csv",
    aliases=("nsight-compute",),
)
