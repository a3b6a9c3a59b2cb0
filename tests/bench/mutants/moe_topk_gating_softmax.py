"""Wrong and right kernels of `moe_topk_gating_softmax`."""

import torch
from tests.bench.mutants.shared import Kernel, bf16, cut, shifted, then
from torch import Tensor

from inferometer.operators.catalogue.moe_topk_gating_softmax import reference

Two = tuple[Tensor, Tensor]


def kernel(
    logits: Tensor, *, top_k: int, num_expert_groups: int = 0, topk_group: int = 0, softmax: Kernel | None = None,
    ties_up: bool = False, best: Kernel | None = None, renormalised: bool = False, late: bool = False,
) -> Two:  # fmt: skip
    """One expert after another is taken, as kernels do.

    `ties_up`: the higher id of equal weights first; `best(weights of groups)` ranks groups; `late`: the softmax is over
    the chosen logits; `renormalised`: weights add up to 1.
    """
    weights = torch.softmax(logits.float(), -1) if softmax is None else softmax(logits.float())
    if num_expert_groups and topk_group:
        groups = weights.unflatten(1, (num_expert_groups, -1))
        rank = groups.amax(-1) if best is None else best(groups)
        chosen = rank.sort(dim=-1, descending=True, stable=True).indices[:, :topk_group]
        kept = torch.zeros_like(rank).scatter(1, chosen, 1).bool()
        weights = groups.masked_fill(~kept[..., None], 0).flatten(1)
    left, found, ids = weights.clone(), [], []
    for _ in range(top_k):
        most = left.amax(-1, keepdim=True)
        place = (left == most).float()
        at = (place.shape[1] - 1 - place.flip(1).argmax(-1)) if ties_up else place.argmax(-1)
        found.append(weights.gather(1, at[:, None]))
        ids.append(at[:, None])
        left.scatter_(1, at[:, None], -1.0)
    weight, chosen = torch.cat(found, 1), torch.cat(ids, 1)
    if late:
        weight = torch.softmax(logits.float().gather(1, chosen), -1)
    if renormalised:
        weight = weight / weight.sum(-1, keepdim=True)
    return weight, chosen.to(torch.int32)


def one_twice(weights: Tensor, ids: Tensor) -> Two:
    """What is as good as the choice before it isn't told from it."""
    again = torch.zeros_like(ids, dtype=torch.bool)
    again[:, 1:] = weights[:, 1:] == weights[:, :-1]
    return weights, torch.where(again, ids.roll(1, 1), ids)


def from_zero(logits: Tensor) -> Tensor:
    """The running maximum begins at 0, as if no logit were below it."""
    weight = (logits - logits.amax(-1, keepdim=True).clamp(min=0.0)).exp()
    return weight / weight.sum(-1, keepdim=True)


def in_float64(logits: Tensor) -> Tensor:
    return torch.softmax(logits.double(), -1).float()


def online(logits: Tensor) -> Tensor:
    """Softmax with exponentials of base 2 and a reciprocal."""
    weight = torch.exp2((logits - logits.amax(-1, keepdim=True)) * 1.4426950408889634)
    return weight * weight.sum(-1, keepdim=True).reciprocal()


WRONG: dict[str, Kernel] = {
    "mask: groups ignored": lambda x, *, top_k, **_: reference(x, top_k=top_k),
    "mask: a group more": lambda x, *, topk_group=0, **s: reference(x, topk_group=topk_group and topk_group + 1, **s),
    "mask: groups interleaved": lambda x, *, num_expert_groups=0, **s: (
        reference(x, **s) if not num_expert_groups else interleaved(x, num_expert_groups, **s)
    ),
    "mask: groups by their sums": lambda x, **s: kernel(x, best=lambda g: g.sum(-1), **s),
    "expert: ids off by one": lambda x, **s: then(reference(x, **s), lambda w, i: (w, (i + 1) % x.shape[1])),
    "expert: of equal weights one twice": lambda x, **s: then(reference(x, **s), one_twice),
    "overflow: no maximum": lambda x, **s: kernel(x, softmax=lambda y: y.exp() / y.exp().sum(-1, keepdim=True), **s),
    "overflow: maximum kept at 88": lambda x, **s: kernel(
        x, softmax=lambda y: torch.softmax(y.clamp(max=88.0), -1), **s
    ),
    "overflow: logits in fp16": lambda x, **s: kernel(x, softmax=lambda y: torch.softmax(y.half().float(), -1), **s),
    "zeros: maximum from 0": lambda x, **s: kernel(x, softmax=from_zero, **s),
    "NaN: masked experts times 0": lambda x, **s: kernel(x, softmax=lambda y: torch.softmax(y, -1) + 0 * y, **s),
    "expert: the least": lambda x, **s: reference(-x, **s),
    "expert: of the next token": lambda x, **s: then(reference(x, **s), lambda w, i: (w, shifted(i))),
    "swapped: from the least of the chosen": lambda x, **s: tuple(y.flip(1) for y in reference(x, **s)),
    "swapped: by id": lambda x, **s: then(
        reference(x, **s), lambda w, i: (w.gather(1, i.sort().indices), i.sort().values)
    ),
    "scale: weights add up to 1": lambda x, **s: kernel(x, renormalised=True, **s),
    "scale: softmax of the chosen": lambda x, **s: kernel(x, late=True, **s),
    "scale: sigmoid in place of softmax": lambda x, **s: kernel(x, softmax=torch.sigmoid, **s),
    "scale: logits": lambda x, **s: then(reference(x, **s), lambda w, i: (x.gather(1, i.long()), i)),
    "dropped term: division by the sum": lambda x, **s: kernel(
        x, softmax=lambda y: (y - y.amax(-1, keepdim=True)).exp(), **s
    ),
    "missing part: last expert": lambda x, **s: reference(cut(x).add(torch.eye(x.shape[1])[-1] * -100), **s),
    "missing part: last choice": lambda x, **s: tuple(cut(y) for y in reference(x, **s)),
    "padding: experts to the next 64, logit 0": lambda x, **s: kernel(
        x,
        softmax=lambda y: (
            torch.softmax(torch.nn.functional.pad(y, (0, -y.shape[1] % 64)), -1)[:, : y.shape[1]]
            if y.shape[1] % 64
            else torch.softmax(torch.nn.functional.pad(y, (0, 64)), -1)[:, : y.shape[1]]
        ),
        **s,
    ),
    "position: rows off by one": lambda x, **s: reference(shifted(x), **s),
    "rounding: logits in bf16": lambda x, **s: reference(bf16(x), **s),
    "rounding: softmax in bf16": lambda x, **s: kernel(x, softmax=lambda y: bf16(torch.softmax(y, -1)), **s),
}


def interleaved(x: Tensor, groups: int, **settings: int) -> Two:
    """Expert e is taken for one of group e % G."""
    order = torch.arange(x.shape[1]).view(-1, groups).T.flatten()
    weight, ids = reference(x[:, order], num_expert_groups=groups, **settings)
    return weight, order[ids.long()].to(torch.int32)


def by_topk(logits: Tensor, *, top_k: int, num_expert_groups: int = 0, topk_group: int = 0) -> Two:
    """Groups and experts in the order of torch.topk, which leaves ties open."""
    weights = torch.softmax(logits.float(), -1)
    if num_expert_groups and topk_group:
        groups = weights.unflatten(1, (num_expert_groups, -1))
        chosen = groups.amax(-1).topk(topk_group, -1).indices
        kept = torch.zeros_like(groups[..., 0]).scatter(1, chosen, 1).bool()
        weights = groups.masked_fill(~kept[..., None], 0).flatten(1)
    found, ids = weights.topk(top_k, -1)
    return found, ids.to(torch.int32)


RIGHT: dict[str, Kernel] = {
    "one expert after another": kernel,
    "of equal weights the higher id": lambda x, **s: kernel(x, ties_up=True, **s),
    "ranked by torch.topk": by_topk,
    "softmax in float64": lambda x, **s: kernel(x, softmax=in_float64, **s),
    "softmax of base 2 with a reciprocal": lambda x, **s: kernel(x, softmax=online, **s),
    "in float64": lambda x, **s: reference(x.double(), **s),
}

HARMLESS = {
    "overflow: infinity cut off in gating_output": "exp of -10,000 is 0, too",
    "zeros: numbers below 1e-20 of gating_output": "all weights are equal, too",
    "zeros: 1 for 0 in gating_output": "equal logits are equal, whatever they are",
}
INAPPLICABLE = {"identity": "no input has the shape of an output"}
