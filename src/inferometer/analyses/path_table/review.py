"""What is wrong with a printed table of times by call path, and the table as it should be: joined by key.

Source of the kinds of fault: a table that the profiler of a Llama port printed, whose second column stands one row off
from the path that its run lacks. Modules: `rows` is the table, `fit` says how well times fit
their paths, `orders` and `shift` look for times that stand at other paths, `found`
says what is wrong.

Leaves out what share of a caller its callees explain: the table has means per call and no counts of calls, and a
callee may run once or 64 times in a call. Counts taken from a model's config would be a guess about the run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from inferometer.analyses.path_table.found import Found, find_wrong
from inferometer.analyses.path_table.rows import PathRows, Times, find_rows
from inferometer.analyses.path_table.shift import Explained, explain
from inferometer.analyses.result import Result
from inferometer.trace.facts import Facts
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

_SCHEMA = {
    "path": pl.String,
    "arm": pl.String,
    "host_ns": pl.Int64,
    "printed_ns": pl.Int64,
    "difference_ns": pl.Int64,
    "difference_share": pl.Float64,
}


@dataclass(frozen=True)
class PathTableReview(Result):
    """A table with what is wrong with it. `times` are by the paths that they are of, as far as that can be told.

    Attributes:
        table: The table as printed.
        times: By arm and row, ns per call. As printed where nothing is wrong, or where it can't be told what is right.
        found: What is wrong, the gravest first; empty where nothing is.
        explained: The shift that explains the table best, where there is one.
    """

    view: ClassVar[str] = "path_table"
    source: Facts
    table: PathRows
    times: Times
    found: Sequence[Found]
    explained: Explained | None
    losses: Losses

    @property
    def is_corrected(self) -> bool:
        """Whether `times` differ from what is printed."""
        return self.explained is not None and self.explained.is_sure

    def to_polars(self) -> pl.DataFrame:
        """One row per path and run: times per call, ns, as corrected and as printed, and the first run less this."""
        rows = [
            {
                "path": row["path"],
                "arm": arm,
                "host_ns": row["arms"][arm],
                "printed_ns": row["printed"][arm],
                "difference_ns": row["difference_ns"].get(arm),
                "difference_share": row["difference_share"].get(arm),
            }
            for row in self.rows()
            for arm in self.table.arms
        ]
        return pl.DataFrame(rows, schema=_SCHEMA)

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source.source,
            "arms": list(self.table.arms),
            "found": [each.as_json() for each in self.found],
            "is_corrected": self.is_corrected,
            "corrected": self.rows(),
        }

    def rows(self) -> list[dict[str, Any]]:
        """One a path: times of each run as corrected and as printed, and the first run less each other."""
        table, arms = self.table, self.table.arms
        rows = []
        for row, path in enumerate(table.paths):
            own = {arm: self.times[i][row] for i, arm in enumerate(arms)}
            rows.append(
                {
                    "path": path,
                    "name": table.names[row],
                    "depth": table.depths[row],
                    "arms": own,
                    "printed": {arm: table.times[i][row] for i, arm in enumerate(arms)},
                    "difference_ns": {arm: _less(own[arms[0]], own[arm]) for arm in arms[1:]},
                    "difference_share": {arm: _share(own, arms[0], arm) for arm in arms[1:]},
                }
            )
        return rows


def review_path_table(trace: Trace) -> PathTableReview:
    """Look for what can't be right in a table of times by call path with a column for each run.

    Args:
        trace: Of the format `path-table`: `path_totals` with the run's name as `backend`, and `call_paths`.

    Raises:
        InputError: The trace has no such times.
    """
    rows = find_rows(trace)
    explained = explain(rows)
    is_told = explained is not None and explained.is_sure
    times = explained.shift.apply(rows.times) if explained and is_told else rows.times
    return PathTableReview(trace.facts, rows, times, find_wrong(rows, times, explained), explained, trace.losses)


def _less(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first - second


def _share(own: Mapping[str, int | None], first: str, other: str) -> float | None:
    less = _less(own[first], own[other])
    return less / own[first] if less is not None and own[first] else None  # type: ignore[operator]
