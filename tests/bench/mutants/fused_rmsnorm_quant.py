"""Wrong and right kernels of `fused_rmsnorm_quant`."""

from typing import Any

import torch
from tests.bench.mutants import fp8_dynamic_per_token_quant as quant
from tests.bench.mutants import fused_add_rms_norm as add_norm
from tests.bench.mutants.shared import Kernel, fp8, halves, shifted, then
from torch import Tensor

from inferometer.operators.catalogue import fused_add_rms_norm
from inferometer.operators.catalogue.fused_rmsnorm_quant import reference

Three = tuple[Tensor, ...]


def kernel(
    x: Tensor, residual: Tensor, weight: Tensor, *, eps: float = 1e-5, norm: Kernel = fused_add_rms_norm.reference,
    keep: Kernel = Tensor.float, zero: float = 1.0, quantise: Kernel = quant.kernel, **fp8_settings: Any,
) -> Three:  # fmt: skip
    """Add and norm, then rows to FP8; `keep` of the norm, `zero` the scale of a row of zeros."""
    normed, added = norm(x, residual, weight, eps=eps)
    q, scale = quantise(keep(normed), **fp8_settings)
    none = normed.abs().amax(-1) == 0
    return q, torch.where(none, torch.tensor(zero), scale)[:, None], added


def with_norm(name: str) -> Kernel:
    return lambda *x, **s: kernel(*x, norm=add_norm.WRONG[name], **s)


def with_quantised(name: str) -> Kernel:
    return lambda *x, **s: kernel(*x, quantise=quant.WRONG[name], **s)


def unrounded(x: Tensor, residual: Tensor, weight: Tensor, *, eps: float) -> tuple[Tensor, Tensor]:
    """The norm is not rounded to bf16 before the maximum."""
    added = (x + residual).float()
    return added * (added.square().mean(-1, keepdim=True) + eps).rsqrt() * weight.float(), x + residual


NORM = (
    "scale: sum in place of mean", "missing part: last eighth not summed", "padding: divided by the padded width",
    "position: root of the next row", "dropped term: residual", "dropped term: weight",
    "dropped term: residual not in what is normed", "dropped term: residual not updated",
    "swapped: halves of the weight", "position: weight off by one", "rounding: sum in fp8",
)  # fmt: skip
QUANT = (
    "scale: 1", "scale: one for all rows", "scale: its reciprocal", "scale: to the type's own largest value",
    "scale: bits of the other type", "missing part: last eighth not in the maximum", "rounding: towards zero",
    "position: scale of the next row", "rounding: scale to a power of two",
)  # fmt: skip

WRONG: dict[str, Kernel] = {
    "overflow: squares in fp16": with_norm("overflow: squares in fp16"),
    "zeros: no eps for rows of zeros": with_norm("zeros: no eps for rows of zeros"),
    "zeros: divided by a scale of 0": lambda *x, **s: kernel(*x, zero=0.0, **s),
    **{name: with_norm(name) for name in NORM},
    **{name: with_quantised(name) for name in QUANT},
    "dropped term: norm": lambda *x, **s: kernel(*x, norm=lambda a, r, w, **_: (a + r, a + r), **s),
    "dropped term: scale of zero rows": lambda *x, **s: kernel(*x, zero=1e-12 / 240, **s),
    "swapped: halves of the row": lambda x, r, w, **s: then(reference(x, r, w, **s), lambda q, k, a: (halves(q), k, a)),
    "position: rows off by one": lambda x, r, w, **s: reference(shifted(x), shifted(r), w, **s),
    "rounding: norm in fp8 before the maximum": lambda *x, **s: kernel(*x, keep=lambda y: fp8(y.float() * 3) / 3, **s),
}

RIGHT: dict[str, Kernel] = {
    "divided": kernel,
    "norm not rounded before the maximum": lambda *x, **s: kernel(*x, norm=unrounded, **s),
    "multiplied by the reciprocal": lambda *x, **s: kernel(
        *x, quantise=lambda y, **f: quant.kernel(y, divide=False, **f), **s
    ),
    "rounded before the weight": lambda *x, **s: kernel(*x, norm=add_norm.RIGHT["rounded before the weight"], **s),
    "sum not rounded before the norm": lambda *x, **s: kernel(*x, norm=add_norm.norm_of_unrounded, **s),
}

HARMLESS = {"zeros: numbers below 1e-20 of x": "no case has them: least scales differ"}
INAPPLICABLE = {"NaN": "left out: maxima pass over it", "mask": "no mask", "expert": "no experts"}
