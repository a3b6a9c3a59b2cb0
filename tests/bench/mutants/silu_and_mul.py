"""Wrong and right kernels of `silu_and_mul`."""

import torch
from tests.bench.mutants.shared import Kernel, cut, fp8, halves, shifted
from torch import Tensor
from torch.nn.functional import gelu, silu

from inferometer.operators.catalogue.silu_and_mul import reference


def kernel(x: Tensor, *, activate: Kernel = silu, interleaved: bool = False) -> Tensor:
    """Rounded once; `interleaved`: gate and up take turns."""
    gate, up = (x[..., ::2], x[..., 1::2]) if interleaved else x.chunk(2, -1)
    result: Tensor = (activate(gate.float()) * up.float()).to(x.dtype)
    return result


WRONG: dict[str, Kernel] = {
    "swapped: gate and up": lambda x: reference(halves(x)),
    "swapped: gate and up interleaved": lambda x: kernel(x, interleaved=True),
    "dropped term: activation": lambda x: kernel(x, activate=lambda g: g),
    "dropped term: up": lambda x: silu(x.chunk(2, -1)[0].float()).to(x.dtype),
    "dropped term: gate": lambda x: x.chunk(2, -1)[1].clone(),
    "dropped term: sigmoid in place of SiLU": lambda x: kernel(x, activate=torch.sigmoid),
    "dropped term: GELU in place of SiLU": lambda x: kernel(x, activate=gelu),
    "dropped term: quick GELU in place of SiLU": lambda x: kernel(x, activate=lambda g: g * torch.sigmoid(1.702 * g)),
    "scale: gate negated": lambda x: kernel(x, activate=lambda g: silu(-g)),
    "missing part: last column of up": lambda x: reference(cut(x)),
    "position: up of the next row": lambda x: reference(torch.cat([x.chunk(2, -1)[0], shifted(x.chunk(2, -1)[1])], -1)),
    "position: halves split a column early": lambda x: reference(shifted(x, -1, -1)),
    "rounding: gate in fp8": lambda x: kernel(x, activate=lambda g: fp8(silu(g))),
    "overflow: z exp(z) / (1 + exp(z))": lambda x: kernel(x, activate=lambda g: g * g.exp() / (1 + g.exp())),
    "overflow: product in fp16": lambda x: (silu(x.chunk(2, -1)[0].float()).half() * x.chunk(2, -1)[1].half()).to(
        x.dtype
    ),
    "NaN: 0 for it": lambda x: kernel(x).nan_to_num(0.0),
    "NaN: gates kept from below by a maximum": lambda x: kernel(
        x, activate=lambda g: silu(g.nan_to_num(-100.0).clamp(min=-100))
    ),
    "rounding: input in fp8": lambda x: reference(fp8(x.float()).to(x.dtype)),
}

RIGHT: dict[str, Kernel] = {
    "rounded once": kernel,
    "x / (1 + exp(-x))": lambda x: kernel(x, activate=lambda g: g / (1 + (-g).exp())),
    "h + h tanh(h)": lambda x: kernel(x, activate=lambda g: g / 2 + g / 2 * (g / 2).tanh()),
    "times the sigmoid": lambda x: kernel(x, activate=lambda g: g * torch.sigmoid(g)),
    "exponential of base 2 with a reciprocal": lambda x: kernel(
        x, activate=lambda g: g * (1 + torch.exp2(-1.4426950408889634 * g)).reciprocal()
    ),
    "all in bf16": lambda x: kernel(x, activate=lambda g: g.bfloat16() * torch.sigmoid(g.bfloat16())),
}

ONLY_IN = {"all in bf16": ("bf16",)}
INAPPLICABLE = {
    "identity": "no input has the output's shape",
    "mask": "no mask",
    "expert": "no experts",
    "padding": "element by element: nothing is padded",
    "zeros": "nothing is divided, and SiLU and a product are smooth at 0",
}
