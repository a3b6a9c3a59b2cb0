"""What the titles over a printed table mean, in the words of all versions of Nsight Systems and in ours.

A table is about kernels when it has a name and sums or counts of instances, and nothing that only other reports have
(`Num Calls`, `Operation`, `Range`). Titles may carry the unit of their column: `Total Time (ns)`, `Time(%)`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

NAME = "kernel"
KIND = "kind"
SHARE = "share"
TIMES = ("total_ns", "mean_ns", "median_ns", "min_ns", "max_ns", "stddev_ns")
STATISTICS = ("count", *TIMES)
_COLUMNS = {
    "time": SHARE,
    "total time": "total_ns",
    "total": "total_ns",
    "instances": "count",
    "count": "count",
    "avg": "mean_ns",
    "average": "mean_ns",
    "mean": "mean_ns",
    "med": "median_ns",
    "median": "median_ns",
    "min": "min_ns",
    "minimum": "min_ns",
    "max": "max_ns",
    "maximum": "max_ns",
    "stddev": "stddev_ns",
    "std dev": "stddev_ns",
    "name": NAME,
    "kernel name": NAME,
    "kernel": NAME,
    "kind": KIND,
}
_OF_OTHER_REPORTS = frozenset(
    {"num calls", "calls", "operation", "range", "style", "category", "source", "api name", "event", "api function"}
)
_TITLE = re.compile(r"(?P<words>[^()]*?)\s*(?:\((?P<unit>[^()]*)\))?")
_TIME_UNITS = {
    **dict.fromkeys(("ns", "nsec", "nanoseconds"), "ns"),
    **dict.fromkeys(("us", "µs", "μs", "usec", "microseconds"), "us"),
    **dict.fromkeys(("ms", "msec", "milliseconds"), "ms"),
    **dict.fromkeys(("s", "sec", "seconds"), "s"),
}
_FEWEST_STATISTICS = 3
_LONGEST_TITLE = 60


@dataclass(frozen=True)
class KernelHeader:
    """What is in each cell of a row: a column of `totals`, `share`, `kind`, or None for what we don't know.

    `units` is the unit of plain numbers in each cell, None where neither its title nor that of the total says one.
    """

    titles: tuple[str, ...]
    columns: tuple[str | None, ...]
    units: tuple[str | None, ...]
    is_kernels: bool

    @property
    def name_at(self) -> int | None:
        """Where the name stands."""
        return self.columns.index(NAME) if NAME in self.columns else None


def find_header(titles: Sequence[str]) -> KernelHeader | None:
    """The header that these titles are, if they are one of a table of statistics."""
    columns: list[str | None] = []
    units: list[str | None] = []
    strangers, statistics = False, 0
    for title in titles:
        match = _TITLE.fullmatch(title) if len(title) <= _LONGEST_TITLE else None
        words = " ".join(match["words"].lower().split()) if match else ""
        unit = _TIME_UNITS.get((match["unit"] or "").lower()) if match else None
        column = _COLUMNS.get(words)
        if column == SHARE and unit:
            column = "total_ns"
        elif column in TIMES and match and match["unit"] and not unit:  # a size, perhaps
            column = None
        statistics += words in _COLUMNS and _COLUMNS[words] not in (NAME, KIND)
        strangers = strangers or words in _OF_OTHER_REPORTS
        columns.append(None if column in columns else column)
        units.append(unit)
    known = {column for column in columns if column}
    is_kernels = NAME in known and len(known) >= 3 and not strangers and not known.isdisjoint(("total_ns", "count"))
    if not is_kernels and not (strangers and statistics >= _FEWEST_STATISTICS):
        return None
    usual = units[columns.index("total_ns")] if "total_ns" in known else None
    return KernelHeader(tuple(titles), tuple(columns), tuple(unit or usual for unit in units), is_kernels)
