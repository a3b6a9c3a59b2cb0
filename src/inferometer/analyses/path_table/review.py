"""What is wrong with a printed table of times by call path, and the table as it should be: joined by key.

Source of the kinds of fault: a table that the profiler of a Llama port printed, whose second column stands one row off
from the path that its run lacks. Modules: `rows` is the table, `fit` says how well times fit
their paths, `orders` and `shift` look for times that stand at other paths, `found`
says what is wrong.

Leaves out what share of a caller its callees explain: the table has means per call and no counts of calls, and a
callee may run once or 64 times in a call. Counts taken from a model's config would be a guess about the run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inferometer.analyses.path_table.found import Found, dearer_in_all, find_wrong, short
from inferometer.analyses.path_table.rows import PathRows, Times, find_rows
from inferometer.analyses.path_table.shift import Explained, explain
from inferometer.analyses.result import Field, Result, Section, frame_of
from inferometer.trace.facts import Facts
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

CANT_TELL = (
    "Times are means per call without counts: they can't be added up, and no share of a caller can be known.",
    "No spread and no repetitions: whether a difference is more than chance can't be known.",
    "Host times: without waiting for the device they are times of launching, and the wait shows where it was done.",
    "Whether the runs did the same work (tokens, steps, sampling, an early stop) isn't in it.",
    "What has one path is one row: layers, call sites of one name, prefill and decode are pooled.",
    "A column's title is a label: which backend ran isn't known. Loading and warming up are in the path that did it.",
)
_MOST_NAMED = 5


@dataclass(frozen=True)
class PathTableReview(Result):
    """A table with what is wrong with it. `times` are by the paths that they are of, as far as that can be known.

    Attributes:
        table: The table as printed.
        times: By arm and row, ns per call. As printed where nothing is wrong, or where it can't be known what is right.
        found: What is wrong, the gravest first; empty where nothing is.
        explained: The shift that explains the table best, where there is one.
    """

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

    def facts(self) -> Sequence[tuple[str, str]]:
        return [
            ("File", self.source.source),
            ("Runs", ", ".join(self.table.arms)),
            ("Paths", f"{len(self.table.paths):,}"),
            ("Wrong", f"{len(self.found):,} findings" if self.found else "nothing was found"),
        ]

    def remarks(self) -> Sequence[str]:
        known = [f"{each.kind.replace('_', ' ').capitalize()}. {each.words}" for each in self.found]
        if len(self.table.arms) < 2:
            known.append("The table has one run: whether its times stand at their own paths can't be checked.")
        if dearer := [short(path) for path in dearer_in_all(self.table, self.times)]:
            more = f" and {len(dearer) - _MOST_NAMED:,} more" if len(dearer) > _MOST_NAMED else ""
            known.append(
                f"A call takes longer than one of its caller at {', '.join(dearer[:_MOST_NAMED])}{more}, in every run: "
                "not every call of the caller calls it."
            )
        return known

    def sections(self) -> Sequence[Section]:
        """The table by key: times per call of each run, and the first run less each other."""
        arms = list(enumerate(self.table.arms))
        first, others = self.table.arms[0], arms[1:]
        shifted = {self.explained.shift.arm} if self.explained and self.is_corrected else set()
        fields = [
            Field("kernel", "Kernel", "name"),
            *(Field(f"host_ns_{i}", arm, "ns") for i, arm in arms),
            *(Field(f"difference_ns_{i}", f"{first} − {arm}", "ns") for i, arm in others),
            *(Field(f"difference_share_{i}", f"% of {first}", "share", spare=1) for i, _ in others),
            *(Field(f"printed_ns_{i}", f"{arm}, printed", "ns", spare=2) for i, arm in arms if i in shifted),
            *([Field("found", "Found", "text", spare=3)] if self.found else []),
            Field("path", "Path", "name", spare=4),
        ]
        kinds: dict[str, list[str]] = {}
        for path, kind in _places(self.found):
            kinds.setdefault(path, []).append(kind.replace("_", " "))
        rows = [
            {
                "kernel": "  " * row["depth"] + row["name"],
                "path": row["path"],
                "found": ", ".join(dict.fromkeys(kinds.get(row["path"], ()))),
                **{f"host_ns_{i}": row["arms"][arm] for i, arm in arms},
                **{f"printed_ns_{i}": row["printed"][arm] for i, arm in arms},
                **{f"difference_ns_{i}": row["difference_ns"][arm] for i, arm in others},
                **{f"difference_share_{i}": row["difference_share"][arm] for i, arm in others},
            }
            for row in self._rows()
        ]
        title = "By key, time of one call" if self.is_corrected else "As printed, time of one call"
        return [Section(title, fields, frame_of(rows, fields), CANT_TELL)]

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source.source,
            "arms": list(self.table.arms),
            "found": [each.as_json() for each in self.found],
            "is_corrected": self.is_corrected,
            "corrected": self._rows(),
            "remarks": list(self.remarks()),
            "cant_tell": list(CANT_TELL),
        }

    def _rows(self) -> list[dict[str, Any]]:
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
    return PathTableReview(trace.facts, rows, times, find_wrong(rows, times, explained), explained, trace.losses)


def _places(found: Sequence[Found]) -> Iterator[tuple[str, str]]:
    """Paths that are named, with what is wrong there; of a shift every cell."""
    for each in found:
        cells = each.numbers.get("cells")
        for path in [cell["path"] for cell in cells] if cells else filter(None, [each.path]):
            yield path, each.kind


def _less(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first - second


def _share(own: Mapping[str, int | None], first: str, other: str) -> float | None:
    less = _less(own[first], own[other])
    return less / own[first] if less is not None and own[first] else None  # type: ignore[operator]
