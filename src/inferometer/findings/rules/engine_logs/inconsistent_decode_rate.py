"""A printed decode rate that isn't tokens decoded over the time of decoding.

The first token comes from the prefill, so the rate's tokens are those of the decode steps. Fires when the printed
rate differs, by more than half its last digit and that of the time, from these tokens over the printed time: they are
the sum over the steps, or the count in the engine's line of performance. Silent where that line gives another time: it
is of another prompt. Says which other count of the log the rate does fit. `low` up
to a difference of 5 %, `medium` above.
"""

from collections.abc import Iterator

import polars as pl

from inferometer.findings.finding import Finding, Scale
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_duration, format_share

_SCALE = Scale("inconsistent_decode_rate", low=0.0, medium=0.05)
_SAME_NS = 1_000_000  # the line of performance rounds to whole milliseconds


def _find(evidence: Evidence) -> Iterator[Finding]:
    rate, time_ns = evidence.number("decode_tokens_per_s"), evidence.number("decode_ns")
    decoded = _decoded(evidence)
    if not rate or not time_ns or decoded is None:
        return
    tokens, where = decoded
    ours, half = tokens / time_ns * 1e9, _half_digit(rate) + rate * _half_of_time(int(time_ns)) / time_ns
    if not ours or abs(ours - rate) <= half:
        return
    differ = abs(rate / ours - 1)
    severity = _SCALE.severity(differ)
    if severity is None:
        return
    counted = evidence.number("decode_tokens")
    fits = counted is not None and abs(counted / time_ns * 1e9 - rate) <= half
    of = f"fits {counted:,} tokens, the count in the metrics" if fits else "fits no count of the log"
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"the decode rate is defined twice: {rate:.2f} and {ours:.2f} tokens/s",
        evidence=(
            (
                f"The printed {rate:.2f} tokens/s over {format_duration(time_ns)} {of}; {where} has {tokens:,}: "
                f"{ours:.2f} tokens/s, {format_share(differ)} apart."
            ),
        ),
        next="Count the tokens that the time is of: those of the decode steps, without the one that the prefill gives.",
    )


def _decoded(evidence: Evidence) -> tuple[int, str] | None:
    """Tokens of the decode steps and who says so; None where the log may lack steps."""
    printed, of_ns = evidence.number("perf", "decode_tokens"), evidence.number("perf", "decode_ns")
    if of_ns is not None and abs(of_ns - (evidence.number("decode_ns") or of_ns)) > _SAME_NS:
        return None
    if printed:
        return int(printed), "the line of performance"
    steps = evidence.trace.steps.filter(pl.col("phase") == "decode").select("decode_tokens").collect()
    if not steps.height or steps["decode_tokens"].null_count() or evidence.trace.losses.total("truncated"):
        return None
    return int(steps["decode_tokens"].sum()), "the sum over the steps"


def _half_digit(rate: float) -> float:
    """Half of the last digit of a printed rate, with a little for the float."""
    digits = len(f"{rate!r}".partition(".")[2])
    return 0.5001 * 10.0 ** -max(digits, 1)


def _half_of_time(time_ns: int) -> float:
    """Half of the last digit of a printed time that isn't 0; of times printed in whole milliseconds at most."""
    digit = 1
    while digit < _SAME_NS and time_ns % (10 * digit) == 0:
        digit *= 10
    return digit / 2


RULE = Rule("inconsistent_decode_rate", _find, (_SCALE,))
