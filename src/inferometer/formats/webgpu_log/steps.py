"""The steps of a run: a report each, with its place in time where the log's lines give one.

A report is printed when its batch has been read back: a decode step lasts from the report before to its own, or as long
as its title says, where the host does other things between two steps. The first one begins with the decode time, whose
end is the `[Perf]` line; the prefill begins one time to first token earlier, and lasts as long as printed. What of this
was cut off or doesn't fit together is null.
"""

from dataclasses import dataclass, field
from itertools import groupby, takewhile
from typing import Any

from inferometer.formats.webgpu_log.run import LoggedStep, Run

ANCHOR = "profile report"
Span = tuple[int | None, int | None]


@dataclass
class StepColumns:
    """Rows of `steps`, column by column."""

    columns: dict[str, list[Any]] = field(
        default_factory=lambda: {
            name: []
            for name in (
                *("step", "phase", "process", "start_ns", "dur_ns", "gpu_busy_ns", "batch", "prefill_tokens"),
                *("decode_tokens", "context_len", "anchor", "source"),
            )
        }
    )

    def add_run(self, run: Run, process: int | None) -> None:
        """All steps of a run."""
        metrics = run.printed if len(run.perfs) <= 1 else {}
        number = 0
        parts = [list(steps) for _, steps in groupby(run.steps, key=lambda step: step.part)]
        if len(run.perfs) <= 1:
            parts = [run.steps] if run.steps else []
        for steps in parts:
            at = min(steps[0].part, len(run.perfs) - 1)
            perf = run.perfs[at] if run.perfs and (at == steps[0].part or len(run.perfs) == 1) else (None, {})
            decoded = perf[1].get("decode_tokens")
            spans = _spans(steps, perf[0], {**perf[1], **_times(metrics)}, lacks_steps=_lacks_steps(steps, decoded))
            contexts = _contexts(steps, metrics.get("prefill_tokens"), decoded, is_first=steps is parts[0])
            for step, span, (prompt_tokens, context) in zip(steps, spans, contexts, strict=True):
                self._add(number, step, process, span, prompt_tokens, context)
                number += 1

    def _add(
        self,
        number: int,
        step: LoggedStep,
        process: int | None,
        span: Span,
        prompt_tokens: int | None,
        context: int | None,
    ) -> None:
        values = (
            *(number, step.phase, process, *span, step.busy_ns, 1, prompt_tokens),
            *(step.tokens if step.phase == "decode" else None, context, ANCHOR, "recorded"),
        )
        for column, value in zip(self.columns.values(), values, strict=True):
            column.append(value)


def _times(metrics: dict[str, Any]) -> dict[str, Any]:
    return {key: metrics[key] for key in ("ttft_ns", "prefill_ns", "decode_ns") if isinstance(metrics.get(key), int)}


def _spans(steps: list[LoggedStep], end_ns: int | None, times: dict[str, Any], *, lacks_steps: bool) -> list[Span]:
    """Start and duration of each step between two `[Perf]` lines; `end_ns` is the time of the second."""
    decode_ns, ttft_ns, prefill_ns = (times.get(key) for key in ("decode_ns", "ttft_ns", "prefill_ns"))
    decode_start = None if end_ns is None or decode_ns is None else end_ns - decode_ns
    start = None if decode_start is None or ttft_ns is None else decode_start - ttft_ns
    prefills = sum(step.phase == "prefill" for step in steps)
    spans: list[Span] = []
    before: LoggedStep | None = None
    for step in steps:
        if step.wall_ns is not None and step.time_ns is not None:
            fits = step.wall_ns <= step.time_ns
            spans.append((step.time_ns - step.wall_ns, step.wall_ns) if fits else (None, None))
        elif step.phase == "prefill" and prefills == 1:
            spans.append((start, prefill_ns) if start is not None and prefill_ns is not None else (None, None))
        elif before is None and lacks_steps:  # those before it were cut off
            spans.append((None, None))
        elif step.phase == "decode" and (before is None or before.phase == "prefill"):
            spans.append(_between(decode_start, step.time_ns))
        else:
            spans.append(_between(start if before is None else before.time_ns, step.time_ns))
        before = step
    return spans


def _between(start_ns: int | None, end_ns: int | None) -> Span:
    if start_ns is None or end_ns is None or end_ns < start_ns:
        return None, None
    return start_ns, end_ns - start_ns


def _contexts(
    steps: list[LoggedStep], prompt_tokens: Any, decoded_tokens: Any, *, is_first: bool
) -> list[tuple[int | None, int | None]]:
    """Prompt tokens that each step processed, and tokens in the KV cache before it; unknown where steps are missing."""
    prompt = prompt_tokens if isinstance(prompt_tokens, int) else None
    chunks = _chunks(steps, prompt)
    is_known = is_first and all(step.phase in ("prefill", "decode") for step in steps)
    context = (0 if chunks else prompt) if is_known and not _lacks_steps(steps, decoded_tokens) else None
    found: list[tuple[int | None, int | None]] = []
    for i, step in enumerate(steps):
        own = chunks[i] if i < len(chunks) else None
        if step.phase != "decode" and i >= len(chunks):  # another prompt, which may go on with the cache or not
            context = None
        is_start = is_first and i == 0 and step.phase == "prefill"
        context = context if step.context is None else step.context
        found.append((own, 0 if is_start and step.context is None else context))
        more = step.tokens if step.phase == "decode" else own
        context = None if context is None or more is None else context + more
    return found


def _chunks(steps: list[LoggedStep], prompt: int | None) -> list[int | None]:
    """Tokens of each prefill in front of the first decode step: the prompt's, or as their titles say."""
    ahead = list(takewhile(lambda step: step.phase == "prefill", steps))
    if len(ahead) < sum(step.phase == "prefill" for step in steps):
        prompt = None  # the metrics are of one of several prompts
    if len(ahead) == 1 and prompt is not None:
        return [prompt]
    known = [step.tokens for step in ahead if step.tokens is not None]
    agrees = len(known) == len(ahead) and prompt in (None, sum(known))
    return list(known) if agrees else [None] * len(ahead)


def _lacks_steps(steps: list[LoggedStep], decoded_tokens: Any) -> bool:
    """Whether the engine decoded more tokens than the reports have, the first one aside: the log's head may be cut."""
    known = [step.tokens for step in steps if step.phase == "decode" and step.tokens is not None]
    whole = len(known) == sum(step.phase == "decode" for step in steps)
    return whole and isinstance(decoded_tokens, int) and sum(known) < decoded_tokens - 1
