"""The operator calls of one step of a model: a prefill, a decode step, or a chunk of a prefill after a context."""

import math
from fractions import Fraction

from inferometer.architectures.architecture import find_architecture
from inferometer.architectures.calls import Logits, ModelStep, OperatorCall
from inferometer.architectures.model import Model


def step_calls(
    model: Model,
    *,
    tokens: int,
    context: int,
    batch: int = 1,
    weight_bytes: float = 2,
    activation_bytes: float = 2,
    kv_bytes: float = 2,
    logits: Logits = "last",
) -> tuple[OperatorCall, ...]:
    """Every operator that the model's definition calls, in order; what an engine fuses or splits is its own affair.

    A decode step of one token has `tokens=1`; N of them are N steps, each with one more position in its context.

    Args:
        model: What `read_model` or `find_model` gave.
        tokens: New tokens of each sequence.
        context: Tokens of each that are in the cache already.
        batch: Sequences.
        weight_bytes: Size of an element of a matrix, also a part of a byte: 0.5625 for 4 bits with scales.
        activation_bytes: Size of an activation, and of norm weights and biases.
        kv_bytes: Size of a cached key or value.
        logits: Of which tokens logits are made: the last of each sequence, or all.

    Raises:
        ValueError: A count is below what it can be, or a size isn't above 0.
        UnknownName: The model's architecture is none that we know.
    """
    for name, count, least in (("tokens", tokens, 1), ("context", context, 0), ("batch", batch, 1)):
        if count < least:
            raise ValueError(f"{name}: expected a whole number from {least}, found {count}")
    if logits not in ("last", "all"):
        raise ValueError(f'logits: expected "last" or "all", found "{logits}"')
    step = ModelStep(
        tokens=tokens,
        context=context,
        batch=batch,
        weight_size=_size("weight_bytes", weight_bytes),
        activation_size=_size("activation_bytes", activation_bytes),
        kv_size=_size("kv_bytes", kv_bytes),
        logits=logits,
    )
    return tuple(find_architecture(model.architecture).calls(model, step))


def count_parameters(model: Model) -> int:
    """All numbers that the model has, as its publisher counts them: a table that is used twice counts once."""
    enough = model.vocab  # each row of the embedding table
    if model.mixture is not None:
        enough = max(enough, 64 * model.mixture.experts)  # and each expert
    calls = step_calls(model, tokens=enough + 1, context=0, weight_bytes=1, activation_bytes=1)
    total = sum(call.weight_bytes for call in calls)
    return total - model.vocab * model.hidden if model.tied_embeddings else total


def _size(name: str, value: float) -> int | Fraction:
    """A size as an exact number, so that equal sizes give equal bytes whatever the machine."""
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name}: expected a size above 0, found {value}")
    exact = Fraction(str(value))
    return exact.numerator if exact.denominator == 1 else exact
