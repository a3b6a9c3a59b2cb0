"""Wrong and right kernels of `rms_norm`."""

from typing import Any

import torch
from tests.bench.mutants.shared import Kernel, cut, fp8, halves, in_bf16, shifted, summed
from torch import Tensor

from inferometer.operators.catalogue.rms_norm import reference


def kernel(x: Tensor, weight: Tensor, *, eps: float = 1e-6, squares: Any = None, count: int | None = None) -> Tensor:
    """`squares(x)` in place of the sum of squares, over `count` columns."""
    x32 = x.float()
    total = summed(x32.square()) if squares is None else squares(x32)
    return (x32 * (total / (count or x.shape[1]) + eps).rsqrt() * weight.float()).to(x.dtype)


def root_plus_eps(x: Tensor, weight: Tensor, *, eps: float = 1e-6) -> Tensor:
    x32 = x.float()
    return (x32 / (x32.square().mean(-1, keepdim=True).sqrt() + eps) * weight.float()).to(x.dtype)


def divided(x: Tensor, weight: Tensor, *, eps: float = 1e-6) -> Tensor:
    x32 = x.float()
    return (x32 / (x32.square().mean(-1, keepdim=True) + eps).sqrt() * weight.float()).to(x.dtype)


def rounded_before_weight(x: Tensor, weight: Tensor, *, eps: float = 1e-6) -> Tensor:
    return reference(x, torch.ones_like(weight), eps=eps) * weight


def with_mean_removed(x: Tensor, weight: Tensor, *, eps: float = 1e-6) -> Tensor:
    centered = x.float() - x.float().mean(-1, keepdim=True)
    return reference(centered.to(x.dtype), weight, eps=eps)


def root_kept(x: Tensor, weight: Tensor, *, keep: Kernel, eps: float = 1e-6) -> Tensor:
    """Squares as `keep` has them."""
    return kernel(x, weight, eps=eps, squares=lambda y: keep(y.square()).sum(-1, keepdim=True))


def no_length_for_zeros(x: Tensor, weight: Tensor, *, eps: float = 1e-6) -> Tensor:
    """eps only where it matters, as the author thought: not for rows of zeros."""
    mean = x.float().square().mean(-1, keepdim=True)
    return (x.float() / torch.where(mean > 0, mean + eps, mean).sqrt() * weight.float()).to(x.dtype)


def sqrt_of_reciprocal(x: Tensor, weight: Tensor, *, eps: float = 1e-6) -> Tensor:
    mean = x.float().square().mean(-1, keepdim=True)
    return (x.float() * (mean + eps).reciprocal().sqrt() * weight.float()).to(x.dtype)


WRONG: dict[str, Kernel] = {
    "dropped term: eps": lambda x, w, **_: reference(x, w, eps=0.0),
    "dropped term: weight": lambda x, w, **s: reference(x, torch.ones_like(w), **s),
    "dropped term: eps outside the root": root_plus_eps,
    "scale: sum in place of mean": lambda x, w, **s: kernel(x, w, count=1, **s),
    "scale: root forgotten": lambda x, w, **s: kernel(x, w, squares=lambda y: y.square().sum(-1, True).square(), **s),
    "scale: mean removed, as layer norm does": with_mean_removed,
    "scale: unnormalised": lambda x, w, **_: x * w,
    "missing part: last eighth not summed": lambda x, w, **s: kernel(
        x, w, squares=lambda y: cut(y, y.shape[1] // 8).square().sum(-1, True), **s
    ),
    "missing part: last eighth of the weight": lambda x, w, **s: reference(x, cut(w, len(w) // 8), **s),
    "padding: divided by the padded width": lambda x, w, **s: kernel(x, w, count=1 << x.shape[1].bit_length(), **s),
    "position: weight off by one": lambda x, w, **s: reference(x, shifted(w), **s),
    "position: root of the next row": lambda x, w, **s: kernel(
        x, w, squares=lambda y: shifted(y).square().sum(-1, True), **s
    ),
    "swapped: halves of the weight": lambda x, w, **s: reference(x, halves(w), **s),
    "rounding: squares summed in bf16": lambda x, w, **s: kernel(x, w, squares=lambda y: in_bf16(y.square()), **s),
    "rounding: input in fp8": lambda x, w, **s: reference(fp8(x.float()).to(x.dtype), w, **s),
    "overflow: squares in fp16": lambda x, w, **s: root_kept(x, w, keep=lambda y: y.half().float(), **s),
    "overflow: mean of squares up to 1e9": lambda x, w, **s: kernel(
        x, w, squares=lambda y: y.square().sum(-1, True).clamp(max=1e9 * y.shape[1]), **s
    ),
    "zeros: no eps for rows of zeros": no_length_for_zeros,
    "zeros: eps as the least mean": lambda x, w, *, eps=1e-6: (
        x.float() * x.float().square().mean(-1, True).clamp(min=eps / 64).rsqrt() * w.float()
    ).to(x.dtype),
    "NaN: 0 for it in the sum": lambda x, w, **s: kernel(
        x, w, squares=lambda y: y.nan_to_num(0).square().sum(-1, True), **s
    ),
    "NaN: 0 for it in the result": lambda x, w, **s: kernel(x, w, **s).nan_to_num(0.0),
}

RIGHT: dict[str, Kernel] = {
    "summed in blocks": kernel,
    "divided by the root": divided,
    "rounded before the weight": rounded_before_weight,
    "square root of the reciprocal": sqrt_of_reciprocal,
    "in float64": lambda x, w, **s: reference(x.double(), w.double(), **s).to(x.dtype),
    "squares summed from the smallest": lambda x, w, **s: kernel(
        x, w, squares=lambda y: y.square().sort(-1).values.sum(-1, keepdim=True), **s
    ),
    "torch's own": lambda x, w, *, eps=1e-6: torch.rms_norm(x, x.shape[-1:], w, eps),
    "weight times the root first": lambda x, w, *, eps=1e-6: (
        x.float() * (w.float() * (x.float().square().mean(-1, True) + eps).rsqrt())
    ).to(x.dtype),
}

INAPPLICABLE = {"mask": "no mask", "expert": "no experts"}
