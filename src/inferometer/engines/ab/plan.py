"""What an A/B runs: sizes, the prompt, and the order of the arms."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from inferometer.engines.arms import Arm
from inferometer.engines.engine import Engine
from inferometer.errors import InputError


@dataclass(frozen=True)
class Plan:
    """Sizes of one A/B.

    Attributes:
        prompt_tokens: Of each sequence; those of the prompt itself, where one is given.
        new_tokens: Passes: the first is the prefill, the others are decodes of a token each. No early stop.
        batch: Sequences.
        repetitions: Times that each arm is timed, without scopes and with them.
        warmup: Whole completions of each arm before that: kernels are compiled and tuned there.
        seed: Of the prompt's random tokens.

    Raises:
        InputError: A size below 1.
    """

    prompt_tokens: int = 64
    new_tokens: int = 16
    batch: int = 1
    repetitions: int = 10
    warmup: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        for each in fields(self):
            if each.name != "seed" and getattr(self, each.name) < 1:
                raise InputError(f"{each.name}: expected at least 1, found {getattr(self, each.name)}")


def order_of(count: int, repetition: int) -> list[int]:
    """The arms' turns in a repetition: forward, then backward (A B, B A), so that a drift meets all alike.

    Passes with scopes go the other way round. So each arm follows itself as often as it follows the other, and neither
    always finds what the other leaves behind.
    """
    forward = list(range(count))
    return forward if repetition % 2 == 0 else forward[::-1]


def named_apart(arms: Sequence[Arm]) -> list[Arm]:
    """The arms, with names of their own: of two `torch`, the second is `torch (2)`.

    Raises:
        InputError: There are none.
    """
    if not arms:
        raise InputError("expected at least one arm, found none")
    named: dict[str, Arm] = {}
    for arm in arms:
        name, number = arm.name, 1
        while name in named:
            number += 1
            name = f"{arm.name} ({number})"
        named[name] = replace(arm, name=name)
    return list(named.values())


def make_prompt(engine: Engine, plan: Plan, prompt: Sequence[int] | None) -> Any:
    """Tokens int64 [B, T] on the host: `prompt` for each sequence, or random ones by the plan's seed.

    Raises:
        InputError: An empty prompt, or a token that the model doesn't have.
    """
    import torch

    if prompt is None:
        seeded = torch.Generator().manual_seed(plan.seed)
        return torch.randint(engine.vocabulary, (plan.batch, plan.prompt_tokens), generator=seeded)
    if not prompt:
        raise InputError("the prompt has no tokens")
    if unknown := [token for token in prompt if not 0 <= token < engine.vocabulary]:
        raise InputError(
            f"the prompt has the token {unknown[0]}; {engine.name} has tokens 0 to {engine.vocabulary - 1}"
        )
    return torch.tensor([list(prompt)] * plan.batch, dtype=torch.int64)
