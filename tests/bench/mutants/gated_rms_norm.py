"""Wrong and right kernels of `gated_rms_norm`."""

from typing import Any

import torch
from tests.bench.mutants import rms_norm
from tests.bench.mutants.shared import Kernel, as_in, cut, fp8, halves, shifted
from torch import Tensor

from inferometer.operators.catalogue.gated_rms_norm import reference


def gate_of(z: Tensor, activation: str) -> Tensor:
    return torch.sigmoid(z.float()) * (1 if activation == "sigmoid" else z.float())


def overflowing(z: Tensor, activation: str) -> Tensor:
    z = z.float()
    return z.exp() / (1 + z.exp()) * (1 if activation == "sigmoid" else z)


def kernel(
    x: Tensor, weight: Tensor, z: Tensor, *, eps: float = 1e-6, norm_before_gate: bool = True,
    activation: str = "silu", norm: Kernel = rms_norm.kernel, rounded: bool = False,
    gate: Kernel = gate_of,
) -> Tensor:  # fmt: skip
    """With a kernel of `rms_norm`; `rounded`: what lies between norm and gate is bf16."""
    keep = as_in(x) if rounded else Tensor.float
    opened = keep(gate(z, activation))
    if norm_before_gate:
        return (keep(norm(x.float(), weight, eps=eps)) * opened).to(x.dtype)
    result: Tensor = norm(keep(x.float() * opened), weight, eps=eps).to(x.dtype)
    return result


def by_tanh(z: Tensor, activation: str) -> Tensor:
    z = z.float()
    return (0.5 + 0.5 * (z / 2).tanh()) * (1 if activation == "sigmoid" else z)


def by_reciprocal(z: Tensor, activation: str) -> Tensor:
    z = z.float()
    return (1 + (-z).exp()).reciprocal() * (1 if activation == "sigmoid" else z)


def with_norm(name: str) -> Kernel:
    """A wrong norm."""

    def wrong(x: Tensor, w: Tensor, z: Tensor, **settings: Any) -> Tensor:
        return kernel(x, w, z, norm=rms_norm.WRONG[name], **settings)

    return wrong


NORM: tuple[str, ...] = ("dropped term: eps", "dropped term: weight", "scale: sum in place of mean")
NORM += ("missing part: last eighth not summed", "padding: divided by the padded width")
NORM += ("overflow: squares in fp16", "zeros: no eps for rows of zeros", "NaN: 0 for it in the sum")
NORM += ("overflow: mean of squares up to 1e9",)
NORM += ("position: root of the next row", "position: weight off by one")

WRONG: dict[str, Kernel] = {
    **{name: with_norm(name) for name in NORM},
    "dropped term: gate": lambda x, w, z, *, eps=1e-6, **_: rms_norm.kernel(x, w, eps=eps),
    "dropped term: sigmoid of the gate": lambda x, w, z, *, eps=1e-6, **_: rms_norm.kernel(x, w, eps=eps) * z,
    "scale: sigmoid for SiLU and the other way": lambda x, w, z, *, activation="silu", **s: reference(
        x, w, z, activation="silu" if activation == "sigmoid" else "sigmoid", **s
    ),
    "swapped: gate before the norm and after it": lambda x, w, z, *, norm_before_gate=True, **s: reference(
        x, w, z, norm_before_gate=not norm_before_gate, **s
    ),
    "overflow: gate of z exp(z) / (1 + exp(z))": lambda x, w, z, **s: kernel(x, w, z, gate=overflowing, **s),
    "overflow: z in e5m2's range": lambda x, w, z, **s: reference(x, w, z.clamp(-16, 16), **s),
    "NaN: 0 for it in the gate": lambda x, w, z, **s: reference(x, w, z.nan_to_num(0.0), **s),
    "swapped: x and z": lambda x, w, z, **s: reference(z, w, x, **s),
    "swapped: halves of the gate": lambda x, w, z, **s: reference(x, w, halves(z), **s),
    "position: gate of the next row": lambda x, w, z, **s: reference(x, w, shifted(z), **s),
    "missing part: last columns of the gate": lambda x, w, z, **s: reference(x, w, cut(z, z.shape[1] // 8), **s),
    "rounding: gate in fp8": lambda x, w, z, **s: reference(x, w, fp8(z.float()).to(z.dtype), **s),
}

RIGHT: dict[str, Kernel] = {
    "summed in blocks": kernel,
    "bf16 between norm and gate": lambda x, w, z, **s: kernel(x, w, z, rounded=True, **s),
    "rounded before the weight": lambda x, w, z, **s: kernel(x, w, z, norm=rms_norm.rounded_before_weight, **s),
    "gate by a tanh": lambda x, w, z, **s: kernel(x, w, z, gate=by_tanh, **s),
    "gate with a reciprocal": lambda x, w, z, **s: kernel(x, w, z, gate=by_reciprocal, **s),
    "divided by the root": lambda x, w, z, **s: kernel(x, w, z, norm=rms_norm.divided, **s),
}

INAPPLICABLE = {"mask": "no mask", "expert": "no experts"}
