"""The part of `steps` that a benchmark of a server says: what clients wait for, next to the steps of the engine."""

from typing import Annotated

from inferometer.reports.schemas.fields import Part, says


class Latency(Part):
    """Statistics of one latency, as the benchmark has them; null is what it doesn't say."""

    mean_ns: Annotated[float | None, says("Mean, ns.")]
    median_ns: Annotated[float | None, says("Median, ns.")]
    std_ns: Annotated[float | None, says("Standard deviation, ns.")]
    max_ns: Annotated[float | None, says("Longest, ns.")]
    percentiles_ns: Annotated[dict[str, float], says("By percent, 0 to 100; ns.")]


class Serving(Part):
    """One run of a benchmark, or what an engine printed of itself; null is what it doesn't say."""

    source: Annotated[str, says("The file.")]
    tool: Annotated[str, says("What wrote it.")]
    run: Annotated[int, says("The run's number in the file.")]
    runs: Annotated[int, says("Runs in the file.")]
    model: Annotated[str | None, says("The model.")]
    backend: Annotated[str | None, says("The engine.")]
    label: Annotated[str | None, says("What somebody called it.")]
    date: Annotated[str | None, says("When, as the file has it.")]
    duration_ns: Annotated[float | None, says("How long the run took, ns.")]
    completed: Annotated[int | None, says("Requests that were answered.")]
    failed: Annotated[int | None, says("Requests that failed.")]
    input_tokens: Annotated[int | None, says("Tokens of prompts.")]
    output_tokens: Annotated[int | None, says("Generated tokens.")]
    requests_per_s: Annotated[float | None, says("Over the whole run.")]
    input_tokens_per_s: Annotated[float | None, says("Over the whole run.")]
    output_tokens_per_s: Annotated[float | None, says("Over the whole run.")]
    decode_tokens_per_s: Annotated[float | None, says("Over the time in which tokens after the first were made.")]
    total_tokens_per_s: Annotated[float | None, says("Of prompts and generated, over the whole run.")]
    request_rate_per_s: Annotated[float | None, says("How fast the client sent; null is all at once, or unknown.")]
    concurrency: Annotated[float | None, says("Requests under way on average.")]
    max_concurrency: Annotated[int | None, says("The limit that the client kept.")]
    peak_concurrency: Annotated[int | None, says("The most that there were.")]
    accept_length: Annotated[float | None, says("Tokens that a sequence gets of one step with drafts, on average.")]
    itl_of: Annotated[str | None, says("What `itl` is between: `token` or `chunk`.")]
    prompts_together: Annotated[bool, says("Whether one step read all prompts.")]
    ttft: Annotated[Latency, says("Time to the first token.")]
    tpot: Annotated[Latency, says("Time per output token after the first, of a request.")]
    itl: Annotated[Latency, says("Time between tokens or chunks.")]
    e2e: Annotated[Latency, says("Time of a whole request.")]
    notes: Annotated[list[str], says("What is odd in the file. Their words may change.")]


class LatencyRow(Part):
    """A latency, a part of it, or a length of steps."""

    about: Annotated[str, says("`token` or `first token`.")]
    what: Annotated[str, says("The row in words, which may change.")]
    source: Annotated[str, says("`benchmark`, `log`, `trace`, or `rest` for what is left.")]
    mean_ns: Annotated[float | None, says("Mean, ns.")]
    mean_share: Annotated[float | None, says("Of the latency's mean, 0 to 1.")]
    median_ns: Annotated[float | None, says("Median, ns; of parts: in the middle half of the intervals.")]
    median_share: Annotated[float | None, says("Of the latency's median, 0 to 1.")]
    p95_ns: Annotated[float | None, says("95th percentile, ns.")]
    p99_ns: Annotated[float | None, says("99th percentile, ns.")]


class StepLatency(Part):
    """Which latency is set next to steps."""

    name: Annotated[str, says("In words, which may change.")]
    tokens_per_step: Annotated[float, says("Tokens that a sequence gets of a step.")]


class ServingLatency(Part):
    """A benchmark's run next to the steps of a trace."""

    serving: Serving
    can_be_same_run: Annotated[bool, says("Whether nothing speaks against it; only then is anything parted.")]
    refusals: Annotated[list[str], says("What speaks against it. Their words may change.")]
    rows: Annotated[list[LatencyRow], says("Parts follow what they are parts of.")]
    latency: StepLatency | None
    intervals: Annotated[int, says("Intervals between decode steps.")]
    pauses: Annotated[int, says("Intervals left out, since the engine had nothing to do.")]
    prefill_steps: Annotated[float | None, says("Prefill steps that a prompt needs, on average.")]
    sequences_per_step: Annotated[float | None, says("Sequences in a decode step, on average.")]
    decoding_requests: Annotated[float | None, says("Requests that decode at once, on average, by the benchmark.")]
    steps_tokens_per_s: Annotated[float | None, says("What the steps give, prefills between them counted.")]
    throughput_ratio: Annotated[float | None, says("The benchmark's rate over that.")]
    remarks: Annotated[list[str], says("Sentences for people. Their words may change.")]
