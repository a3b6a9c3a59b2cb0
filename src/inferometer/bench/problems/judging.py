"""Answers that can't be compared with a reference number by number: draws of tokens, and sets of indices.

`rules.json` says which, by kind, name and output, with the reason; and where a tolerance isn't that of the dtype.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from inferometer.bench.comparison import OutputCheck, wrong_kind
from inferometer.bench.exchange.schema import Definition
from inferometer.operators.operator import TOLERANCE, Judge

if TYPE_CHECKING:
    from torch import Tensor

SLACK = 1e-4
"""Of a cumulated share: float32 sums of a vocabulary differ by as much with their order."""

MISSED = 0.01
"""Share of a row's indices that may be others: near the last place taken, scores tie but for rounding."""

_UNLIKELY = 1e-6
"""Chance at which a right kernel is refused by its frequencies, once a case."""

_LEAST_DRAWS, _MOST_KINDS, _LEAST_EXPECTED = 64, 32, 5.0
MANY_DRAWS, _TOKENS = 256, 8


class Rule(msgspec.Struct, frozen=True):
    """What holds of an output; patterns are of whole names."""

    op_type: str
    name: str
    output: str
    why: str
    judge: str | None = None
    tolerance: str | None = None


class _File(msgspec.Struct, frozen=True):
    rules: tuple[Rule, ...]


@cache
def _rules() -> tuple[Rule, ...]:
    return msgspec.json.decode(Path(__file__).with_name("rules.json").read_bytes(), type=_File).rules


def rules_of(definition: Definition, output: str) -> list[Rule]:
    """Those that hold of one output."""
    return [
        rule for rule in _rules()
        if re.fullmatch(rule.op_type, definition.op_type) and re.fullmatch(rule.name, definition.name)
        and re.fullmatch(rule.output, output)
    ]  # fmt: skip


def tolerances_of(definition: Definition) -> dict[str, float]:
    """Of outputs whose tolerance isn't that of their dtype."""
    return {
        output: TOLERANCE[rule.tolerance]
        for output in definition.outputs
        for rule in rules_of(definition, output)
        if rule.tolerance is not None
    }


def judge_of(definition: Definition) -> Judge | None:
    """How the answers of a definition are judged; None: compared with the reference's."""
    output = next(iter(definition.outputs))
    kinds = [rule.judge for rule in rules_of(definition, output) if rule.judge is not None]
    if not kinds or len(definition.outputs) > 1:
        return None
    if kinds[0] == "samples":
        dtype = definition.outputs[output].dtype
        return lambda found, wanted: [judge_samples(output, found[0], wanted[output], dtype)]
    return lambda found, wanted: [judge_unordered(output, found[0], wanted[output])]


def is_sampled(definition: Definition) -> bool:
    """Whether its answers are draws from `probs`."""
    return "probs" in definition.inputs and any(
        rule.judge == "samples" for output in definition.outputs for rule in rules_of(definition, output)
    )


def shares_of(tensors: "Mapping[str, Tensor]") -> "Tensor":
    """How often each token is to be drawn, by row: of `probs`, what `top_k` leaves, and of that what `top_p` leaves.

    Tokens that tie with the last one of either may be drawn, those within `SLACK` of the border too. A token of
    probability 0 is never drawn.
    """
    import torch

    probs = tensors["probs"].float().cpu()
    rows = probs if probs.dim() == 2 else probs[None]
    found = torch.zeros_like(rows)
    for at, row in enumerate(rows):
        kept = row > 0
        if "top_k" in tensors:
            k = int(tensors["top_k"].reshape(-1)[at])
            if 0 < k < row.numel():
                kept &= row >= row.topk(k).values[-1]
        share = torch.where(kept, row, torch.zeros(()))
        share = share / share.sum()
        if "top_p" in tensors:
            share = _nucleus(share, float(tensors["top_p"].reshape(-1)[at]))
        found[at] = share
    return found


def _nucleus(share: "Tensor", p: float) -> "Tensor":
    """The likeliest tokens until their shares exceed p; of p 0 the likeliest alone."""
    import torch

    values, _ = share.sort(descending=True)
    before = values.double().cumsum(0) - values
    kept = (before <= p + SLACK if p > 0 else values == values[0]) & (values > 0)
    last = values[kept][-1]
    left = torch.where((share >= last) & (share > 0), share, torch.zeros(()))
    return left / left.sum()


def concentrate(tensors: "Mapping[str, Tensor]", seed: int) -> "dict[str, Tensor]":
    """The same rows of few likely tokens, so that one call is many draws from one distribution.

    `top_k` and `top_p` are those of the row that leaves the likeliest token the smallest share: where that is all or
    nearly all, whoever always takes that token is right.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    probs = torch.zeros_like(tensors["probs"][0], device="cpu")
    places = torch.randperm(probs.numel(), generator=generator)[: min(_TOKENS, probs.numel())]
    weights = 0.05 + torch.rand(len(places), generator=generator)
    probs[places] = (weights / weights.sum()).to(probs.dtype)
    found = dict(tensors)
    found["probs"] = probs.expand_as(tensors["probs"]).contiguous().to(tensors["probs"].device)
    row = int(shares_of(found).max(1).values.argmin())
    for name in ("top_k", "top_p"):
        if name in found:
            found[name] = found[name][row : row + 1].expand_as(found[name]).contiguous()
    return found


def judge_samples(output: str, found: Any, shares: "Tensor", dtype: str) -> OutputCheck:
    """Whether tokens are among those that may be drawn, and of many draws as often as they should be."""
    import torch

    like = torch.zeros(shares.shape[0], dtype=getattr(torch, dtype))
    kind = next(wrong_kind(found.cpu() if type(found) is torch.Tensor else found, like), None)
    if kind is not None:
        return OutputCheck(output, kind)
    tokens = found.cpu().long()
    vocabulary = shares.shape[1]
    outside = (tokens < 0) | (tokens >= vocabulary)
    if outside.any():
        row = int(outside.nonzero()[0])
        reason = f"a value is no token: {int(tokens[row])} in row {row:,} of a vocabulary of {vocabulary:,}"
        return OutputCheck(output, reason, 1.0, 1.0, 0.0)
    wrong = shares.gather(1, tokens[:, None])[:, 0] <= 0
    if wrong.any():
        row = int(wrong.nonzero()[0])
        reason = (
            f"{int(wrong.sum()):,} of {len(tokens):,} values are tokens that may not be drawn, the first in row {row:,}"
        )
        return OutputCheck(output, reason, 1.0, 1.0, 0.0)
    chance = _chance(tokens.tolist(), shares)
    if chance is not None and chance < _UNLIKELY:
        reason = f"a value is drawn too often or too rarely: such frequencies have a chance of {chance:.1g}"
        return OutputCheck(output, reason, 1.0, 1.0, 0.0)
    return OutputCheck(output, None, 0.0, 0.0, 0.0)


def _chance(tokens: Sequence[int], shares: "Tensor") -> float | None:
    """Of frequencies as far from their shares as these, by Pearson's test; None where rows differ, or are few."""
    from scipy.special import chdtrc

    first = shares[0]
    kinds = first.nonzero()[:, 0].tolist()
    if len(tokens) < _LEAST_DRAWS or not 1 < len(kinds) <= _MOST_KINDS or not bool((shares == first).all()):
        return None
    bins: list[list[float]] = []
    for kind in sorted(kinds, key=lambda each: float(first[each])):  # rare ones together
        expected, seen = float(first[kind]) * len(tokens), float(tokens.count(kind))
        if bins and bins[-1][0] < _LEAST_EXPECTED:
            bins[-1] = [bins[-1][0] + expected, bins[-1][1] + seen]
        else:
            bins.append([expected, seen])
    if len(bins) < 2:
        return None
    statistic = sum((seen - expected) ** 2 / expected for expected, seen in bins)
    return float(chdtrc(len(bins) - 1, statistic))


def judge_unordered(output: str, found: Any, wanted: "Tensor") -> OutputCheck:
    """Whether rows hold the same indices in any order; -1 fills what a row has no index for."""
    kind = next(wrong_kind(found, wanted), None)
    if kind is not None:
        return OutputCheck(output, kind)
    worst = 0.0
    for at, (own, other) in enumerate(zip(found.tolist(), wanted.tolist(), strict=True)):
        mine, right = [each for each in own if each != -1], {each for each in other if each != -1}
        if len(mine) != len(right):
            reason = f"a value is missing or too much: {len(mine):,} indices in row {at:,}, expected {len(right):,}"
            return OutputCheck(output, reason, 1.0, 1.0, MISSED)
        if len(set(mine)) != len(mine):
            return OutputCheck(output, f"a value is there twice in row {at:,}", 1.0, 1.0, MISSED)
        missed = len(right - set(mine)) / max(1, len(right))
        worst = max(worst, missed)
        if missed > MISSED:
            reason = f"{missed:.2%} of the values of row {at:,} are other indices, expected at most {MISSED:.0%}"
            return OutputCheck(output, reason, missed, missed, MISSED)
    return OutputCheck(output, None, worst, worst, MISSED)
