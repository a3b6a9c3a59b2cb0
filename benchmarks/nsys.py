"""Exports of Nsight Systems: `inferometer` next to Python's `sqlite3`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.answers import (
    check_calls,
    check_findings,
    check_import,
    check_kernels,
    check_report,
    check_spans,
    check_summary,
    check_timeline,
    read_peer,
)
from benchmarks.bars import GB, Bar, peak, ratio, seconds, show_factor, show_fraction, show_gb, show_seconds
from benchmarks.cases import REPETITIONS_LARGE, Case, ours, peer
from benchmarks.suite import Suite
from benchmarks.trace_files import TraceFile, make_export

_KERNELS: Final = {"full": (1_000_000, 10_000_000), "small": (10_000, 40_000)}
_RANGES: Final = "--nvtx launches"  # a range around each call: more than one a kernel
_COLUMNS: Final = "two columns by ADBC"
_FEW: Final = 2  # of what takes minutes
_COLUMNS_S: Final = 0.9  # that these took of ten million kernels where bars were set in seconds
_PEERS: Final = {
    "two": "sqlite3, aggregates for median and deviation",
    "grouped": "sqlite3, one aggregate for both",
    "aggregate": "sqlite3, one aggregate over all rows",
    "text": "sqlite3, quickest of all",
}


def _make_cases(size: str, cache: Path, peer_python: Path | None) -> tuple[list[Case], list[TraceFile]]:
    kernels, kernels_large = _KERNELS[size]
    file = make_export(kernels, cache, ("kernels", "calls", "spans", "devices"), _RANGES)
    large = make_export(kernels_large, cache, ("kernels",))
    cases = [*_usual(file), *_large(large)]
    cases.append(peer("columns", _COLUMNS, Path(sys.executable), "adbc_columns.py", large, read_peer))
    if peer_python is not None:
        for way, title in _PEERS.items():
            cases.append(peer(way, title, peer_python, "sqlite_kernels.py", large, check_kernels, way))
    return cases, [file, large]


def _usual(file: TraceFile) -> Iterator[Case]:
    path, truth = file.path, file.truth
    yield ours("kernels", "kernels", path, truth, check_kernels, "--json")
    yield ours("summary", "summary", path, truth, check_summary)
    yield ours("calls", "calls", path, truth, check_calls, "--json")
    yield ours("timeline", "timeline", path, truth, check_timeline, "--json")
    yield ours("spans", "spans", path, truth, check_spans, "--json")


def _large(file: TraceFile) -> Iterator[Case]:
    store, truth, some = file.path.with_suffix(".ifm"), file.truth, REPETITIONS_LARGE
    yield ours("kernels-large", "kernels", file.path, truth, check_kernels, "--json", repetitions=some)
    yield ours(
        "import-large", "import", file.path, truth, check_import, "-o", store, "--json", repetitions=some, makes=store
    )
    yield ours("kernels-store-large", "kernels", store, truth, check_kernels, "--json", repetitions=some)
    yield ours("summary-large", "summary", file.path, truth, check_summary, repetitions=_FEW)
    yield ours("findings-large", "findings", file.path, truth, check_findings, "--json", repetitions=_FEW)
    page = file.path.with_suffix(".html")
    check = partial(check_report, made=page)
    yield ours("report-large", "report", file.path, truth, check, "-o", page, "--json", repetitions=_FEW, makes=page)


_BARS: Final = (
    Bar("`kernels`, large file: time over two aggregates'", 1 / 4, show_fraction, ratio("kernels-large", "two")),
    Bar("`kernels`, large file: peak memory", 1.0 * GB, show_gb, peak("kernels-large")),
    Bar(
        "`kernels`, large file: time over its columns'",
        1.2 / _COLUMNS_S,
        show_factor,
        ratio("kernels-large", "columns"),
    ),
    Bar(
        "`summary`, large file: time over its columns'", 8 / _COLUMNS_S, show_factor, ratio("summary-large", "columns")
    ),
    Bar(
        "`findings`, large file: time over its columns'",
        8 / _COLUMNS_S,
        show_factor,
        ratio("findings-large", "columns"),
    ),
    Bar("`findings`, large file: peak memory", 4.0 * GB, show_gb, peak("findings-large")),
    Bar("`report`, large file: peak memory", 3.0 * GB, show_gb, peak("report-large")),
    Bar("`spans`, a million of each: time over the columns'", 3 / _COLUMNS_S, show_factor, ratio("spans", "columns")),
    Bar("`spans`, a million ranges and launches: time of all", 10.0, show_seconds, seconds("spans")),
    Bar("`kernels`, large file: time over one aggregate's", None, show_fraction, ratio("kernels-large", "grouped")),
    Bar("`kernels`, large file: over one over all rows", None, show_fraction, ratio("kernels-large", "aggregate")),
    Bar("`kernels`, large file: time over the quickest's", None, show_fraction, ratio("kernels-large", "text")),
    Bar("`kernels` from the large file's store: time", None, show_seconds, seconds("kernels-store-large")),
    Bar("`import`, large file: peak memory", None, show_gb, peak("import-large")),
)
_NOTES: Final = """\
- Every output, ours and the peers', also of the timed runs, agreed with plain SQL's before a time was written: counts,
  sums, extremes and medians of every kernel exactly, means and deviations (the sample's) to a part in 10^9. Of `calls`
  every API, of `spans` every name's ranges, launches and innermost launches, and of `timeline` busy, summed and wall
  time of the device agreed exactly.
- The peers print the table that `kernels` prints. The bar is on the usual way: GROUP BY, with a Python aggregate for
  the median and one for the deviation, which SQL lacks. Quicker ways are measured too, and have no bar: both statistics
  in one aggregate; one over all rows, sorted by NumPy; and the quickest known, in which SQLite joins rows to text and
  NumPy reads it. What else was tried stands in `benchmarks/peers/sqlite_kernels.py`.
- Two columns by ADBC are a name's id and a duration of every kernel, as a driver of SQLite gives them, added up: the
  least that reading took before numbers were read from the file's pages. Bars that were set in seconds are given as
  multiples of its time then.
- Other peers run on one core; ours reads on two. CPU time is next to the wall time.
- The smaller file has a named range around every call that launches, and one around every layer and step. The bar on
  `spans` is on the whole process: reading the file, tying launches to calls and these to ranges, and the table."""

SUITE: Final = Suite(
    name="nsys",
    title="Nsight Systems exports: speed and memory",
    make_cases=_make_cases,
    bars=_BARS,
    notes=_NOTES,
    libraries=("polars", "adbc-driver-sqlite", "numpy"),
    peers=("sqlite", "numpy"),
)
