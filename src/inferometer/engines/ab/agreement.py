"""What each arm's whole model says next to the first's: all run at once, step by step, on the same tokens.

B sequences, V vocabulary. Each arm has a cache of its own, and logits live for a step only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from inferometer.analyses.ab.measurement import AGREEMENT
from inferometer.engines.ab.completion import Work, on_device
from inferometer.engines.arms import Arm, using
from inferometer.engines.generation import Sampler, generate, take_first


@dataclass
class _Sums:
    tokens: int = 0
    equal: int = 0
    not_finite: int = 0
    kl: float = 0.0
    max_kl: float = 0.0
    max_logit_error: float = 0.0


def agreement(work: Work, arms: Sequence[Arm], begins: Callable[[Arm], None] = lambda arm: None) -> pl.DataFrame:
    """The table `AGREEMENT`: each arm but the first. A number is null where an arm's logits aren't numbers.

    `begins` is called with each arm before each of its steps.
    """
    import torch

    length = work.tokens.shape[1]
    chosen: list[Any] = [None] * len(arms)
    sums = {arm.name: _Sums() for arm in arms[1:]}
    with torch.no_grad(), on_device(work.engine.device):
        prompt = work.prompt.to(work.engine.device)
        tokens_BM = work.tokens.to(work.engine.device)
        runs = [generate(work.engine, prompt, length, _noting(tokens_BM, chosen, n)) for n in range(len(arms))]
        for _ in range(length):
            base_BV: Any = None
            for n, (arm, steps) in enumerate(zip(arms, runs, strict=True)):
                begins(arm)
                with using(arm):
                    logits_BV, _ = next(steps)
                if n == 0:
                    base_BV = logits_BV.double()
                else:
                    _add(sums[arm.name], base_BV, logits_BV.double(), int((chosen[n] == chosen[0]).sum()))
    rows = [
        (
            name,
            each.tokens,
            each.equal,
            each.not_finite,
            *map(_known, (each.kl / each.tokens, each.max_kl, each.max_logit_error)),
        )
        for name, each in sums.items()
    ]
    return pl.DataFrame(rows, schema=AGREEMENT, orient="row")


def _noting(tokens_BM: Any, chosen: list[Any], number: int) -> Sampler:
    """As `forced`; what the arm itself would have chosen goes to its place of `chosen`."""

    def sampler(logits_BV: Any, position: int) -> Any:
        chosen[number] = take_first(logits_BV, position)
        return tokens_BM[:, position]

    return sampler


def _add(sums: _Sums, base_BV: Any, logits_BV: Any, equal: int) -> None:
    """One step. KL in nats, of the first arm's distribution to this one's."""
    base_log, log = base_BV.log_softmax(-1), logits_BV.log_softmax(-1)
    probability = base_log.exp()
    kl_B = (probability * (base_log - log)).where(probability > 0, 0.0).sum(-1).clamp(min=0.0)
    off = (logits_BV - base_BV).where(logits_BV != base_BV, 0.0).abs()  # of masked tokens, both may be infinite
    sums.tokens += kl_B.numel()
    sums.equal += equal
    sums.not_finite += int((~logits_BV.isfinite() & base_BV.isfinite()).any(-1).sum())
    sums.kl += float(kl_B.sum())
    sums.max_kl = _largest(sums.max_kl, float(kl_B.max()))
    sums.max_logit_error = _largest(sums.max_logit_error, float(off.max()))


def _largest(one: float, other: float) -> float:
    """NaN, once there was one."""
    return other if other != other or other > one else one


def _known(value: float) -> float | None:
    return value if abs(value) < float("inf") else None
