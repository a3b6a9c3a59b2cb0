"""How many positions the KV cache of a model gets: what a conversation or one answer needs, and the model can have."""

from collections.abc import Callable
from dataclasses import dataclass

from inferometer.engines.chat.dialogue import Dialogue
from inferometer.engines.chat.tokens import Tokenizer
from inferometer.engines.webgpu.model_spec import Checkpoint, ModelSpec
from inferometer.errors import InputError

LARGEST_DEFAULT_CONTEXT = 4096
"""Positions of the cache where neither a prompt nor a user says how many, and the model has as many."""

Capacity = int | Callable[[Checkpoint], int]
"""Positions, or what gives them for a model that is open."""


def positions_for(checkpoint: Checkpoint, wanted: Capacity | None) -> int:
    """Positions of the cache; without a wish, `whole_context`.

    Raises:
        InputError: The model has fewer, or the prompt doesn't fit.
    """
    if wanted is None:
        return whole_context(checkpoint.spec)
    return whole_context(checkpoint.spec, wanted) if isinstance(wanted, int) else wanted(checkpoint)


def whole_context(spec: ModelSpec, context: int | None = None) -> int:
    """Positions for a conversation of any length: `context` where it is given.

    Raises:
        InputError: The model has fewer.
    """
    limit = spec.context_limit
    if context is None:
        return LARGEST_DEFAULT_CONTEXT if limit is None else min(limit, LARGEST_DEFAULT_CONTEXT)
    if limit is not None and context > limit:
        raise InputError(
            f"context: expected at most the {limit:,} positions that {spec.name} was made for, found {context:,}"
        )
    return context


def context_for(
    checkpoint: Checkpoint, text: str, new_tokens: int, context: int | None = None, *, uses_template: bool = True
) -> int:
    """Positions for one answer to this question: its prompt and the answer, `context` of them at most.

    Raises:
        InputError: The prompt doesn't fit, or is none.
    """
    spec = checkpoint.spec
    limit = spec.context_limit if context is None else whole_context(spec, context)
    speaker = _Speaker(spec.name, spec.vocab, limit, checkpoint.tokenizer)
    dialogue = Dialogue(speaker, new_tokens, stop_at_eos=True, uses_template=uses_template)
    prompt = dialogue.prompt_with(text)
    return len(prompt) + dialogue.room_after(prompt)


@dataclass
class _Speaker:
    """A model that isn't loaded yet, as far as a prompt needs one."""

    name: str
    vocabulary: int
    context_limit: int | None
    tokenizer: Tokenizer
