"""What a trace's own source says of latency and throughput: an engine that prints them at the end of its log."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from inferometer.analyses.steps.serving.latency_rows import number_of
from inferometer.formats.serving_results.serving import Latency, Serving
from inferometer.trace.trace import Trace

ENGINE_LOG = "the engine's log"


def serving_of(trace: Trace, run: int | None = None) -> Serving | None:
    """What an engine's log says of its own latency and throughput: of one sequence, made one after another.

    Args:
        trace: Its `facts.engine_metrics` may have `ttft_ns`, `decode_ns`, `decode_tokens` and rates.
        run: Of a log with several; the first by default.

    Returns:
        None where the source shows neither the time to the first token nor that of decoding.
    """
    metrics: Mapping[str, Any] = trace.facts.engine_metrics
    runs = metrics.get("runs")
    several = runs if isinstance(runs, list) and len(runs) > 1 else [metrics]
    if not 0 <= (run or 0) < len(several) or not isinstance(several[run or 0], Mapping):
        return None
    own: Mapping[str, Any] = several[run or 0]
    perf = own.get("perf") if isinstance(own.get("perf"), Mapping) else {}

    def logged(name: str, *, first: Mapping[str, Any] | None = None) -> float | None:
        sources = (own, perf) if first is None else (first, own)
        values = (number_of(each.get(name)) for each in sources if isinstance(each, Mapping))
        return next((value for value in values if value is not None and value > 0), None)

    ttft_ns, decode_ns = logged("ttft_ns"), logged("decode_ns")
    tokens = logged("decode_tokens", first=perf)  # the engine counts those of decode steps; a harness adds the first
    each_ns = None if decode_ns is None or tokens is None else decode_ns / tokens
    if ttft_ns is None and each_ns is None:
        return None
    prompt, output, total_ns = logged("prefill_tokens"), logged("decode_tokens"), logged("total_ns")
    return Serving(
        source=trace.facts.source,
        tool=ENGINE_LOG,
        run=run or 0,
        runs=len(several),
        model=own.get("model") or trace.facts.model,
        duration_ns=total_ns,
        completed=1,
        input_tokens=None if prompt is None else int(prompt),
        output_tokens=None if output is None else int(output),
        input_tokens_per_s=logged("prefill_tokens_per_s"),
        output_tokens_per_s=logged("total_tokens_per_s"),
        decode_tokens_per_s=logged("decode_tokens_per_s"),
        max_concurrency=_sequences(trace, run if len(several) > 1 else None),
        ttft=Latency(mean_ns=ttft_ns),
        tpot=Latency(mean_ns=each_ns),
    )


def _sequences(trace: Trace, run: int | None) -> int | None:
    """The most sequences that a recorded step had."""
    if "steps" not in trace.scope:
        return None
    own = trace.steps if run is None else trace.steps.filter(pl.col("process") == run)
    most = own.select(pl.col("batch").max()).collect().item()
    return most if isinstance(most, int) and most > 0 else None
