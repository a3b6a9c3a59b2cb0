"""The comparison that LatencyPrism publishes, with its own formulas: for those who expected those numbers.

Source: arXiv 2601.09258 and its artifact of January 2026. The numbers are reproduced, not endorsed: cycles are not
checked to be the same work, the score has no bound and no threshold that separates a fault from chance, all functions
of a cycle share one value of a metric, nothing is corrected for the number of tests, and a faster clock scores like a
slower one. `inferometer compare` without `--published` answers the question itself. Modules: `runs` names
and pairs, `processes` compares a pair, `table` has the formulas, `p_values` the two tests.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import polars as pl

from inferometer.analyses.latencyprism.processes import Process, ProcessComparison, compare_processes
from inferometer.analyses.latencyprism.runs import Pairing, RunNames, check_phases, name_runs, pair_processes
from inferometer.analyses.latencyprism.table import metric_rows
from inferometer.analyses.result import Result
from inferometer.errors import InputError
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

NEEDED = {
    "function_times": ("cycle", "process", "function", "device", "dur_ns", "beta", "cycle_dur_ns"),
    "function_metrics": ("cycle", "process", "function", "metric", "device", "mu", "unit"),
}


@dataclass(frozen=True)
class Published(Result):
    """The comparisons of each pair of processes, those in both runs first. `names` are of the runs."""

    view: ClassVar[str] = "published"
    names: RunNames
    comparisons: tuple[ProcessComparison, ...]
    losses: Losses = field(default_factory=Losses)

    def to_polars(self) -> pl.DataFrame:
        """The published table; of several pairs of processes theirs one below the other, each with its processes."""
        if len(self.comparisons) == 1:
            return self.comparisons[0].table.select(list(self.comparisons[0].columns))
        return pl.concat(
            each.table.select(
                pl.lit(each.base_process, dtype=pl.Int64).alias("base"),
                pl.lit(each.candidate_process, dtype=pl.Int64).alias("candidate"),
                *self.comparisons[0].columns,
            )
            for each in self.comparisons
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "scenario": self.names.scenario,
            "comparisons": [comparison.as_json() for comparison in self.comparisons],
            "losses": self.losses.as_dict(),
        }


def published(
    base: Trace,
    candidate: Trace,
    *,
    pairing: Pairing | None = None,
    labels: tuple[str, str] | None = None,
    scenario: str | None = None,
) -> Published:
    """The published comparison of two runs, pair of processes by pair.

    Args:
        base: Needs the tables of `NEEDED`.
        candidate: Likewise.
        pairing: `strict` compares only processes that are in both runs, one to one; `cross` all with all. By default
            those in both are strict and the others cross.
        labels: What to call the runs; by default the parts of their paths that differ.
        scenario: What the title calls the pair; by default the folders that they share.

    Raises:
        InputError: A run has no functions with metrics; one alone is named a prefill; no processes can be paired.
    """
    check_phases(base.facts.source, candidate.facts.source)
    found = name_runs(base.facts.source, candidate.facts.source)
    names = RunNames(*(labels or (found.base, found.candidate)), found.scenario if scenario is None else scenario)
    runs = [_Run(trace, label) for trace, label in ((base, names.base), (candidate, names.candidate))]
    comparisons = [
        compare_processes(runs[0].process(pair.base), runs[1].process(pair.candidate), pair.pairing)
        for pair in pair_processes(runs[0].processes, runs[1].processes, pairing)
    ]
    return Published(names, tuple(comparisons), _losses_of((base, names.base), (candidate, names.candidate)))


class _Run:
    """One run, by processes."""

    def __init__(self, trace: Trace, label: str) -> None:
        self._label = label
        rows = metric_rows(trace)
        if rows.is_empty():
            raise InputError(
                f"{trace.facts.source}: expected functions with metrics, cycle by cycle, found none",
                hint="The published table is of LatencyPrism's perf_data.csv; compare without --published.",
            )
        cycles = trace.function_times.group_by("process", "cycle").agg(pl.col("cycle_dur_ns").drop_nulls().first())
        self._cycles = cycles.sort("process", "cycle").collect().partition_by("process", as_dict=True)
        self._rows = rows.partition_by("process", as_dict=True)
        self._none = rows.clear()
        self.processes = sorted((key[0] for key in self._cycles), key=lambda process: (process is None, process or 0))

    def process(self, process: int | None) -> Process:
        """One of `processes`."""
        cycles = self._cycles[(process,)]["cycle_dur_ns"]
        has_id = process is not None
        return Process(
            process,
            f"{self._label}_pid_{process}" if has_id else self._label,
            self._label[:1].upper() + self._label[1:] + (f" PID:{process}" if has_id else ""),
            cycles,
            self._rows.get((process,), self._none),
        )


def _losses_of(*runs: tuple[Trace, str]) -> Losses:
    """Those of both runs, added up; an example says which run it is from."""
    losses = Losses(frozenset().union(*(trace.losses.scope for trace, _ in runs)))
    for trace, label in runs:
        losses.add(trace.losses, label)
    return losses
