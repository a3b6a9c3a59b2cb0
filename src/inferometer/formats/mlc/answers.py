"""Answers in a text of responses, and the numbers that stand with each."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from inferometer.formats.json_text.objects import Objects
from inferometer.trace.losses import Losses

TESTS: Final = "tests"
RATES: Final = {"prefill": "prefill_tokens_per_s", "decode": "decode_tokens_per_s"}
TIMES: Final = {  # ours, and WebLLM's and MLC LLM's names, both in seconds
    "first_token": ("time_to_first_token_s", "ttft_s"),
    "whole": ("e2e_latency_s", "end_to_end_latency_s"),
}
_NUMBER: Final = r"(?:\d{1,15}(?:\.\d{1,9})?|NaN|Infinity)"
_STATISTICS: Final = re.compile(
    rf".*?\bprefill: (?P<prefill>{_NUMBER}) tokens/s(?:ec)?, decoding: (?P<decode>{_NUMBER}) tokens/s(?:ec)?\b.*"
)
_STREAMED: Final = re.compile(rb"^data: ?", re.MULTILINE)
_MOST: Final = 1e15
_SHOWN: Final = 60


@dataclass(frozen=True)
class Answer:
    """One answer, or a line of other text (`other`). `rates` are tokens/s, `times` s; what isn't known is left out."""

    line: int
    other: str | None = None
    model: str | None = None
    prompt_tokens: int | None = None
    answer_tokens: int | None = None
    rates: dict[str, float] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    is_web: bool = False


def answers_in(data: bytes, losses: Losses) -> Iterator[Answer]:
    """In the order of the text; lines of a stream of events (`data: {…}`) are objects, too."""
    for found in Objects(_STREAMED.sub(b"", data), losses, TESTS):
        if found.fields is None:
            yield _of_text(found.line, found.text, losses)
        elif (usage := _usage(found.fields)) is not None:
            yield _of_usage(found.line, found.fields, usage, losses)


def _usage(fields: dict[str, Any]) -> dict[str, Any] | None:
    """Its `usage`, or itself where it is one; None without rates."""
    usage = fields.get("usage", fields)
    return usage if isinstance(usage, dict) and isinstance(usage.get("extra"), dict) else None


def _of_usage(line: int, fields: dict[str, Any], usage: dict[str, Any], losses: Losses) -> Answer:
    extra, model = usage["extra"], fields.get("model")
    rates = {name: value for name, key in RATES.items() if (value := _number(extra, key, line, losses))}
    times = {
        name: value
        for name, keys in TIMES.items()
        if (value := next((found for key in keys if (found := _number(extra, key, line, losses))), None))
    }
    return Answer(
        line,
        model=model if isinstance(model, str) else None,
        prompt_tokens=_count(usage, "prompt_tokens", line, losses),
        answer_tokens=_count(usage, "completion_tokens", line, losses),
        rates=rates,
        times=times,
        is_web=TIMES["first_token"][0] in extra,
    )


def _of_text(line: int, text: str, losses: Losses) -> Answer:
    match = _STATISTICS.fullmatch(text) if len(text) < 10_000 else None
    if match is None:
        return Answer(line, other=text)
    found = {name: _number(match.groupdict(), name, line, losses) for name in RATES}
    return Answer(line, rates={name: value for name, value in found.items() if value}, is_web=True)


def _number(fields: dict[str, Any], name: str, line: int, losses: Losses) -> float | None:
    """A number above 0; 0 is what they write where there was nothing, such as no token after the first."""
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, str) and name in RATES:
        value = float(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST:
        return float(value) or None
    losses.count("wrong_type", category=TESTS, example=f"line {line}: {name}: {str(value)[:_SHOWN]}")
    return None


def _count(fields: dict[str, Any], name: str, line: int, losses: Losses) -> int | None:
    number = _number(fields, name, line, losses)
    return int(number) if number is not None and number.is_integer() else None
