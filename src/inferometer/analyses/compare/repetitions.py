"""What two runs repeated and timed, without saying what it is made of: tests of a benchmark, or steps alone.

Tests are the table `tests`. Steps count where a source has nothing else: those of one kind are repetitions of the same
thing. Decode steps that tell their tokens are timed per token, others as a whole, apart by the tokens of their prompts.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
import polars as pl

from inferometer.analyses.tables.tests import tests_of
from inferometer.trace.trace import Trace

_KIND: Final = ("anchor", "phase", "batch", "prompt", "per_token")


class Repeated(msgspec.Struct, frozen=True):
    """One thing that was repeated. Times are ns, of a token where `per_token`; what isn't known is None.

    `count`: repetitions. `rate`: tokens/s, the mean over repetitions, where the source has it.
    """

    name: str
    count: int | None
    mean_ns: float | None
    stddev_ns: float | None
    rate: float | None = None
    rate_stddev: float | None = None
    per_token: bool = False

    @property
    def spread(self) -> float | None:
        """Deviation of a repetition as part of the mean: of times where they are known, else of rates."""
        mean, deviation = (self.mean_ns, self.stddev_ns) if self.mean_ns else (self.rate, self.rate_stddev)
        return deviation / mean if mean and deviation is not None else None


def repeated_in(trace: Trace) -> list[Repeated]:
    """What the run repeated, in its order; empty where it has neither tests nor steps with a length."""
    return [*_of_tests(trace)] or [*_of_steps(trace)]


def has_tests(trace: Trace) -> bool:
    """Whether it is a benchmark's result."""
    return not tests_of(trace).is_empty()


def _of_tests(trace: Trace) -> Iterator[Repeated]:
    for row in tests_of(trace).iter_rows(named=True):
        yield Repeated(
            row["test"],
            row["repetitions"],
            row["mean_ns"],
            row["stddev_ns"],
            row["tokens_per_s"],
            row["tokens_per_s_stddev"],
        )


def _of_steps(trace: Trace) -> Iterator[Repeated]:
    if "steps" not in trace.scope:
        return
    per_token = (pl.col("phase") == "decode").fill_null(value=False) & (pl.col("decode_tokens") > 0).fill_null(
        value=False
    )
    steps = trace.steps.filter(pl.col("dur_ns") > 0).with_columns(
        per_token=per_token,
        prompt=pl.when(~per_token).then("prefill_tokens"),
        each_ns=pl.when(per_token).then(pl.col("dur_ns") / pl.col("decode_tokens")).otherwise("dur_ns"),
    )
    sums = steps.group_by(_KIND, maintain_order=True).agg(
        pl.len().alias("count"), pl.col("each_ns").mean().alias("mean"), pl.col("each_ns").std().alias("stddev")
    )
    for row in sums.collect().iter_rows(named=True):
        yield Repeated(_name(row), row["count"], row["mean"], row["stddev"], per_token=row["per_token"])


def _name(row: dict[str, object]) -> str:
    """`prefill of 512 tokens`, `decode, a token, batch 8`."""
    prompt, batch = row["prompt"], row["batch"]
    name = str(row["phase"] or row["anchor"] or "step")
    name += f" of {prompt:,} tokens" if prompt and not row["per_token"] else ""
    name += ", a token" if row["per_token"] else ""
    return name + (f", batch {batch:,}" if isinstance(batch, int) and batch > 1 else "")
