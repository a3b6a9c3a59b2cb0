"""Wrong and right kernels of `fused_add_rms_norm`."""

import torch
from tests.bench.mutants import rms_norm
from tests.bench.mutants.shared import Kernel, cut, fp8, halves, shifted
from torch import Tensor

from inferometer.operators.catalogue.fused_add_rms_norm import reference

Two = tuple[Tensor, Tensor]


def norm_of_unrounded(x: Tensor, residual: Tensor, weight: Tensor, *, eps: float = 1e-6) -> Two:
    added = x.float() + residual.float()
    return rms_norm.kernel(added, weight, eps=eps).to(x.dtype), added.to(x.dtype)


def normed(x: Tensor, residual: Tensor, weight: Tensor, *, of: str, eps: float = 1e-6) -> Two:
    added = x + residual
    return rms_norm.kernel({"x": x, "residual": residual}[of], weight, eps=eps), added


def summed_otherwise(kernel: Kernel) -> Kernel:
    """The sum, and a kernel of `rms_norm` over it."""

    def both(x: Tensor, residual: Tensor, weight: Tensor, *, eps: float = 1e-6) -> Two:
        return kernel(x + residual, weight, eps=eps), x + residual

    return both


NORM: tuple[str, ...] = ("dropped term: eps outside the root", "scale: sum in place of mean", "scale: unnormalised")
NORM += ("missing part: last eighth not summed", "padding: divided by the padded width")
NORM += ("overflow: squares in fp16", "zeros: no eps for rows of zeros", "NaN: 0 for it in the sum")
NORM += ("overflow: mean of squares up to 1e9", "NaN: 0 for it in the result", "zeros: eps as the least mean")
NORM += ("position: root of the next row", "rounding: squares summed in bf16")

WRONG: dict[str, Kernel] = {
    **{name: summed_otherwise(rms_norm.WRONG[name]) for name in NORM},
    "dropped term: residual": lambda x, r, w, **s: reference(x, torch.zeros_like(r), w, **s),
    "dropped term: x": lambda x, r, w, **s: reference(torch.zeros_like(x), r, w, **s),
    "dropped term: eps": lambda x, r, w, **_: reference(x, r, w, eps=0.0),
    "dropped term: weight": lambda x, r, w, **s: reference(x, r, torch.ones_like(w), **s),
    "dropped term: residual not in what is normed": lambda x, r, w, **s: normed(x, r, w, of="x", **s),
    "dropped term: x not in what is normed": lambda x, r, w, **s: normed(x, r, w, of="residual", **s),
    "dropped term: residual not updated": lambda x, r, w, **s: (reference(x, r, w, **s)[0], r),
    "missing part: last columns not added": lambda x, r, w, **s: reference(cut(x, x.shape[1] // 8), r, w, **s),
    "swapped: outputs": lambda x, r, w, **s: reference(x, r, w, **s)[::-1],
    "swapped: halves of the weight": lambda x, r, w, **s: reference(x, r, halves(w), **s),
    "position: residual of the next row": lambda x, r, w, **s: reference(x, shifted(r), w, **s),
    "position: weight off by one": lambda x, r, w, **s: reference(x, r, shifted(w), **s),
    "rounding: sum in fp8": lambda x, r, w, **s: reference(
        torch.zeros_like(x), fp8((x + r).float()).to(x.dtype), w, **s
    ),
}

RIGHT: dict[str, Kernel] = {
    **{name: summed_otherwise(kernel) for name, kernel in rms_norm.RIGHT.items()},
    "norm of the sum before it is rounded": norm_of_unrounded,
}

INAPPLICABLE = {"mask": "no mask", "expert": "no experts"}
