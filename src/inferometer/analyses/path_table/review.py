"""What is wrong with a printed table of times by call path, and the table as it should be: joined by key.

Source of the kinds of fault: a table that the profiler of a Llama port printed, whose second column stands one row off
from the path that its run lacks. Modules: `rows` is the table, `fit` says how well times fit
their paths, `orders` and `shift` look for times that are at other paths, `found`
says what is wrong, `swaps` what may be.

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
from inferometer.analyses.path_table.swaps import find_possible_swaps
from inferometer.analyses.result import Result
from inferometer.trace.facts import Facts
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace


@dataclass(frozen=True)
class PathTableReview(Result):
    """A table with what is wrong with it. `times` are by the paths that they are of, as far as that can be known.

    Attributes:
        table: The table as printed.
        times: By arm and row, ns per call. As printed where nothing is wrong, or where it can't be known what is right.
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

    @property
    def contradicting_rows(self) -> int:
        """Rows that contradict themselves or each other as they were read: see `losses`."""
        return self.losses.total("contradicting_rows")

    def to_polars(self) -> pl.DataFrame:
        """One row per path, with what is `found` wrong there. Columns of a run end in its number, as `host_ns_0`.

        Times are of one call, as corrected and as printed; a difference is the first run less this one.
        """
        arms = list(enumerate(self.table.arms))
        numbers = {f"{name}_{i}": pl.Int64 for name in ("host_ns", "printed_ns") for i, _ in arms}
        numbers |= {f"difference_ns_{i}": pl.Int64 for i, _ in arms[1:]}
        schema = {"path": pl.String, "name": pl.String, "depth": pl.Int64, "found": pl.String, **numbers}
        kinds = self._kinds()
        rows = [
            {
                **{name: row[name] for name in ("path", "name", "depth")},
                "found": ", ".join(kinds.get(row["path"], ())),
                **{f"host_ns_{i}": row["arms"][arm] for i, arm in arms},
                **{f"printed_ns_{i}": row["printed"][arm] for i, arm in arms},
                **{f"difference_ns_{i}": row["difference_ns"][arm] for i, arm in arms[1:]},
                **{f"difference_share_{i}": row["difference_share"][arm] for i, arm in arms[1:]},
            }
            for row in self.rows()
        ]
        shares = {f"difference_share_{i}": pl.Float64 for i, _ in arms[1:]}
        return pl.DataFrame(rows, schema={**schema, **shares}, orient="row")

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source.source,
            "arms": list(self.table.arms),
            "found": [each.as_json() for each in self.found],
            "contradicting_rows": self.contradicting_rows,
            "is_corrected": self.is_corrected,
            "corrected": self.rows(),
        }

    def _kinds(self) -> dict[str, list[str]]:
        """What is wrong at each path that a finding names; of a shift at every cell."""
        kinds: dict[str, dict[str, None]] = {}
        for each in self.found:
            cells = each.numbers.get("cells")
            for path in [cell["path"] for cell in cells] if cells else filter(None, [each.path]):
                kinds.setdefault(path, {})[each.kind.replace("_", " ")] = None
        return {path: [*names] for path, names in kinds.items()}

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
    is_sure = explained is not None and explained.is_sure
    times = explained.shift.apply(rows.times) if explained and is_sure else rows.times
    found = find_wrong(rows, times, explained)
    if explained is None or is_sure:
        found += find_possible_swaps(rows, times)
    return PathTableReview(trace.facts, rows, times, found, explained, trace.losses)


def _less(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first - second


def _share(own: Mapping[str, int | None], first: str, other: str) -> float | None:
    less = _less(own[first], own[other])
    return less / own[first] if less is not None and own[first] else None  # type: ignore[operator]
