"""What holds for whole runs of an A/B: tokens per second without any instrument, its cost, and the next tokens.

Only passes without scopes yield tokens per second. Prefill reads the prompt and gives the first new token; decode
gives the others, one pass each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from inferometer.analyses.ab.rows import Interval
from inferometer.analyses.ab.statistics import Verdict, discoveries, judge, log_ratios, t_interval, t_test

WHOLE = "whole"
CONFIDENCE = 0.95
_TOKENS = {"prefill": ("batch", "prompt_tokens"), "decode": ("batch", "new_tokens")}


@dataclass(frozen=True)
class PhasePass:
    """A phase of one arm, or all of them (`whole`), without scopes.

    Attributes:
        wall_ns: Median over repetitions, waited for: an interruption of one of them changes no tokens per second.
        interval_ns: Of that median, at 95 %, between two of the times; None of fewer than 6 repetitions.
        tokens_per_s: Of all sequences: read in prefill, made in decode and in the whole. None where the run doesn't
            say how many there were.
        ratio: Candidate over base, from pairs of repetitions; None of the base.
        overhead: Time with scopes over time without, the same. None where the device waited for the host with scopes.
    """

    arm: str
    phase: str
    repetitions: int
    wall_ns: float
    interval_ns: Interval | None
    tokens_per_s: float | None
    ratio: float | None
    interval: Interval | None
    verdict: Verdict | None
    overhead: float | None
    overhead_interval: Interval | None

    def as_json(self) -> dict[str, Any]:
        return {
            "wall_ns": self.wall_ns,
            "interval_ns": self.interval_ns,
            "tokens_per_s": self.tokens_per_s,
            "repetitions": self.repetitions,
            "ratio": self.ratio,
            "interval": self.interval,
            "verdict": self.verdict,
        }


def compare_passes(
    passes: pl.DataFrame, arms: Sequence[str], facts: Mapping[str, Any], level: float
) -> list[PhasePass]:
    """A row an arm and phase, arms in their order, the whole run last where there are several phases."""
    passes = passes.filter(pl.col("arm").is_in(list(arms)))
    phases: list[str] = passes["phase"].unique(maintain_order=True).to_list()
    if len(phases) > 1:
        sums = passes.group_by("arm", "repetition").agg(
            pl.lit(WHOLE).alias("phase"), pl.col("wall_ns", "scoped_ns").sum()
        )
        passes = pl.concat([passes, sums.select(passes.columns)])
        phases = [*phases, WHOLE]
    keys = [(arm, phase) for phase in phases for arm in arms]
    repetitions = passes["repetition"].unique().sort().to_list()
    wall, scoped = (_matrix(passes, keys, repetitions, column) for column in ("wall_ns", "scoped_ns"))
    base = [keys.index((arms[0], phase)) for _, phase in keys]
    logs = log_ratios(wall[base], wall)
    p = np.where([arm == arms[0] for arm, _ in keys], np.nan, t_test(logs))
    believed = discoveries(p, level=level)
    cost_logs = log_ratios(wall, scoped)
    ratios, costs = _intervals(logs), _intervals(cost_logs * np.nan if facts.get("short_waits") else cost_logs)
    found = []
    for i, (arm, phase) in sorted(enumerate(keys), key=lambda each: arms.index(each[1][0])):
        (log, log_within), (cost, cost_within) = ratios[i], costs[i]
        times = np.sort(wall[i][wall[i] > 0])
        if not times.size:
            continue  # this arm never got so far
        median = float(np.median(times))
        tokens = tokens_of(phase, facts)
        ratio, interval = (None, None) if arm == arms[0] else (_exp(log), _exp_both(log_within))
        pairs = int((~np.isnan(logs[i])).sum())
        found.append(
            PhasePass(
                arm=arm,
                phase=phase,
                repetitions=times.size,
                wall_ns=median,
                interval_ns=median_interval(times),
                tokens_per_s=None if tokens is None else tokens * 1e9 / median,
                ratio=ratio,
                interval=interval,
                verdict=None if ratio is None else judge(ratio, interval, pairs=pairs, is_discovery=bool(believed[i])),
                overhead=_exp(cost),
                overhead_interval=_exp_both(cost_within),
            )
        )
    return found


def tokens_of(phase: str, facts: Mapping[str, Any]) -> int | None:
    """How many tokens of all sequences a phase reads (`prefill`) or makes; None where the facts don't say."""
    names = _TOKENS.get(phase, ("batch", "new_tokens") if phase == WHOLE else ())
    counts = [facts.get(name) for name in names]
    if not names or not all(isinstance(count, int) for count in counts):
        return None
    batch, tokens = counts
    made: int = batch * (tokens - 1 if phase == "decode" else tokens)  # type: ignore[operator]
    return made


def _matrix(passes: pl.DataFrame, keys: Sequence[tuple[str, str]], repetitions: Sequence[int], column: str) -> Any:
    """Whole ns by arm and phase, and repetition; 0 where there is none."""
    matrix = np.zeros((len(keys), len(repetitions)), np.int64)
    row_at = {key: i for i, key in enumerate(keys)}
    column_at = {repetition: i for i, repetition in enumerate(repetitions)}
    for arm, phase, repetition, ns in passes.select("arm", "phase", "repetition", column).iter_rows():
        matrix[row_at[arm, phase], column_at[repetition]] = ns or 0
    return matrix


def median_interval(times: Any) -> Interval | None:
    """Between which two of the sorted times the median lies, at 95 % or more, whatever they are distributed like.

    By the binomial distribution of how many lie below it; None where too few to tell: fewer than 6.
    """
    from scipy.special import bdtr

    outside = sum(bdtr(k, times.size, 0.5) <= (1 - CONFIDENCE) / 2 for k in range(times.size // 2))
    return (float(times[outside - 1]), float(times[-outside])) if outside else None


def _intervals(values: Any) -> list[tuple[float | None, Interval | None]]:
    """Mean and t-interval of each row."""
    return [
        (None if np.isnan(mean) else float(mean), None if np.isnan(low) else (float(low), float(high)))
        for mean, low, high in zip(*t_interval(values), strict=True)
    ]


def _exp(log: float | None) -> float | None:
    return None if log is None else float(np.exp(log))


def _exp_both(logs: Interval | None) -> Interval | None:
    return None if logs is None else (float(np.exp(logs[0])), float(np.exp(logs[1])))
