"""Attention of one sequence, with what goes wrong in it: what the attention operators' wrong kernels are made of."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from tests.bench.mutants.shared import Kernel, as_in, fp8, online_softmax
from torch import Tensor

Mask = Callable[[int, int], Tensor]
"""Of queries and keys: what is visible, bool [queries, keys]."""


def everything(queries: int, keys: int) -> Tensor:
    return torch.ones(queries, keys, dtype=torch.bool)


def causal(queries: int, keys: int, *, more: int = 0) -> Tensor:
    """Aligned to the last key; `more`: so many keys of the future are visible."""
    return everything(queries, keys).tril(keys - queries + more)


def causal_from_the_first(queries: int, keys: int) -> Tensor:
    """Aligned to the first key: wrong where there are fewer queries than keys."""
    return everything(queries, keys).tril(0)


@dataclass(frozen=True)
class Attention:
    """Of one sequence: q [H, t, d], k [H, L, d], v [H, L, e] to float32 [H, t, e].

    Attributes:
        power: Scores are multiplied by d to this power.
        mask: What is visible; zeros where nothing is.
        lost: How many of the last keys are left out; of all, where there are no more.
        padded: Keys and values are padded with zeros to a multiple of this, and the padding is not masked.
        fault: What goes wrong in the softmax: `not divided`, `maximum not rescaled`, `weights in fp8`, `no softmax`.
        way: `online`: block by block; `whole`: at once, weights bf16; `base 2`: 2^x of scores times log2(e).
    """

    power: float = -0.5
    mask: Mask = everything
    lost: int = 0
    padded: int = 1
    fault: str = ""
    way: str = "online"

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keep, q, k, v = as_in(v), q.float(), k.float(), v.float()
        d = k.shape[-1]
        kept = max(0, k.shape[1] - self.lost)
        if not kept:
            return q.new_zeros(*q.shape[:2], v.shape[-1])
        visible = self.mask(q.shape[1], k.shape[1])[:, :kept]
        score = (q @ k[:, :kept].mT * d**self.power).masked_fill(~visible, float("-inf"))
        nothing = ~visible.any(-1, keepdim=True)
        more = -kept % self.padded
        score = torch.nn.functional.pad(score, (0, more))
        return self._mix(score, torch.nn.functional.pad(v[:, :kept], (0, 0, 0, more)), keep).masked_fill(nothing, 0.0)

    def _mix(self, score: Tensor, v: Tensor, keep: Kernel) -> Tensor:
        if self.fault == "no maximum":
            return keep(score.exp()) @ v / score.exp().sum(-1, keepdim=True)
        if self.fault == "maximum from 0":
            return online_softmax(score, v, keep=keep, start=0.0)
        if self.fault == "scores in fp16":
            return torch.softmax(score.half(), -1).float() @ v
        if self.fault == "NaN as 0":
            return online_softmax(score, v, keep=keep).nan_to_num(0.0)
        if self.fault == "no softmax":
            return score.masked_fill(score.isinf(), 0) @ v
        if self.fault == "maximum not rescaled":
            return _not_rescaled(score, v)
        weight = (score - score.amax(-1, keepdim=True)).exp()
        if self.fault == "not divided":
            return weight @ v
        if self.fault == "weights in fp8":
            return fp8(torch.softmax(score, -1)) @ v
        if self.way == "whole":
            return keep(torch.softmax(score, -1)) @ v
        if self.way == "base 2":
            weight = torch.exp2((score - score.amax(-1, keepdim=True)) * 1.44269504)
            return keep(weight) @ v / weight.sum(-1, keepdim=True)
        if self.way == "two halves":
            return _merged(score, v, keep)
        return online_softmax(score, v, keep=keep)


def _merged(score: Tensor, v: Tensor, keep: Kernel) -> Tensor:
    """Two halves of the keys by themselves, joined by the logarithms of their sums: as kernels split sequences."""
    half = (score.shape[-1] + 1) // 2
    parts = [part for part in (slice(0, half), slice(half, score.shape[-1])) if part.stop > part.start]
    logs = torch.stack([torch.logsumexp(score[..., part], -1) for part in parts])
    found = torch.stack([online_softmax(score[..., part], v[..., part, :], keep=keep) for part in parts])
    return (torch.softmax(logs.clamp(min=-1e30), 0)[..., None] * found).sum(0)


def _not_rescaled(score: Tensor, v: Tensor, width: int = 16) -> Tensor:
    """What earlier blocks gave isn't multiplied when a later one has a larger maximum."""
    most = score.new_full((*score.shape[:-1], 1), -1e30)
    size, total = torch.zeros_like(most), score.new_zeros(*score.shape[:-1], v.shape[-1])
    for start in range(0, score.shape[-1], width):
        part = score[..., start : start + width]
        most = torch.maximum(most, part.amax(-1, keepdim=True))
        weight = (part - most).exp()
        size, total = size + weight.sum(-1, keepdim=True), total + weight @ v[..., start : start + width, :]
    return total / size


WRONG: dict[str, Attention] = {
    "scale: none": Attention(power=0.0),
    "scale: 1 / d": Attention(power=-1.0),
    "missing part: last key": Attention(lost=1),
    "missing part: last tile of keys": Attention(lost=16),
    "dropped term: sum of the weights": Attention(fault="not divided"),
    "dropped term: softmax": Attention(fault="no softmax"),
    "dropped term: earlier blocks not rescaled": Attention(fault="maximum not rescaled"),
    "padding: keys to a tile of 16": Attention(padded=16),
    "overflow: no maximum": Attention(fault="no maximum"),
    "zeros: maximum from 0": Attention(fault="maximum from 0"),
    "NaN: 0 for it in the result": Attention(fault="NaN as 0"),
}

RIGHT: dict[str, Attention] = {
    "block by block, weights in bf16": Attention(),
    "at once, weights in bf16": Attention(way="whole"),
    "exponentials of base 2": Attention(way="base 2"),
    "keys in two halves": Attention(way="two halves"),
}
