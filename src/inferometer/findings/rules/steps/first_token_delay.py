"""Time between the end of the prefill and the first token.

Fires when the printed time to the first token is longer than the prefill by 10 ms or more (less isn't felt) and by a
tenth of it: `low`; from 30 % `medium`, from 70 % and 1 s (by then people's thoughts wander) `high`. It also says by
how much the first decode step waits longer than the others do.
"""

from collections.abc import Iterator

from inferometer.findings.finding import Finding, Scale, Severity
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_duration, format_share

LEAST_NS = 10_000_000
_OF_FIRST_TOKEN = Scale("first_token_delay", low=0.10, medium=0.30)
_LONG = 0.70
_INTERRUPTS_NS = 1_000_000_000


def _find(evidence: Evidence) -> Iterator[Finding]:
    ttft, prefill = (evidence.number(name) or evidence.number("perf", name) for name in ("ttft_ns", "prefill_ns"))
    if ttft is None or prefill is None:
        return
    delay = int(ttft - prefill)
    severity = severity_of_wait(delay, int(ttft))
    if severity is None:
        return
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"{format_duration(delay)} pass between the prefill and the first token",
        evidence=(
            (
                f"Printed: {format_duration(ttft)} to the first token, {format_duration(prefill)} of prefill; the "
                f"rest is {format_share(delay / ttft)}."
            ),
            *_first_step(evidence),
        ),
        size_ns=delay,
        share=delay / ttft,
        next="See what happens between the prefill and the first decode step: reading the logits back, sampling on the "
        "host, building the pipelines of decode.",
    )


def severity_of_wait(ns: int, first_token_ns: int) -> Severity | None:
    """How grave it is that a part of the time to the first token is spent so; None where that isn't felt."""
    if ns < LEAST_NS or first_token_ns <= 0:
        return None
    if ns >= _INTERRUPTS_NS and ns / first_token_ns >= _LONG:
        return "high"
    return _OF_FIRST_TOKEN.severity(ns / first_token_ns)


def _first_step(evidence: Evidence) -> Iterator[str]:
    steps = evidence.decode_steps
    if evidence.steps is None or steps.height < 2:
        return
    first, usual = steps["gap_ns"][0], steps["gap_ns"][1:].median()
    if first is None or not isinstance(usual, int | float) or first < 1.5 * usual or first - usual < LEAST_NS:
        return
    yield (
        f"The first decode step, too, has {format_duration(first - usual)} more wall time beyond the GPU's than the "
        f"others ({format_duration(first)} against {format_duration(usual)})."
    )


RULE = Rule("first_token_delay", _find, (_OF_FIRST_TOKEN,))
