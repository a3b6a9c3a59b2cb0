"""Two processes compared as LatencyPrism publishes it: its summary, its ranked cycles, its table and its key findings.

Source: arXiv 2601.09258 and its artifact of January 2026; see `comparison`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from inferometer.analyses.latencyprism.runs import Pairing
from inferometer.analyses.latencyprism.table import published_table

SUSPICIOUS = 10.0
"""Rows with a higher score are key findings, as published."""

_MOST_FINDINGS = 3
_MOST_METRICS = 3
_LEAST_DELTA_MU = 1e-6


@dataclass(frozen=True)
class Process:
    """One process: its number, names, lengths of its cycles in order, and rows of metrics."""

    process: int | None
    name: str
    title: str
    cycles: pl.Series
    rows: pl.DataFrame


@dataclass(frozen=True)
class MovedMetric:
    """A metric of a finding; `base` and `candidate` are means of mu as the file has it."""

    metric: str
    base: float
    candidate: float


@dataclass(frozen=True)
class Finding:
    """A function on a device among the rows of highest score. Shares of the cycle are in percent.

    `p` is Welch's, None where neither run varies. `metrics`: those of its rows above the threshold that moved.
    """

    function: str
    device: str
    beta_base: float
    beta_candidate: float
    p: float | None
    metrics: tuple[MovedMetric, ...]


@dataclass(frozen=True)
class ProcessComparison:
    """Two processes. `base` and `candidate` are their names in columns; titles call them `base_title` and so on.

    `cycles`: each run's number of them; `mean_us`: their mean length, None where no length is known.
    `ranks`: `rank` k, and each run's k-th longest cycle, us: `base_us`, `candidate_us`; null where it has no more.
    `table`: the rows of `published_table`.
    """

    pairing: Pairing
    base: str
    candidate: str
    base_title: str
    candidate_title: str
    base_process: int | None
    candidate_process: int | None
    cycles: tuple[int, int]
    mean_us: tuple[float | None, float | None]
    ranks: pl.DataFrame
    table: pl.DataFrame
    findings: tuple[Finding, ...]

    @property
    def columns(self) -> dict[str, str]:
        """The published title of each column of `table` that is shown, in order."""
        one, two = self.base, self.candidate
        return {
            "function": "Function Name",
            "metric": "Metric Name",
            "device": "Device",
            "score": "Suspicion Score",
            "beta_base": f"β_{one}(%)",
            "beta_candidate": f"β_{two}(%)",
            "beta_delta": "Δβ(%)",
            "beta_z": "Z-Score(β)",
            "beta_p": "p-value(β)",
            "beta_u_p": "U-test p(β)",
            "mu_base": f"μ_{one}",
            "mu_candidate": f"μ_{two}",
            "mu_delta": "Δμ",
            "mu_z": "Z-Score(μ)",
            "log_mu_z": "Z-Score(log_μ)",
            "mu_p": "p-value(μ)",
            "mu_u_p": "U-test p(μ)",
        }

    @property
    def shown(self) -> pl.DataFrame:
        """`table` under the published titles."""
        return self.table.select(pl.col(name).alias(title) for name, title in self.columns.items())

    def as_json(self) -> dict[str, Any]:
        """Everything as plain data."""
        one, two = self.mean_us
        return {
            "pairing": self.pairing,
            "base": {"label": self.base, "process": self.base_process, "cycles": self.cycles[0], "mean_cycle_us": one},
            "candidate": {
                "label": self.candidate,
                "process": self.candidate_process,
                "cycles": self.cycles[1],
                "mean_cycle_us": two,
            },
            "cycle_ranks": self.ranks.to_dicts(),
            "findings": [
                {
                    "function": finding.function,
                    "device": finding.device,
                    "beta_base": finding.beta_base,
                    "beta_candidate": finding.beta_candidate,
                    "p": finding.p,
                    "metrics": [
                        {"metric": moved.metric, "base": moved.base, "candidate": moved.candidate}
                        for moved in finding.metrics
                    ],
                }
                for finding in self.findings
            ],
            "table": self.shown.to_dicts(),
        }


def compare_processes(one: Process, two: Process, pairing: Pairing) -> ProcessComparison:
    """The comparison of process `two` with process `one` of the base."""
    table = published_table(one.rows, two.rows)
    table = table.with_columns(pl.col("device").replace({device: _spelled(device) for device in set(table["device"])}))
    lengths = [_lengths_us(process.cycles) for process in (one, two)]
    n = max(map(len, lengths))
    columns = [
        pl.Series(name, each.extend_constant(None, n - len(each)))
        for name, each in zip(("base_us", "candidate_us"), lengths, strict=True)
    ]
    return ProcessComparison(
        pairing=pairing,
        base=one.name,
        candidate=two.name,
        base_title=one.title,
        candidate_title=two.title,
        base_process=one.process,
        candidate_process=two.process,
        cycles=(len(one.cycles), len(two.cycles)),
        mean_us=(_mean_us(one.cycles), _mean_us(two.cycles)),
        ranks=pl.DataFrame([pl.int_range(1, n + 1, eager=True).alias("rank"), *columns]),
        table=table,
        findings=_findings(table),
    )


def _lengths_us(cycles: pl.Series) -> pl.Series:
    """Longest first; those that are known. NumPy divides exactly, Polars multiplies by the reciprocal."""
    return pl.Series(cycles.drop_nulls().sort(descending=True).to_numpy() / 1000.0)


def _mean_us(cycles: pl.Series) -> float | None:
    known = cycles.drop_nulls()
    return int(known.sum()) / len(known) / 1000 if len(known) else None


def _spelled(device: str) -> str:
    """As published: `GPU 7`, `Host`."""
    word, _, number = device.partition(":")
    return f"{word.upper()} {number}" if number else word.capitalize()


def _findings(table: pl.DataFrame) -> tuple[Finding, ...]:
    """The first functions with a row above the threshold, and which metrics moved in such rows."""
    rows = table.filter(pl.col("score") > SUSPICIOUS).partition_by("function", "device", maintain_order=True)
    return tuple(_finding(some.to_dicts()) for some in rows[:_MOST_FINDINGS])


def _finding(rows: Sequence[dict[str, Any]]) -> Finding:
    first = rows[0]
    moved = [row for row in rows if abs(row["mu_delta"]) > _LEAST_DELTA_MU][:_MOST_METRICS]
    return Finding(
        first["function"],
        first["device"],
        first["beta_base"],
        first["beta_candidate"],
        first["beta_p"],
        tuple(MovedMetric(row["metric"], row["mu_base"], row["mu_candidate"]) for row in moved),
    )
