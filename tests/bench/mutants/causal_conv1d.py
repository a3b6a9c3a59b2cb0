"""Wrong and right kernels of `causal_conv1d`."""

import torch
from tests.bench.mutants.shared import Kernel, as_in, cut, fp8, halves, shifted, then
from torch import Tensor
from torch.nn.functional import conv1d, silu

from inferometer.operators.catalogue.causal_conv1d import reference


def kernel(
    x: Tensor, weight: Tensor, bias: Tensor, state: Tensor, *, activation: str | None = "silu", late: int = 0,
    keep: Kernel = Tensor.float, activate: Kernel = silu,
) -> Tensor:  # fmt: skip
    """torch's convolution; `late`: it sees so many tokens of the future; `keep` rounds before the activation."""
    padded = torch.cat([state[0], x, x[:, -1:].repeat(1, late)], 1).float()[:, late:]
    found = keep(conv1d(padded[None], weight.float()[:, None], groups=len(x))[0] + bias.float()[:, None])
    return (found if activation is None else activate(found)).to(x.dtype)


WRONG: dict[str, Kernel] = {
    "mask: a token of the future": lambda x, w, b, s, **a: kernel(x, w, b, s, late=1, **a),
    "mask: none, centred": lambda x, w, b, s, **a: kernel(x, w, b, s, late=2, **a),
    "dropped term: bias": lambda x, w, b, s, **a: reference(x, w, torch.zeros_like(b), s, **a),
    "dropped term: state": lambda x, w, b, s, **a: reference(x, w, b, torch.zeros_like(s), **a),
    "dropped term: activation": lambda x, w, b, s, **_: reference(x, w, b, s, activation=None),
    "dropped term: activation where none is asked": lambda x, w, b, s, **_: reference(x, w, b, s, activation="silu"),
    "swapped: weights from the newest token": lambda x, w, b, s, **a: reference(x, w.flip(1), b, s, **a),
    "swapped: state from the newest token": lambda x, w, b, s, **a: reference(x, w, b, s.flip(2), **a),
    "swapped: channels and tokens of the state": lambda x, w, b, s, **a: reference(x, w, b, s.mT.reshape(s.shape), **a),
    "swapped: halves of the channels' weights": lambda x, w, b, s, **a: reference(x, halves(w, 0), b, s, **a),
    "missing part: last weight": lambda x, w, b, s, **a: reference(x, cut(w), b, s, **a),
    "missing part: first weight": lambda x, w, b, s, **a: reference(x, cut(w.flip(1)).flip(1), b, s, **a),
    "missing part: last channel": lambda x, w, b, s, **a: reference(cut(x, 1, 0), w, b, s, **a),
    "position: state off by one": lambda x, w, b, s, **a: reference(x, w, b, shifted(s, dim=2), **a),
    "position: tokens off by one": lambda x, w, b, s, **a: reference(shifted(x, dim=1), w, b, s, **a),
    "position: channels' bias off by one": lambda x, w, b, s, **a: reference(x, w, shifted(b), s, **a),
    "padding: first token repeated before the first": lambda x, w, b, s, **a: reference(
        x, w, b, x[None, :, :1].expand_as(s), **a
    ),
    "overflow: sum in fp16": lambda x, w, b, s, **a: kernel(x, w, b, s, keep=lambda y: y.half().float(), **a),
    "overflow: z exp(z) / (1 + exp(z))": lambda x, w, b, s, **a: kernel(
        x, w, b, s, activate=lambda z: z * z.exp() / (1 + z.exp()), **a
    ),
    "NaN: 0 for it in the result": lambda x, w, b, s, **a: kernel(x, w, b, s, **a).nan_to_num(0.0),
    "NaN: in all later tokens": lambda x, w, b, s, **a: kernel(x, w, b, s, **a) + 0 * x.float().cumsum(1).to(x.dtype),
    "scale: weights averaged": lambda x, w, b, s, **a: reference(x, w / w.shape[1], b, s, **a),
    "rounding: input in fp8": lambda x, w, b, s, **a: reference(fp8(x.float()).to(x.dtype), w, b, s, **a),
}

RIGHT: dict[str, Kernel] = {
    "torch's own": kernel,
    "rounded before the activation": lambda x, w, b, s, **a: kernel(x, w, b, s, keep=as_in(x), **a),
    "x / (1 + exp(-x))": lambda x, w, b, s, **a: kernel(x, w, b, s, activate=lambda z: z / (1 + (-z).exp()), **a),
    "in float64": lambda x, w, b, s, **a: kernel(x.double(), w.double(), b.double(), s.double(), **a).to(x.dtype),
    "from the newest token": lambda x, w, b, s, *, activation: then(
        (
            sum(
                w[:, i : i + 1].float() * torch.cat([s[0], x], 1).float()[:, i : i + x.shape[1]]
                for i in reversed(range(w.shape[1]))
            )
            + b.float()[:, None],
        ),
        lambda total: (total if activation is None else silu(total)).to(x.dtype),
    ),
}

HARMLESS = dict.fromkeys(
    (f"zeros: numbers below 1e-20 of {name}" for name in ("x", "initial_state")), "the bias is what is left"
)
INAPPLICABLE = {"expert": "no experts", "zeros": "nothing is divided, and sums of products and SiLU are smooth at 0"}
