"""Wrong and right kernels of `linear_sigmoid_mul`."""

import torch
from tests.bench.mutants.shared import Kernel, as_in, cut, fp8, halves, in_bf16, shifted, times
from torch import Tensor

from inferometer.operators.catalogue.linear_sigmoid_mul import reference


def kernel(
    hidden: Tensor, weight: Tensor, bias: Tensor, post: Tensor, *, activate: Kernel = torch.sigmoid,
    keep: Kernel = Tensor.float, low: bool = False,
) -> Tensor:  # fmt: skip
    """`keep` rounds the gate, before its sigmoid and after it; `low`: sums in bf16."""
    if low:
        product = in_bf16(hidden.float()[:, None] * weight.float())[..., 0]
    else:
        product = times(hidden.float(), weight.float().T, keep=as_in(hidden))
    return (keep(activate(keep(product + bias.float()))) * post.float()).to(post.dtype)


WRONG: dict[str, Kernel] = {
    "overflow: exp(x) / (1 + exp(x))": lambda h, w, b, p: kernel(
        h, w, b, p, activate=lambda x: x.exp() / (1 + x.exp())
    ),
    "overflow: operands in fp16": lambda h, w, b, p: reference(h.half().to(h.dtype), w, b, p),
    "NaN: 0 for it in the gate": lambda h, w, b, p: kernel(
        h, w, b, p, activate=lambda x: torch.sigmoid(x).nan_to_num(0)
    ),
    "NaN: gates kept in range": lambda h, w, b, p: kernel(
        h, w, b, p, activate=lambda x: torch.sigmoid(x.nan_to_num(0))
    ),
    "dropped term: bias": lambda h, w, b, p: reference(h, w, torch.zeros_like(b), p),
    "dropped term: sigmoid": lambda h, w, b, p: kernel(h, w, b, p, activate=lambda x: x),
    "dropped term: gate": lambda h, w, b, p: p.clone(),
    "dropped term: what is gated": lambda h, w, b, p: reference(h, w, b, torch.ones_like(p)),
    "dropped term: SiLU in place of sigmoid": lambda h, w, b, p: kernel(h, w, b, p, activate=torch.nn.functional.silu),
    "dropped term: bias after the sigmoid": lambda h, w, b, p: (
        (torch.sigmoid(h.float() @ w.float().T) + b.float()) * p.float()
    ).to(p.dtype),
    "dropped term: tanh in place of sigmoid": lambda h, w, b, p: kernel(h, w, b, p, activate=torch.tanh),
    "scale: gate halved": lambda h, w, b, p: reference(h, w * 0.5, b, p),
    "missing part: last eighth of H": lambda h, w, b, p: reference(cut(h, h.shape[1] // 8), w, b, p),
    "missing part: last output column's weights": lambda h, w, b, p: reference(h, cut(w, 1, 0), b, p),
    "missing part: last tile of tokens": lambda h, w, b, p: reference(cut(h, h.shape[0] % 16 or 16, 0), w, b, p),
    "swapped: halves of H": lambda h, w, b, p: reference(halves(h), w, b, p),
    "swapped: halves of the bias": lambda h, w, b, p: reference(h, w, halves(b), p),
    "position: rows of the weight off by one": lambda h, w, b, p: reference(h, shifted(w), b, p),
    "position: tokens off by one": lambda h, w, b, p: reference(h, w, b, shifted(p)),
    "rounding: tokens in fp8": lambda h, w, b, p: reference(fp8(3 * h.float()).to(h.dtype) / 3, w, b, p),
    "rounding: sums in bf16": lambda h, w, b, p: kernel(h, w, b, p, low=True),
    "rounding: gate in fp8": lambda h, w, b, p: kernel(h, w, b, p, keep=fp8),
    "rounding: gated matrix in fp8": lambda h, w, b, p: reference(h, w, b, fp8(p.float()).to(p.dtype)),
}

RIGHT: dict[str, Kernel] = {
    "in blocks, the gate not rounded": kernel,
    "sigmoid rounded to bf16": lambda h, w, b, p: kernel(h, w, b, p, keep=as_in(h)),
    "by a tanh": lambda h, w, b, p: kernel(h, w, b, p, activate=lambda x: 0.5 + 0.5 * (x / 2).tanh()),
    "in float64": lambda h, w, b, p: (torch.sigmoid(h.double() @ w.double().T + b.double()) * p.double()).to(p.dtype),
    "1 / (1 + exp(-x))": lambda h, w, b, p: kernel(h, w, b, p, activate=lambda x: 1 / (1 + (-x).exp())),
}

HARMLESS = {
    "overflow: weight in fp16": "it has more bits than bf16, and the range of weights",
    "zeros: numbers below 1e-20 of hidden_states": "the bias is what is left",
    "rounding: bias in fp8": "what that changes is less than what bf16 does to the gate",
}
INAPPLICABLE = {
    "mask": "no mask",
    "expert": "no experts",
    "padding": "nothing is padded",
    "zeros": "nothing is divided, and products and a sigmoid are smooth at 0",
}
