"""`steps`: time per step, how it grows, which steps are out of line."""

from typing import Annotated

from msgspec import UNSET, UnsetType

from inferometer.reports.schemas.fields import Document, Losses, Part, Remarks, Source, says
from inferometer.reports.schemas.serving_latency import ServingLatency

PhaseName = Annotated[str | None, says("`prefill`, `decode` or `mixed`; null where it isn't known.")]
KernelClass = Annotated[str | None, says("The class of kernels; null where it isn't about one.")]


class RunSteps(Part):
    """A run of the trace."""

    run: Annotated[int, says("Its number.")]
    steps: Annotated[int, says("Its steps.")]


class Step(Part):
    """One step of the run."""

    step: Annotated[int, says("Its number.")]
    run: Annotated[int, says("Its run.")]
    phase: PhaseName
    batch: Annotated[int | None, says("Sequences.")]
    tokens: Annotated[int | None, says("Tokens of all sequences.")]
    prefill_tokens: Annotated[int | None, says("Of these, tokens of prompts.")]
    decode_tokens: Annotated[int | None, says("Of these, generated tokens.")]
    context_len: Annotated[int | None, says("Tokens in the KV cache before.")]
    mean_kv: Annotated[float | None, says("KV positions that a token attends to, on the mean.")]
    start_ns: Annotated[int, says("Its beginning on the trace's clock, ns.")]
    wall_ns: Annotated[int, says("Length of its mark on the host, ns.")]
    window_ns: Annotated[int, says("From its beginning until its work has ended on the device, ns.")]
    gpu_busy_ns: Annotated[int | None, says("Time in which the device ran its work, ns.")]
    gap_ns: Annotated[int | None, says("Time of the window in which the device ran nothing, ns.")]
    disturbed: Annotated[
        bool,
        says("Whether it took longer than its work explains; false, too, where that can't be known: see excess_ns."),
    ]
    excess_ns: Annotated[int | None, says("Busy time beyond the usual at this context, ns; null where none is usual.")]
    gap_excess_ns: Annotated[int | None, says("Gap beyond the usual, ns.")]
    why: Annotated[str | None, says("What was slow. Its words may change.")]
    launches: Annotated[int | None, says("Launches of it.")]
    captures: Annotated[int | None, says("Graphs that were captured in it.")]
    launch_bound_ns: Annotated[int | None, says("Time in which the device waited for launches, ns.")]
    launch_bound_share: Annotated[float | None, says("That time of the window, 0 to 1.")]
    is_partial: Annotated[bool | None, says("Of steps found in the order of kernels: cut by the trace's ends.")]
    is_warm_up: Annotated[bool | None, says("Of steps found in the order of kernels: before the usual ones.")]
    confidence: Annotated[float | None, says("Of steps found in the order of kernels: 0 to 1.")]
    layers: Annotated[int | None, says("Of steps found in the order of kernels: layers seen.")]


class Phase(Part):
    """Steps of one phase; statistics are of `used` steps."""

    phase: PhaseName
    steps: Annotated[int, says("Its steps.")]
    used: Annotated[int, says("Steps that statistics are made of.")]
    tokens: Annotated[int | None, says("Tokens of all its steps.")]
    wall_median_ns: Annotated[float | None, says("Median wall time, ns.")]
    wall_p95_ns: Annotated[float | None, says("95th percentile of the wall time, ns.")]
    wall_mad_ns: Annotated[float | None, says("Median absolute deviation of the wall time, not scaled, ns.")]
    gpu_median_ns: Annotated[float | None, says("Median busy time of the device, ns.")]
    gpu_p95_ns: Annotated[float | None, says("95th percentile of that, ns.")]
    gpu_mad_ns: Annotated[float | None, says("Median absolute deviation of that, not scaled, ns.")]
    window_median_ns: Annotated[float | None, says("Median window, ns.")]
    gap_median_ns: Annotated[float | None, says("Median gap, ns.")]
    wall_per_token_ns: Annotated[
        float | None, says("Wall time for each token, ns; of the step's window where that is longer.")
    ]
    gpu_per_token_ns: Annotated[float | None, says("Busy time for each token, ns.")]
    launches_median: Annotated[int | None, says("Median of launches.")]
    launch_bound_share: Annotated[float | None, says("Time waiting for launches of all windows, 0 to 1.")]


class ClassTime(Part):
    """A class of kernels in one phase."""

    phase: PhaseName
    class_: Annotated[str, says("The class of kernels.")]
    layers: Annotated[int, says("Layers that it is in; 0 where it is in none.")]
    steps: Annotated[int, says("Steps that it is in.")]
    total_ns: Annotated[int, says("Its time in all of these, ns.")]
    share: Annotated[float | None, says("Of the phase's GPU time, 0 to 1.")]
    per_token_median_ns: Annotated[float | None, says("Median time for each token, ns.")]
    per_layer_median_ns: Annotated[float | None, says("Median time in each layer, ns.")]
    first_ns: Annotated[int | None, says("Time in the first of its steps, ns.")]
    last_ns: Annotated[int | None, says("Time in the last one, ns.")]


class Growth(Part):
    """How a class's time of one token grows with the context, over used decode steps; `(all)` is all classes."""

    class_: Annotated[str, says("The class of kernels.")]
    steps: Annotated[int, says("Steps that the line is through.")]
    intercept_ns: Annotated[float | None, says("Time at no context, ns.")]
    slope_ns: Annotated[float | None, says("Time more for each KV position, ns.")]
    low_ns: Annotated[float | None, says("Lower end of the slope's interval, ns.")]
    high_ns: Annotated[float | None, says("Upper end of it, ns.")]
    r2: Annotated[float | None, says("How well the line fits, 0 to 1.")]
    first_share: Annotated[float | None, says("Of the GPU time of the first used step, 0 to 1.")]
    last_share: Annotated[float | None, says("Of that of the last one, 0 to 1.")]


class Difference(Part):
    """A part of what a disturbed step took more, or less, than is usual."""

    step: Annotated[int, says("The step.")]
    phase: PhaseName
    what: Annotated[
        str,
        says("`slower`, `faster`, `more launches`, `fewer launches`, `only here`, `missing`, `host gap` or `rest`."),
    ]
    class_: KernelClass
    excess_ns: Annotated[int, says("Time beyond the usual, ns.")]
    found_ns: Annotated[int | None, says("Time found, ns.")]
    usual_ns: Annotated[int | None, says("Time that is usual, ns.")]
    launches: Annotated[int | None, says("Launches found.")]
    usual_launches: Annotated[float | None, says("Launches that are usual.")]


class Trend(Part):
    """What of a kind of like steps gets slower over the run, or over a decode run."""

    phase: PhaseName
    tokens: Annotated[int | None, says("Tokens of each of these steps.")]
    steps: Annotated[int, says("How many steps.")]
    over: Annotated[str, says("`time`, `position`, `context`, or `both` where they can't be told apart.")]
    of: Annotated[str, says("`wall`, `busy`, `gap` or `class`.")]
    class_: KernelClass
    median_ns: Annotated[float, says("Median time, ns.")]
    slope_ns: Annotated[float, says("Change from one step to the next, ns.")]
    low_ns: Annotated[float, says("Lower end of the slope's interval, ns.")]
    high_ns: Annotated[float, says("Upper end of it, ns.")]
    change_ns: Annotated[float, says("Change from the first to the last step, ns.")]
    share: Annotated[float, says("That change of the median.")]
    is_trend: Annotated[bool, says("Whether it is more than noise.")]


class Steps(Document):
    """The steps of a run."""

    source: Source
    model: Annotated[str | None, says("The model, where the file names it.")]
    run: Annotated[int, says("The run that is shown.")]
    runs: Annotated[list[RunSteps], says("All runs of the trace.")]
    anchor: Annotated[str | None, says("What marks the steps.")]
    steps: list[Step]
    phases: list[Phase]
    classes: list[ClassTime]
    growth: list[Growth]
    disturbed: Annotated[list[int], says("Numbers of the disturbed steps.")]
    differences: list[Difference]
    trends: list[Trend]
    remarks: Remarks
    losses: Losses
    serving: Annotated[
        ServingLatency | UnsetType,
        says("What a benchmark of the server, or the engine's log, says next to these steps."),
    ] = UNSET


DOCUMENT = Steps
