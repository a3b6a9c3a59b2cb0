"""One answer of a model: a line per metric, and which backend ran each operator."""

from collections.abc import Sequence

from inferometer.engines.chat.answer import ChatAnswer, Ended
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View
from inferometer.units import MISSING, format_bytes, format_count, format_duration, format_sample

_IN_WORDS: dict[Ended, str] = {
    "eos": "the model ended it",
    "new_tokens": "as many as were asked for",
    "context": "the model's context is full",
    "interrupted": "interrupted",
    "failed": "failed",
}
_OPERATORS = (
    Field("operator", "Operator", "text"),
    Field("backend", "Ran on", "text"),
    Field("calls", "Calls", "count"),
    Field("reason", "Why not as chosen", "name"),
)


def _facts(found: ChatAnswer) -> Sequence[tuple[str, str]]:
    """A line per metric."""
    return [*([] if found.brief else what_answered(found)), *what_it_took(found)]


def _sections(found: ChatAnswer) -> Sequence[Section]:
    return [] if found.brief else [Section("Operators", _OPERATORS, found.to_polars())]


def _remarks(found: ChatAnswer) -> Sequence[str]:
    """What a reader of the times must know."""
    if found.brief:
        return ()
    cost = "Times include what recording costs; `inferometer summary` estimates it."
    return [*found.setup.notes, *([cost] if found.setup.recording else [])]


def what_answered(found: ChatAnswer) -> list[tuple[str, str]]:
    """The model and how it came to be ready."""
    setup = found.setup
    size = f"{format_count(setup.parameters)} parameters, {format_bytes(setup.weight_bytes)} of {setup.dtype}"
    warm_up = "none" if setup.warm_up is None else format_duration(setup.warm_up.total_ns)
    return [
        ("Model", f"{setup.model}: {size} on {setup.device}"),
        ("Weights", setup.source),
        ("Backend", setup.arm),
        ("Load", f"{format_duration(setup.load_ns)}; warm-up {warm_up}"),
    ]


def what_it_took(found: ChatAnswer) -> list[tuple[str, str]]:
    """Tokens, times and memory; the last line is memory."""
    answer = found.answer
    middle, p95, most = (format_duration(answer.token_ns_at(share)) for share in (0.5, 0.95, 1))
    memory = f"peak {format_bytes(answer.peak_rss_bytes)} of the process"
    if answer.peak_device_bytes is not None:
        memory += f", {format_bytes(answer.peak_device_bytes)} of the device"
    prompt = f"{format_count(answer.prompt_tokens)} of the prompt"
    if answer.kept_tokens:
        prompt += f" ({format_count(answer.read_tokens)} read, {format_count(answer.kept_tokens)} kept from before)"
    tokens = f"{prompt}, {format_count(len(answer.tokens))} new"
    return [
        ("Tokens", f"{tokens}: {_IN_WORDS[answer.ended]}"),
        ("TTFT", f"{format_duration(answer.ttft_ns)}{_coldness(found)}"),
        ("Prefill", f"{format_duration(answer.prefill_ns)}, {_per_s(answer.prefill_tokens_per_s)}"),
        ("Decode", f"{middle} per token (median), p95 {p95}, max {most}, {_per_s(answer.decode_tokens_per_s)}"),
        ("Overall", f"{format_duration(answer.total_ns)}, {_per_s(answer.tokens_per_s)}"),
        ("Memory", memory),
    ]


def _coldness(found: ChatAnswer) -> str:
    if found.brief:
        return ""
    if found.setup.warm_up is None:
        return ", cold: with what the first call compiles"
    return f"; {format_duration(found.setup.warm_up.ttft_ns)} cold, with what the first call compiles"


def _per_s(rate: float | None) -> str:
    return f"{MISSING if rate is None else format_sample(rate)} tokens/s"


VIEW = View(schema=Schema("chat", 1), facts=_facts, sections=_sections, remarks=_remarks)
