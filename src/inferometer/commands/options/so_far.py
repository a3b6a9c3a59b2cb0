"""What is known of a trace while it is still being read: its rows so far, and the kernels that took the most time."""

from collections import Counter
from heapq import nlargest
from threading import Lock
from typing import TYPE_CHECKING

from inferometer.errors import clean
from inferometer.units import format_counted, format_duration, format_rows, format_share

if TYPE_CHECKING:
    import polars as pl

_MOST_ROWS, _MOST_TABLES = 5, 3
_SHARE_WIDTH = 9
_LEAST_WIDTH = 12  # of a name


class SoFar:
    """Counts of rows and sums of kernels, batch by batch. Lines are asked for by the thread that draws."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._ns: Counter[str] = Counter()
        self._kernels = 0
        self._rows: Counter[str] = Counter()

    def take(self, table: str, rows: int, batch: "pl.LazyFrame") -> None:
        """Count the rows, and add up the kernels among those of `launches`; of other tables none is looked at."""
        with self._lock:
            self._rows[table] += rows
        if table != "launches" or not {"kind", "kernel", "dur_ns"} <= {*batch.collect_schema().names()}:
            return
        import polars as pl

        kernels = batch.filter(pl.col("kind").cast(pl.String) == "kernel")
        sums = kernels.group_by(pl.col("kernel").cast(pl.String)).agg(pl.col("dur_ns").sum(), pl.len()).collect()
        with self._lock:
            for kernel, ns, count in sums.iter_rows():
                self._ns[kernel or ""] += ns
                self._kernels += count

    def start_over(self) -> None:
        """The reader begins anew."""
        with self._lock:
            self._kernels = 0
            self._ns.clear()
            self._rows.clear()

    def lines(self, width: int) -> list[str]:
        """Rows by table, then the time of kernels and those with the most of it; nothing before there is a row."""
        from inferometer.names import decode
        from inferometer.reports.screen.shown_names import cut_names

        with self._lock:
            rows, kernels = self._rows.most_common(_MOST_TABLES), self._kernels
            total, most = self._ns.total(), nlargest(_MOST_ROWS, self._ns.items(), _time_of)
        if not rows:
            return []
        lines = ["So far: " + ", ".join(format_rows(count, table) for table, count in rows)]
        if kernels:
            lines.append(f"{format_duration(total)} in {format_counted(kernels, 'kernel')}:")
        names = {kernel: clean(decode(kernel).short_name or kernel) for kernel, _ in most}
        shown = cut_names(names, max(width - _SHARE_WIDTH - 1, _LEAST_WIDTH))
        return lines + [f"{format_share(ns / (total or 1)):>{_SHARE_WIDTH}} {shown[kernel]}" for kernel, ns in most]


def _time_of(item: tuple[str, int]) -> int:
    return item[1]
