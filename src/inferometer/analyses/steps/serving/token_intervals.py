"""From one step that makes tokens to the next: what passes in between, exact; and the steps that read prompts.

A sequence gets its next token when the next step that makes tokens has run. So the time between two tokens, as far as
the engine's steps go, is the time from start to start of such steps, and parts without rest into

    busy       the GPU's work in the step
    host       what else the step lasts: launching, waiting, sampling
    others     steps in between that make no tokens: prefills
    between    time that lies in no step: scheduling, and waiting for work

Marks of a host that runs ahead of its GPU are shorter than the work that they queue. Then the lengths of steps say
nothing, only their starts: `host` is what is left of the interval, and `between` is null. Where the GPU's work isn't
known, `busy` is null and `host` the whole step.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl

PAUSE = 10  # times the median interval: longer in no step means that nobody waited for a token, or recording stopped
PARTS = ("busy", "host", "others", "between")
_ODD = ("is_partial", "is_warm_up")  # steps that aren't like those of a run: only their starts count, as ends
_MAKES = ("decode", "mixed")
_READS = ("prefill", "mixed")


class Intervals(msgspec.Struct, frozen=True):
    """One row an interval: `interval_ns` and the `PARTS` that it consists of, ns; a part that can't be known is null.

    `walls_ns` and `busy_ns` are of all steps that make tokens, the last one too. `pauses`: intervals left out.
    `runs_ahead`: see above. `overlaps`: steps began before the one before had ended. Partial and warm-up steps end an
    interval and begin none.
    """

    frame: pl.DataFrame
    walls_ns: pl.Series
    busy_ns: pl.Series
    pauses: int
    runs_ahead: bool
    overlaps: bool

    @property
    def middle(self) -> pl.DataFrame:
        """The middle half of the intervals by length: their mean is near the median, and its parts add up."""
        quarter = self.frame.height // 4
        return self.frame.sort("interval_ns").slice(quarter, self.frame.height - 2 * quarter)


def find_intervals(steps: pl.DataFrame) -> Intervals:
    """Of the steps of one run: `StepTable.steps`, of all phases."""
    known = steps.drop_nulls("wall_ns").sort("start_ns", maintain_order=True).with_columns(_is_odd(steps))
    if known["gpu_busy_ns"].null_count():
        known = known.with_columns(pl.lit(None, dtype=pl.Int64).alias("gpu_busy_ns"))
    makes = pl.col("phase").is_in(_MAKES).fill_null(value=False)
    tokens = known.filter(makes, ~pl.col("is_odd"))
    if known["start_ns"].null_count() or tokens.is_empty():
        return _without_intervals(tokens)
    turns = (
        known.with_columns(makes.cum_sum().alias("turn"))
        .filter(pl.col("turn") > 0)
        .group_by("turn", maintain_order=True)
        .agg(
            pl.col("start_ns", "wall_ns", "gpu_busy_ns", "is_odd").first(),
            (pl.col("wall_ns").sum() - pl.col("wall_ns").first()).alias("others"),
            (pl.col("gpu_busy_ns").sum() - pl.col("gpu_busy_ns").first()).alias("others_busy"),
        )
        .with_columns((pl.col("start_ns").shift(-1) - pl.col("start_ns")).alias("interval_ns"))
        .filter(pl.col("interval_ns").is_not_null() & ~pl.col("is_odd"))
    )
    ahead = _runs_ahead(tokens)
    parted = turns.with_columns(_parts(runs_ahead=ahead)).select("interval_ns", *PARTS)
    kept = parted.filter(pl.col("host" if ahead else "between") <= PAUSE * pl.col("interval_ns").median())
    return Intervals(
        frame=kept,
        walls_ns=tokens["wall_ns"],
        busy_ns=tokens["gpu_busy_ns"],
        pauses=parted.height - kept.height,
        runs_ahead=ahead,
        overlaps=not ahead and bool((kept["between"] < 0).any()),
    )


def _is_odd(steps: pl.DataFrame) -> pl.Expr:
    flags = [pl.col(name).fill_null(value=False) for name in _ODD if name in steps.columns]
    return (pl.any_horizontal(flags) if flags else pl.lit(value=False)).alias("is_odd")


def _without_intervals(tokens: pl.DataFrame) -> Intervals:
    """Of steps whose times aren't all known: how long they lasted, and no more."""
    schema = dict.fromkeys(("interval_ns", *PARTS), pl.Int64)
    ahead = _runs_ahead(tokens)
    return Intervals(pl.DataFrame(schema=schema), tokens["wall_ns"], tokens["gpu_busy_ns"], 0, ahead, overlaps=False)


def _runs_ahead(tokens: pl.DataFrame) -> bool:
    return int(tokens["gpu_busy_ns"].sum()) > int(tokens["wall_ns"].sum())


def _parts(*, runs_ahead: bool) -> Sequence[pl.Expr]:
    busy = pl.col("gpu_busy_ns")
    if runs_ahead:
        rest = pl.col("interval_ns") - busy - pl.col("others_busy")
        none = pl.lit(None, dtype=pl.Int64)
        return [busy.alias("busy"), rest.alias("host"), pl.col("others_busy").alias("others"), none.alias("between")]
    between = pl.col("interval_ns") - pl.col("wall_ns") - pl.col("others")
    return [
        busy.alias("busy"),
        (pl.col("wall_ns") - busy.fill_null(0)).alias("host"),
        pl.col("others"),
        between.alias("between"),
    ]


class Prefills(msgspec.Struct, frozen=True):
    """Steps that read prompts. `chunk_tokens`: what one of them reads at most, where it is known to be a limit.

    `most_tokens`: the most that one of them read. Both are null where the trace doesn't show tokens.
    """

    walls_ns: pl.Series
    most_tokens: int | None
    chunk_tokens: int | None

    def steps_of(self, prompts: Sequence[float]) -> float | None:
        """Steps that a prompt of these lengths needs on average; None where that can't be known.

        A prompt that fits into the largest step that was seen takes one. A longer one is parted, by a limit that only
        steps of equal, largest size show.
        """
        if self.most_tokens is None or not prompts:
            return None
        lengths = np.asarray(prompts, dtype=np.float64)
        if lengths.max() <= self.most_tokens:
            return 1.0
        if self.chunk_tokens is None:
            return None
        return float(np.ceil(lengths / self.chunk_tokens).mean())


def find_prefills(steps: pl.DataFrame) -> Prefills:
    """Of the steps of one run: `StepTable.steps`, of all phases. Tokens of mixed steps are prompts' only in part."""
    reads = steps.drop_nulls("wall_ns").with_columns(_is_odd(steps))
    reads = reads.filter(pl.col("phase").is_in(_READS).fill_null(value=False), ~pl.col("is_odd"))
    if "prefill_tokens" in reads.columns:
        tokens = reads["prefill_tokens"]
    else:
        tokens = reads.select(pl.when(pl.col("phase") == "prefill").then("tokens")).to_series()
    if reads.is_empty() or tokens.null_count():
        return Prefills(reads["wall_ns"], None, None)
    most = int(tokens.max())  # type: ignore[arg-type]
    return Prefills(reads["wall_ns"], most or None, most if most and int((tokens == most).sum()) > 1 else None)
