"""The loop around a model: one pass over the prompt, then one per token. B sequences, T tokens, V vocabulary.

Each pass is a step for a recording that runs, and a call of the path `prefill` or `decode`; choosing the token is a
call of the path `sample` below it.
"""

from collections.abc import Callable, Iterator
from typing import Any

from inferometer.engines.engine import Engine
from inferometer.engines.paths import scope

Sampler = Callable[[Any, int], Any]
"""`sampler(logits[B, V], position)`: tokens int64 [B]; `position` counts new tokens from 0."""


def generate(
    engine: Engine, prompt_BT: Any, new_tokens: int, sampler: Sampler, *, cache: Any = None, kept: int = 0
) -> Iterator[tuple[Any, Any]]:
    """The logits [B, V] that each token was chosen from, and the tokens int64 [B], one pass at a time.

    Nothing runs but when the next is asked for, so that a caller may stop, or time each.

    Args:
        engine: What runs.
        prompt_BT: The whole prompt.
        new_tokens: At most.
        sampler: Chooses.
        cache: One with room for all, which holds the prompt's first `kept` tokens; None: an empty one is made.
        kept: Of the prompt, what isn't read again.
    """
    from inferometer.record.start import step

    batch, length = prompt_BT.shape
    cache = engine.start(batch, length + new_tokens) if cache is None else cache
    tokens_BT = prompt_BT[:, kept:]
    for position in range(new_tokens):
        phase = "prefill" if position == 0 else "decode"
        context = length + position
        tokens = tokens_BT.shape[0] * tokens_BT.shape[1]
        with step(phase, batch=batch, tokens=tokens, context_len=context), scope(phase):
            logits_BV = engine.forward(cache, tokens_BT)
            with scope("sample"):
                tokens_B = sampler(logits_BV, position)
        yield logits_BV, tokens_B
        tokens_BT = tokens_B[:, None]


def take_first(logits_BV: Any, position: int) -> Any:
    """A sampler: the most probable token."""
    from inferometer.engines.arms import call

    return call("argmax", logits_BV)


def forced(tokens_BM: Any) -> Sampler:
    """A sampler that chooses as `take_first` does and then takes those of `tokens_BM`: the same work in any case."""

    def sampler(logits_BV: Any, position: int) -> Any:
        take_first(logits_BV, position)
        return tokens_BM[:, position]

    return sampler
