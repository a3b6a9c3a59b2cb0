"""Wrong and right kernels of `fused_moe`."""

import torch
from tests.bench.mutants.shared import Kernel, as_in, bf16, cut, fp8, halves, shifted, times
from torch import Tensor
from torch.nn.functional import gelu, silu

from inferometer.operators.catalogue.fused_moe import reference


def kernel(
    hidden: Tensor, w1: Tensor, w2: Tensor, weights: Tensor, ids: Tensor, *, activate: Kernel = silu,
    keep: Kernel | None = None, out: Kernel = Tensor.float, order: str = "down", early: bool = False,
) -> Tensor:  # fmt: skip
    """Slot by slot. `keep` rounds what goes into the second product, `out` what an expert gives.

    `early`: the router's weight is multiplied before the second product. `order` of the sum over experts: down or up.
    """
    own_type = as_in(hidden)
    total = torch.zeros(hidden.shape)
    for slot in range(ids.shape[1])[:: -1 if order == "down" else 1]:
        one, two = w1[ids[:, slot].long()].float(), w2[ids[:, slot].long()].float()
        gate, up = times(hidden.float()[:, None], one.mT, keep=own_type)[:, 0].chunk(2, -1)
        weight = weights[:, slot, None]
        inner = (keep or own_type)(activate(gate) * up * (weight if early else 1))
        total += out(times(inner[:, None], two.mT, keep=own_type)[:, 0] * (1 if early else weight))
    return total


def halves_of_w1(w1: Tensor) -> Tensor:
    return halves(w1, 1)


def without_last_expert(weights: Tensor) -> Tensor:
    weights = weights.clone()
    weights[:, -1] = 0
    return weights


def capped(weights: Tensor, ids: Tensor, most: int = 4) -> Tensor:
    """An expert's slots beyond `most` are dropped, as where its tile is too small."""
    flat, kept = ids.flatten(), weights.clone().flatten()
    for expert in flat.unique():
        kept[(flat == expert).nonzero().flatten()[most:]] = 0
    return kept.view(weights.shape)


WRONG: dict[str, Kernel] = {
    "overflow: gate of z exp(z) / (1 + exp(z))": lambda h, a, b, w, i: kernel(
        h, a, b, w, i, activate=lambda z: z * z.exp() / (1 + z.exp())
    ),
    "overflow: between the products in fp16": lambda h, a, b, w, i: kernel(
        h, a, b, w, i, keep=lambda x: x.half().float()
    ),
    "zeros: divided by a token's length": lambda h, a, b, w, i: (
        reference(h, a, b, w, i) + 0 / h.float().norm(dim=-1, keepdim=True)
    ),
    "zeros: weights that add up to 1": lambda h, a, b, w, i: reference(h, a, b, w / w.sum(-1, keepdim=True), i),
    "NaN: 0 for it between the products": lambda h, a, b, w, i: kernel(
        h, a, b, w, i, keep=lambda x: bf16(x).nan_to_num(0)
    ),
    "NaN: in all tokens": lambda h, a, b, w, i: reference(h, a, b, w, i) + 0 * h.float().sum(),
    "expert: one tile of eight slots for each": lambda h, a, b, w, i: reference(h, a, b, capped(w, i, 8), i),
    "expert: the next one": lambda h, a, b, w, i: reference(h, a, b, w, (i + 1) % a.shape[0]),
    "expert: first choice for all": lambda h, a, b, w, i: reference(h, a, b, w, i[:, :1].expand_as(i)),
    "expert: of the next token": lambda h, a, b, w, i: reference(h, a, b, w, shifted(i)),
    "expert: second product of the next one": lambda h, a, b, w, i: reference(h, a, shifted(b), w, i),
    "scale: weights dropped": lambda h, a, b, w, i: reference(h, a, b, torch.ones_like(w), i),
    "scale: weights equal": lambda h, a, b, w, i: reference(h, a, b, torch.full_like(w, 1 / w.shape[1]), i),
    "scale: weights in the other order": lambda h, a, b, w, i: reference(h, a, b, w.flip(1), i),
    "swapped: gate and up": lambda h, a, b, w, i: reference(h, halves_of_w1(a), b, w, i),
    "swapped: gate and up interleaved": lambda h, a, b, w, i: reference(
        h, torch.cat([a[:, ::2], a[:, 1::2]], 1), b, w, i
    ),
    "swapped: halves of a row": lambda h, a, b, w, i: reference(halves(h), a, b, w, i),
    "dropped term: activation": lambda h, a, b, w, i: kernel(h, a, b, w, i, activate=lambda x: x),
    "dropped term: up": lambda h, a, b, w, i: kernel(h, a, b, w, i, activate=lambda x: x.sign()),
    "dropped term: GELU in place of SiLU": lambda h, a, b, w, i: kernel(h, a, b, w, i, activate=gelu),
    "missing part: last choice": lambda h, a, b, w, i: reference(h, a, b, without_last_expert(w), i),
    "missing part: slots beyond four an expert": lambda h, a, b, w, i: reference(h, a, b, capped(w, i), i),
    "missing part: last eighth of H": lambda h, a, b, w, i: reference(cut(h, h.shape[1] // 8), a, b, w, i),
    "missing part: last eighth of I": lambda h, a, b, w, i: reference(h, a, cut(b, b.shape[2] // 8), w, i),
    "position: tokens off by one": lambda h, a, b, w, i: reference(shifted(h), a, b, w, i),
    "padding: a slot of padding added to token 0": lambda h, a, b, w, i: torch.cat(
        [2 * reference(h, a, b, w, i)[:1], reference(h, a, b, w, i)[1:]]
    ),
    "rounding: tokens in fp8": lambda h, a, b, w, i: reference(fp8(h.float()).to(h.dtype), a, b, w, i),
    "rounding: between the products in fp8": lambda h, a, b, w, i: kernel(h, a, b, w, i, keep=fp8),
}

RIGHT: dict[str, Kernel] = {
    "bf16 between the products": kernel,
    "experts from the first one": lambda h, a, b, w, i: kernel(h, a, b, w, i, order="up"),
    "experts' results in bf16": lambda h, a, b, w, i: kernel(h, a, b, w, i, out=bf16),
    "weights before the second product": lambda h, a, b, w, i: kernel(h, a, b, w, i, early=True),
    "result through bf16": lambda h, a, b, w, i: bf16(kernel(h, a, b, w, i)),
}

ONLY_IN = dict.fromkeys(RIGHT, ("bf16", "fp32"))  # between the products fp16 overflows: it isn't the contract's
HARMLESS = {
    f"overflow: {name} in fp16": "it has more bits than bf16, and the range of weights"
    for name in ("w1", "w2", "topk_weights")
}
INAPPLICABLE = {"identity": "no input has the output's shape and dtype", "mask": "no mask"}
