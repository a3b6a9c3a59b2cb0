"""What clients wait for, next to the steps: a table, and how much of the latency is steps."""

from collections.abc import Iterator

from inferometer.analyses.steps.serving.engine_facts import ENGINE_LOG
from inferometer.analyses.steps.serving.latency import ServingLatency
from inferometer.reports.views.layout import Field, Section
from inferometer.units import format_duration, format_sample, format_share

_FIELDS = (
    Field("about", "Wait for", "text"),
    Field("mean_ns", "Mean", "ns"),
    Field("mean_share", "Of mean", "share"),
    Field("median_ns", "Median", "ns"),
    Field("median_share", "Of median", "share", spare=3),
    Field("p95_ns", "p95", "ns", spare=2),
    Field("p99_ns", "p99", "ns", spare=1),
    Field("source", "From", "text", spare=4),
    Field("what", "What", "name"),
)
_OTHER_LOAD = 2.0  # times as many sequences, or as few: another load than most of the benchmark's
_MORE = 1.05  # times the steps' rate: contexts and the share of prefills differ by less in one run
_EXPLAINED = 0.02  # of the latency: a smaller rest is noise, and needs no reasons
_INSIDE = {
    "others": "steps in between that make no tokens (prefills)",
    "between": "no step: scheduling",
}


def latency_section(waits: ServingLatency) -> Section:
    """The table."""
    notes = (f"Next to {waits.serving.describe()}.",)
    return Section("What clients wait for", _FIELDS, waits.rows, notes)


def latency_remarks(waits: ServingLatency) -> Iterator[str]:
    """Sentences, the most important first."""
    yield from waits.refusals
    if waits.model and waits.serving.model and not _is_same_model(waits.model, waits.serving.model):
        yield f'The benchmark is of the model "{waits.serving.model}", the trace of "{waits.model}".'
    yield from _token(waits)
    yield from _first_token(waits)
    yield from _throughput(waits)
    yield from _untold(waits)
    yield from waits.serving.notes


def _is_same_model(one: str, other: str) -> bool:
    """By the last part of a path or repository's name."""
    first, second = (name.rstrip("/").rpartition("/")[2].casefold() for name in (one, other))
    return first == second


def _token(waits: ServingLatency) -> Iterator[str]:
    found = waits.step_latency
    if found is None:
        return
    statistic, whole = ("mean", found.latency.mean_ns) if found.latency.mean_ns is not None else ("median", None)
    whole = found.latency.median_ns if whole is None else whole
    outside = waits.part("outside", statistic)
    if whole and outside is not None:
        busy, host = (waits.part(part, statistic) for part in ("busy", "host"))
        step = (busy or 0) + (host or 0)
        gpu = "" if busy is None else f", {_of(busy, whole)} the GPU's work in it"
        others = [
            f"; {_of(value, whole)} {'is' if part == 'others' else 'lies in'} {words}"
            for part, words in _INSIDE.items()
            if (value := waits.part(part, statistic))
        ]
        yield (
            f"Of {format_duration(whole)} from one step of a sequence to the next ({statistic} {found.name}), "
            f"{_of(step, whole)} is the step{gpu}{''.join(others)}."
        )
        yield from _beyond(outside, whole)
    if found.tokens != 1 and whole:
        each = format_duration(whole / found.tokens)
        yield f"A step gives a sequence {found.tokens:.3g} tokens on average, so a token takes {each}."
    if found.note:
        yield found.note


def _beyond(outside: float, whole: float) -> Iterator[str]:
    if outside < 0:
        yield "The recorded steps take all of it, and a little more: nothing beyond them can be known."
    elif outside >= _EXPLAINED * whole:
        yield (
            f"{_of(outside, whole)} passes beyond the recorded steps: a sequence sat steps out (preempted, behind "
            "prefills that the trace doesn't hold, while other batches had their turn), or the stream stuttered. "
            "A delay that all tokens have cancels here; it is in the time to the first token."
        )
    elif outside > 0:
        yield f"{_of(outside, whole)} passes beyond the recorded steps."


def _of(value: float, whole: float) -> str:
    return f"{format_duration(value)} ({format_share(value / whole)})"


def _first_token(waits: ServingLatency) -> Iterator[str]:
    ttft, walls = waits.serving.ttft, waits.prefills.walls_ns
    statistic, whole = ("mean", ttft.mean_ns) if ttft.mean_ns is not None else ("median", ttft.median_ns)
    if whole is None:
        return
    takes = f"The first token takes {format_duration(whole)} ({statistic})"
    if walls.is_empty():
        yield f"{takes}; no prefill step was recorded to compare it with."
        return
    wall = walls.mean() if statistic == "mean" else walls.median()
    rest, step = waits.first_token("rest", statistic), wall if isinstance(wall, int | float) else 0.0
    if rest is not None:
        steps = waits.prefill_steps or 1
        needs = "one prefill step" if steps == 1 else f"{steps:.3g} prefill steps"
        yield (
            f"Of {format_duration(whole)} to the first token ({statistic}), {_of(whole - rest, whole)} is {needs}, and "
            f"{_of(rest, whole)} the rest: queueing, scheduling, sampling, streaming, the network."
        )
    elif waits.refusals:
        return
    elif whole < step:
        recorded = f"the recorded prefill steps {format_duration(step)}"
        yield f"{takes}, and {recorded}: they can't be of the same prompts."
    elif waits.prefill_steps is None:
        yield (
            f"{takes}. How many prefill steps a prompt needs isn't known; with one of {format_duration(step)}, at most "
            f"{_of(whole - step, whole)} is queueing and the rest."
        )
    else:
        yield (
            f"{takes}, less than {waits.prefill_steps:.3g} of the recorded prefill steps "
            f"({format_duration(step)} each): they can't be of the same prompts."
        )


def _throughput(waits: ServingLatency) -> Iterator[str]:
    rate, ratio = waits.steps_tokens_per_s, waits.throughput_ratio
    if rate is not None and ratio is not None:
        whose, share = "log" if waits.serving.tool == ENGINE_LOG else "benchmark", format_share(ratio)
        text = f"The {whose}'s output is {share} of the {format_sample(rate)} tokens/s that the recorded steps give"
        if ratio > _MORE and whose == "log":
            yield f"{text}: its rate leaves out the time between steps, or is of another run."
        elif ratio > _MORE:
            yield f"{text}: the server has several replicas, or the trace is of another load."
        elif waits.serving.decode_tokens_per_s is None:
            yield f"{text}: it counts the start and the end of the run, and prefills that weren't recorded."
        else:
            yield f"{text}."
    has, decoding = waits.load.sequences, waits.load.decoding
    if waits.refusals or has is None or not decoding:
        return
    if not 1 / _OTHER_LOAD <= has / decoding <= _OTHER_LOAD:
        yield (
            f"A recorded decode step has {has:,.1f} sequences, and about {decoding:,.1f} requests of the benchmark "
            "decode at a time: the trace is of another load or moment, or of one of several replicas."
        )


def _untold(waits: ServingLatency) -> Iterator[str]:
    intervals, found = waits.intervals, waits.step_latency
    if intervals.walls_ns.is_empty():
        yield "No step is known to make tokens, so nothing can be compared with the time between tokens."
        return
    if waits.load.tokens is None:
        yield (
            "Steps have more tokens than sequences: they check drafts, and the benchmark doesn't say how many were "
            "accepted. So what a step gives a sequence isn't known."
        )
    elif found is None:
        yield "The benchmark tells no time between tokens."
    if intervals.runs_ahead:
        yield "The host runs ahead of the GPU: the length of steps says nothing, so parts come from their starts."
    if intervals.overlaps:
        yield "Steps overlap in the trace: the time that lies in no step is less than it seems."
    if intervals.frame.is_empty():
        yield "From step to step isn't known: what passes between steps counts as beyond them."
    if intervals.pauses:
        left = "1 pause between steps is" if intervals.pauses == 1 else f"{intervals.pauses:,} pauses between steps are"
        yield f"{left} left out: so long that nobody can have waited for a token."
    if not len(waits.prefills.walls_ns) and found is not None and waits.part("outside") is not None:
        yield (
            "No prefill was recorded: where prefills hold decoding up, that time counts as beyond the steps. It is in "
            f"the mean more than in the median{_of_median(waits, found.latency.median_ns)}."
        )


def _of_median(waits: ServingLatency, median_ns: float | None) -> str:
    rest = waits.part("outside", "median")
    return (
        f"; of the median latency {_of(rest, median_ns)} is beyond the steps" if rest is not None and median_ns else ""
    )
