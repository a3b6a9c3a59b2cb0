"""Wrong and right kernels of `gated_rms_norm`."""

from typing import Any

import torch
from tests.bench.mutants import rms_norm
from tests.bench.mutants.shared import Kernel, bf16, cut, fp8, halves, shifted
from torch import Tensor

from inferometer.operators.catalogue.gated_rms_norm import reference


def gate_of(z: Tensor, activation: str) -> Tensor:
    return torch.sigmoid(z.float()) * (1 if activation == "sigmoid" else z.float())


def kernel(
    x: Tensor, weight: Tensor, z: Tensor, *, eps: float = 1e-6, norm_before_gate: bool = True,
    activation: str = "silu", norm: Kernel = rms_norm.kernel, rounded: bool = False,
) -> Tensor:  # fmt: skip
    """With a kernel of `rms_norm`; `rounded`: what lies between norm and gate is bf16."""
    keep = bf16 if rounded else Tensor.float
    gate = keep(gate_of(z, activation))
    if norm_before_gate:
        return (keep(norm(x.float(), weight, eps=eps)) * gate).to(x.dtype)
    result: Tensor = norm(keep(x.float() * gate), weight, eps=eps).to(x.dtype)
    return result


def with_norm(name: str) -> Kernel:
    """A wrong norm."""

    def wrong(x: Tensor, w: Tensor, z: Tensor, **settings: Any) -> Tensor:
        return kernel(x, w, z, norm=rms_norm.WRONG[name], **settings)

    return wrong


NORM: tuple[str, ...] = ("dropped term: eps", "dropped term: weight", "scale: sum in place of mean")
NORM += ("missing part: last eighth not summed", "padding: divided by the padded width")
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
    "swapped: x and z": lambda x, w, z, **s: reference(z, w, x, **s),
    "swapped: halves of the gate": lambda x, w, z, **s: reference(x, w, halves(z), **s),
    "position: gate of the next row": lambda x, w, z, **s: reference(x, w, shifted(z), **s),
    "missing part: last columns of the gate": lambda x, w, z, **s: reference(x, w, cut(z, z.shape[1] // 8), **s),
    "rounding: gate in fp8": lambda x, w, z, **s: reference(x, w, fp8(z.float()).to(z.dtype), **s),
}

RIGHT: dict[str, Kernel] = {
    "summed in blocks": kernel,
    "bf16 between norm and gate": lambda x, w, z, **s: kernel(x, w, z, rounded=True, **s),
    "divided by the root": lambda x, w, z, **s: kernel(x, w, z, norm=rms_norm.divided, **s),
}

INAPPLICABLE = {"mask": "no mask", "expert": "no experts"}
