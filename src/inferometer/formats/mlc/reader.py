"""Fills `tests` and `log` from answers: those of a kind are repetitions of one test."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, Final

import msgspec

from inferometer.errors import FormatError
from inferometer.formats.held import read_held
from inferometer.formats.mlc.answers import TESTS, Answer, answers_in
from inferometer.trace.facts import Facts

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder

_LOG: Final = "log"
_NS: Final = 1e9
_TOO_LARGE: Final = "Keep the last chunk of each answer, which has its usage, or read it with --no-limits."
_HINT: Final = "Ask for usage: stream_options: {include_usage: true}."
_NOTE: Final = (
    "These are rates and times of whole answers, not of kernels: inferometer compare sets two such files side by side. "
    "A repetition is an answer."
)


def read(source: "Source", out: "TraceBuilder") -> Facts:
    """Read all of it.

    Raises:
        FormatError: No answer gives a rate or a time.
    """
    found = [*answers_in(read_held(source, hint=_TOO_LARGE), out.losses)]
    answers = [each for each in found if each.rates or each.times]
    if not answers:
        raise FormatError(
            f"{source.name}: expected answers of MLC LLM or WebLLM with their rates, found none", hint=_HINT
        )
    if out.wants(TESTS):
        _add_tests(out, answers)
    if out.wants(_LOG):
        _add_log(out, found)
    models = {each.model for each in answers}
    is_web = any(each.is_web for each in answers)
    return Facts(
        "mlc",
        source.name,
        tool="WebLLM" if is_web else "MLC LLM",
        framework="WebLLM" if is_web else "MLC LLM",
        model=models.pop() if len(models) == 1 else None,
        notes=(_NOTE,),
    )


def _add_tests(out: "TraceBuilder", answers: Sequence[Answer]) -> None:
    several = len({each.model for each in answers}) > 1
    kinds: dict[tuple[str, str | None, int | None, bool], list[float]] = defaultdict(list)
    for answer in answers:
        for name, phase, prompt, value, is_rate in _measures(answer):
            whose = f", {answer.model}" if several and answer.model else ""
            kinds[name + whose, phase, prompt, is_rate].append(value)
    rows = [_row(kind, values) for kind, values in kinds.items()]
    out.losses.see(TESTS, len(rows))
    columns: dict[str, Any] = {name: [row.get(name) for row in rows] for row in rows for name in row}
    out.add(TESTS, len(rows), columns | {"order": range(len(rows))})


def _measures(answer: Answer) -> Iterator[tuple[str, str | None, int | None, float, bool]]:
    """Name, phase, tokens of the prompt, value, and whether that is tokens/s; else it is s."""
    prompt, tokens = answer.prompt_tokens, answer.answer_tokens
    of_prompt = "" if prompt is None else f" of {prompt:,} tokens"
    if rate := answer.rates.get("prefill"):
        yield f"prefill{of_prompt}", "prefill", prompt, rate, True
    if rate := answer.rates.get("decode"):
        yield "decode", "decode", None, rate, True
    if seconds := answer.times.get("first_token"):
        yield f"time to first token{of_prompt}", "prefill", prompt, seconds, False
    if (seconds := answer.times.get("whole")) and prompt is not None and tokens is not None:
        yield f"whole answer of {tokens:,} tokens to {prompt:,}", "mixed", prompt, seconds, False


def _row(kind: tuple[str, str | None, int | None, bool], values: Sequence[float]) -> dict[str, Any]:
    name, phase, prompt, is_rate = kind
    mean, spread = fmean(values), stdev(values) if len(values) > 1 else None
    row = {"test": name, "phase": phase, "prefill_tokens": prompt, "repetitions": len(values)}
    if is_rate:
        return row | {"tokens_per_s": mean, "tokens_per_s_stddev": spread}
    return row | {"mean_ns": mean * _NS, "stddev_ns": None if spread is None else spread * _NS}


def _add_log(out: "TraceBuilder", found: Sequence[Answer]) -> None:
    """A row per answer and line; of an answer the numbers alone."""
    out.losses.see(_LOG, len(found))
    columns: dict[str, Any] = {
        "line": [each.line for each in found],
        "kind": [None if each.other is not None else "answer" for each in found],
        "text": [_words(each) if each.other is None else each.other for each in found],
        "fields": [None if each.other is not None else _fields(each) for each in found],
    }
    out.add(_LOG, len(found), columns)


def _words(answer: Answer) -> str:
    known = [f"{name} {rate:.4f} tokens/s" for name, rate in answer.rates.items()]
    return ", ".join(known) or "an answer without rates"


def _fields(answer: Answer) -> str:
    counts = {"prompt_tokens": answer.prompt_tokens, "completion_tokens": answer.answer_tokens}
    rates = {f"{name}_tokens_per_s": rate for name, rate in answer.rates.items()}
    times = {f"{name}_s": seconds for name, seconds in answer.times.items()}
    return msgspec.json.encode({k: v for k, v in (counts | rates | times).items() if v is not None}).decode()
