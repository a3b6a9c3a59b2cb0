"""Kernels of two runs side by side: time, calls and mean time of a call in each, and what became of each kernel.

A row is a line of the device in `contributions`, so differences, intervals and kinds are the comparison's own; what a
line calls one (renamed, fused, split) is one row. Collectives, which have a line for waiting, are one row again. Next
to the time in the compared steps stand time and launches in the whole run, exact: summed over all rows they are the
run's. Kernels that no compared step calls have only those.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
import polars as pl

from inferometer.analyses.compare.activity.activity import HOST, Activity
from inferometer.analyses.compare.changes import Changes
from inferometer.analyses.compare.contributions import WAITING, ChangeKind, Contribution
from inferometer.analyses.compare.phases import Pair
from inferometer.analyses.compare.sampling_units import REMAINDERS
from inferometer.names import decode
from inferometer.names.demangle import demangle
from inferometer.trace.trace import Trace

Per = Literal["step", "recording"]
Totals = Mapping[str, tuple[int, int]]
_NOTHING = 0, 0


class KernelSide(msgspec.Struct, frozen=True):
    """A row in one run. `names`: as recorded, of several where they are one line, empty where the run has none.

    `step_ns`, `calls`: of a compared step, null for kernels that none calls. `total_ns`, `launches`: of the whole run.
    """

    names: tuple[str, ...]
    step_ns: int | None
    calls: float | None
    total_ns: int
    launches: int

    @property
    def mean_ns(self) -> float | None:
        """Time of a call in the compared steps; of several kernels that are one line, of a call of all of them."""
        return self.step_ns / self.calls if self.step_ns is not None and self.calls else None

    def as_json(self, side: str) -> dict[str, Any]:
        """Its part of the row."""
        return {
            f"{side}_names": list(self.names),
            f"{side}_ns": self.step_ns,
            f"{side}_calls": self.calls,
            f"{side}_mean_ns": self.mean_ns,
            f"{side}_total_ns": self.total_ns,
            f"{side}_launches": self.launches,
        }


class ComparedKernel(msgspec.Struct, frozen=True):
    """A kernel, or kernels that are one line. `kind` is null where both runs have it and no compared step calls it.

    `interval_ns` holds the difference in 95 of 100 samples, null where it isn't known.
    """

    name: str
    family: str
    kind: ChangeKind | None
    base: KernelSide
    candidate: KernelSide
    interval_ns: tuple[int, int] | None = None

    @property
    def delta_ns(self) -> int | None:
        """Time in a compared step of the candidate less that of the base."""
        before, after = self.base.step_ns, self.candidate.step_ns
        return None if before is None or after is None else after - before

    @property
    def label(self) -> str:
        """What tables call it: the short name of one kernel; of several the line's own words."""
        several = max(len(self.base.names), len(self.candidate.names)) > 1
        return self.name if several else decode(self.name).short_name

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "family": self.family,
            "kind": self.kind,
            "delta_ns": self.delta_ns,
            "interval_ns": None if self.interval_ns is None else list(self.interval_ns),
            **self.base.as_json("base"),
            **self.candidate.as_json("candidate"),
        }


class ComparedKernels(msgspec.Struct, frozen=True):
    """`rows`: the largest difference first. `per`: what `step_ns` and `calls` are of: without steps, a whole recording.

    Either is of one device. The totals of the rows add up to those of the runs, copies among them.
    """

    rows: tuple[ComparedKernel, ...] = ()
    per: Per = "step"

    @property
    def base_total_ns(self) -> int:
        """All device time of the base, as recorded."""
        return sum(row.base.total_ns for row in self.rows)

    @property
    def candidate_total_ns(self) -> int:
        """All device time of the candidate."""
        return sum(row.candidate.total_ns for row in self.rows)

    def as_json(self) -> dict[str, Any]:
        return {
            "per": self.per,
            "base_total_ns": self.base_total_ns,
            "candidate_total_ns": self.candidate_total_ns,
            "rows": [row.as_json() for row in self.rows],
        }


def compare_kernels(base: Trace, candidate: Trace, pair: Pair, changes: Changes) -> ComparedKernels:
    """The table, of runs whose functions were compared.

    Args:
        base: The run, for its totals.
        candidate: The other.
        pair: What was compared.
        changes: And what came of it.
    """
    groups = [*_by_kernels(changes.contributions)]
    left, right = (
        _Run(_totals(trace, activity), (name for lines in groups for name in lines[0].of[side]))
        for side, (trace, activity) in enumerate(((base, pair.base), (candidate, pair.candidate)))
    )
    rows = [_of_lines(lines, left, right) for lines in groups]
    rows += _outside(left.left, right.left)
    per: Per = "step" if all(len(times) for times in changes.step_times) else "recording"
    return ComparedKernels(tuple(sorted(rows, key=_order)), per)


class _Run:
    """Time and launches of each kernel of a run; each is taken once, so rows add up to the run."""

    def __init__(self, totals: Totals, compared: Iterable[str]) -> None:
        self.left, self._compared = dict(totals), frozenset(compared)

    def side(self, names: Sequence[str], others: Sequence[str], step_ns: int, calls: float) -> KernelSide:
        """Of a line with these names here; where it has none, of what no compared step calls by the others' names."""
        taken = names or [name for name in others if name not in self._compared]
        sums = [self.left.pop(name, _NOTHING) for name in taken]
        return KernelSide(tuple(names), step_ns, calls, sum(ns for ns, _ in sums), sum(calls for _, calls in sums))


def _totals(trace: Trace, activity: Activity) -> Totals:
    """Time and launches by kernel in the whole run, wherever they are in no step; of sums, of all that is compared."""
    if activity.basis == "launches":
        by_kernel = trace.compact("launches").group_by("kernel").agg(pl.col("dur_ns").sum(), pl.len())
        sums = by_kernel.with_columns(pl.col("kernel").cast(pl.String)).sort("kernel").collect()
    else:
        device = activity.functions.filter(pl.col("cls") != HOST)
        sums = device.group_by("function").agg(pl.col("dur_ns").sum(), pl.col("calls").sum()).sort("function")
    return {name: (time_ns, launches) for name, time_ns, launches in sums.iter_rows()}


def _by_kernels(lines: Sequence[Contribution]) -> Iterator[list[Contribution]]:
    """The device's lines, those of the same kernels together: time and waiting of a collective."""
    found: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Contribution]] = {}
    for line in lines:
        if line.added and line.cls not in REMAINDERS:
            found.setdefault(line.of, []).append(line)
    yield from found.values()


def _of_lines(lines: Sequence[Contribution], base: _Run, candidate: _Run) -> ComparedKernel:
    first = next(line for line in lines if not line.name.endswith(WAITING))
    changed = next((line for line in lines if line.kind != "same"), first)
    before, after = first.of
    return ComparedKernel(
        name=first.name,
        family=decode((before or after)[0]).family,
        kind=changed.kind,
        base=base.side(before, after, sum(line.base_ns for line in lines), first.base_calls),
        candidate=candidate.side(after, before, sum(line.candidate_ns for line in lines), first.candidate_calls),
        interval_ns=first.interval_ns if len(lines) == 1 else None,
    )


def _outside(base: Totals, candidate: Totals) -> Iterator[ComparedKernel]:
    """Kernels that no compared step calls: before and after them, or in steps of another phase."""
    for name in sorted(base.keys() | candidate.keys()):
        kind: ChangeKind | None = "gone" if name not in candidate else "new" if name not in base else None
        before, after = (_side_outside(name, run) for run in (base, candidate))
        yield ComparedKernel(demangle(name), decode(name).family, kind, before, after)


def _side_outside(name: str, totals: Totals) -> KernelSide:
    return KernelSide((name,) if name in totals else (), None, None, *totals.get(name, _NOTHING))


def _order(row: ComparedKernel) -> tuple[bool, int, int, str]:
    """The largest difference first; then those without one, the most time first."""
    total_ns = row.base.total_ns + row.candidate.total_ns
    return row.delta_ns is None, -abs(row.delta_ns or 0), -total_ns, row.name
