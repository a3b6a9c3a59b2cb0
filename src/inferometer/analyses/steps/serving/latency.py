"""What clients wait for, set next to the steps of the engine: what of a latency is steps, and what is scheduling.

A benchmark times from outside, a trace holds some steps of the inside. From token to token, the benchmark's latency is

    the GPU's work in the step + the rest of the step + other steps between + in no step + beyond the recorded steps

which adds up exactly, since the last part is the rest. For the mean, parts are means over all intervals of
`token_intervals`; for the median, over their middle half. A delay that is the same for each token (detokenising,
streaming, the network) cancels between two tokens; the rest is what varies of it, and steps that a sequence sat out: in
the queue after a preemption, while other batches had their turn, or behind prefills that the trace doesn't hold. To the
first token, it is the prefill steps that a prompt needs and a rest, in which such delays are whole.

The two are rarely recorded together, so nothing is parted where they can't be the same run. Where they can, that isn't
proof: steps under a profiler are slower, and a trace holds a moment of a run.
"""

from typing import Any

import msgspec
import polars as pl

from inferometer.analyses.steps.serving.engine_facts import ENGINE_LOG, serving_of
from inferometer.analyses.steps.serving.latency_rows import (
    FIRST,
    FIRST_NAMES,
    PART_NAMES,
    ROWS,
    TOKEN,
    TOLERANCE,
    first_rows,
    mean_of,
    number_of,
    token_rows,
)
from inferometer.analyses.steps.serving.load import Load, StepLatency, find_load, find_step_latency
from inferometer.analyses.steps.serving.token_intervals import Intervals, Prefills, find_intervals, find_prefills
from inferometer.formats.serving_results.serving import Serving
from inferometer.units import format_duration

__all__ = ["ServingLatency", "find_serving_latency", "serving_of"]

_PART = "· "  # before the names of parts


class ServingLatency(msgspec.Struct, frozen=True):
    """A benchmark's run next to the steps of a trace.

    `refusals`: why the two can't be the same run; then nothing is parted. `rows`: as `ROWS` says; parts follow what
    they are parts of, and a trace's own lengths of steps follow the parts. `prefill_steps`: what a prompt needs, on
    average. `steps_tokens_per_s`: what the steps give, prefills between them counted; `throughput_ratio`: the
    benchmark's rate over that.
    """

    serving: Serving
    refusals: tuple[str, ...]
    rows: pl.DataFrame
    intervals: Intervals
    prefills: Prefills
    load: Load
    step_latency: StepLatency | None
    prefill_steps: float | None
    steps_tokens_per_s: float | None
    throughput_ratio: float | None
    model: str | None

    @property
    def can_be_same_run(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.refusals

    def part(self, what: str, statistic: str = "mean") -> float | None:
        """Time of one of `PARTS` or `outside`, ns, of the `mean` or the `median`; None where it can't be known."""
        return self._value(TOKEN, PART_NAMES[what], f"{statistic}_ns")

    def first_token(self, what: str, statistic: str = "mean") -> float | None:
        """Time of `steps` or `rest`, ns, of the time to the first token; None where it can't be known."""
        return self._value(FIRST, FIRST_NAMES[what], f"{statistic}_ns")

    def _value(self, about: str, what: str, column: str) -> float | None:
        found = self.rows.filter(pl.col("about") == about, pl.col("what") == what)[column]
        return found[0] if len(found) else None

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        found = self.step_latency
        return {
            "serving": self.serving.as_json(),
            "can_be_same_run": self.can_be_same_run,
            "refusals": list(self.refusals),
            "rows": [row | {"what": row["what"].removeprefix(_PART)} for row in self.rows.iter_rows(named=True)],
            "latency": None if found is None else {"name": found.name, "tokens_per_step": found.tokens},
            "intervals": self.intervals.frame.height,
            "pauses": self.intervals.pauses,
            "prefill_steps": self.prefill_steps,
            "sequences_per_step": self.load.sequences,
            "decoding_requests": self.load.decoding,
            "steps_tokens_per_s": self.steps_tokens_per_s,
            "throughput_ratio": self.throughput_ratio,
        }


def find_serving_latency(serving: Serving, steps: pl.DataFrame, model: str | None) -> ServingLatency:
    """A benchmark's run next to the steps of a run of a trace.

    Args:
        serving: From `read_serving`, or `serving_of`.
        steps: `StepTable.steps`, all of the run: with a phase left out, its time would count as in no step.
        model: What the trace calls its model.
    """
    intervals, prefills = find_intervals(steps), find_prefills(steps)
    load = find_load(serving, steps, is_printed=serving.tool == ENGINE_LOG)
    latency = find_step_latency(serving, load.tokens)
    refusals = tuple(_refusals(serving, intervals, load, latency))
    needed = prefills.steps_of(_prompts(serving))
    rate, ratio = (None, None) if refusals else _throughput(serving, intervals, load)
    rows = [
        *token_rows(latency, intervals, is_parted=not refusals),
        *first_rows(serving, prefills, None if refusals else needed),
    ]
    frame = pl.DataFrame(rows, schema=ROWS)
    if serving.tool == ENGINE_LOG:
        frame = frame.with_columns(pl.col("source").replace("benchmark", "log"))
    return ServingLatency(
        serving=serving,
        refusals=refusals,
        rows=frame,
        intervals=intervals,
        prefills=prefills,
        load=load,
        step_latency=latency,
        prefill_steps=needed,
        steps_tokens_per_s=rate,
        throughput_ratio=ratio,
        model=model,
    )


def _refusals(serving: Serving, intervals: Intervals, load: Load, found: StepLatency | None) -> list[str]:
    refusals: list[str] = []
    if serving.tool == ENGINE_LOG:
        return refusals  # what it says is of the very steps that it printed
    most = serving.most_requests
    if load.most_sequences is not None and most is not None and load.most_sequences > most:
        drafts = " (or tokens, drafts among them)" if load.are_tokens else ""
        refusals.append(
            f"A decode step of the trace has {load.most_sequences:,} sequences{drafts}, and the benchmark had at most "
            f"{most:,} requests under way: they can't be the same run, so nothing is parted."
        )
    if found is None:
        return refusals
    waited = found.latency.median_ns if found.latency.median_ns is not None else found.latency.mean_ns
    step_ns = _usual_step(intervals)
    if waited is not None and step_ns is not None and waited < (1 - TOLERANCE) * step_ns:
        refusals.append(
            f"The recorded steps follow each other every {format_duration(step_ns)}, and the benchmark's {found.name} "
            f"is {format_duration(waited)} per step: they can't be the same run, or the profiler slowed the steps "
            "down, or they are of another moment of it. So nothing is parted."
        )
    return refusals


def _usual_step(intervals: Intervals) -> float | None:
    """Time from step to step, ns, or of a step where no more is known."""
    if intervals.frame.height:
        return mean_of(intervals.middle["interval_ns"])
    return None if intervals.runs_ahead else number_of(intervals.walls_ns.median())


def _prompts(serving: Serving) -> list[float]:
    """Lengths of prompts, in tokens: each one's, else their mean; all together where one step reads them."""
    if serving.prompts_together:
        return [float(serving.input_tokens)] if serving.input_tokens else []
    lengths = serving.requests.drop_nulls("ttft_ns")["input_tokens"]
    if len(lengths) and lengths.null_count() == 0:
        return [float(length) for length in lengths]
    return [serving.prompt_tokens] if serving.prompt_tokens else []


def _throughput(serving: Serving, intervals: Intervals, load: Load) -> tuple[float | None, float | None]:
    """Tokens/s that the steps give while they decode, and what the benchmark's rate is of that."""
    interval_ns = mean_of(intervals.frame["interval_ns"])
    if load.sequences is None or load.tokens is None or not interval_ns:
        return None, None
    rate = load.sequences * load.tokens / interval_ns * 1e9
    measured = serving.decode_tokens_per_s or serving.output_tokens_per_s
    return rate, None if measured is None else measured / rate
