"""Wrong and right kernels of `layer_norm`."""

import torch
from tests.bench.mutants.shared import Kernel, cut, fp8, halves, in_bf16, shifted, summed
from torch import Tensor

from inferometer.operators.catalogue.layer_norm import reference


def same(x: Tensor) -> Tensor:
    return x


def kernel(
    x: Tensor, weight: Tensor, bias: Tensor, *, eps: float = 1e-5, of: Kernel = same, less: int = 0, width: int = 0,
    add: Kernel = summed,
) -> Tensor:  # fmt: skip
    """Statistics of `of(x)`, over `width` columns, the variance over `less` fewer; `add` sums a row."""
    x32, count = x.float(), width or x.shape[-1]
    seen = of(x32)
    mean = add(seen) / count
    variance = add((seen - mean).square()) / max(1, count - less)
    return ((x32 - mean) * (variance + eps).rsqrt() * weight.float() + bias.float()).to(x.dtype)


def welford(x: Tensor, weight: Tensor, bias: Tensor, *, eps: float = 1e-5) -> Tensor:
    """Mean and squares about it, a column after another."""
    x32 = x.float()
    mean, squares = torch.zeros_like(x32[..., :1]), torch.zeros_like(x32[..., :1])
    for column in range(x.shape[-1]):
        apart = x32[..., column : column + 1] - mean
        mean = mean + apart / (column + 1)
        squares = squares + apart * (x32[..., column : column + 1] - mean)
    return ((x32 - mean) * (squares / x.shape[-1] + eps).rsqrt() * weight.float() + bias.float()).to(x.dtype)


def by_reciprocal(x: Tensor, weight: Tensor, bias: Tensor, *, eps: float = 1e-5) -> Tensor:
    x32, share = x.float(), torch.tensor(1.0 / x.shape[-1])
    mean = x32.sum(-1, keepdim=True) * share
    variance = (x32 - mean).square().sum(-1, keepdim=True) * share
    return ((x32 - mean) / (variance + eps).sqrt() * weight.float() + bias.float()).to(x.dtype)


def mean_square(x: Tensor, weight: Tensor, bias: Tensor, *, eps: float = 1e-5, least: float = 0.0) -> Tensor:
    """The variance from the mean of squares less the square of the mean."""
    x32 = x.float()
    mean, square = x32.mean(-1, keepdim=True), x32.square().mean(-1, keepdim=True)
    variance = square - mean.square()
    return ((x32 - mean) * (variance.clamp(min=least) + eps).rsqrt() * weight.float() + bias.float()).to(x.dtype)


WRONG: dict[str, Kernel] = {
    "dropped term: bias": lambda x, w, b, **s: reference(x, w, torch.zeros_like(b), **s),
    "dropped term: weight": lambda x, w, b, **s: reference(x, torch.ones_like(w), b, **s),
    "dropped term: eps": lambda x, w, b, **_: reference(x, w, b, eps=0.0),
    "dropped term: mean not removed": lambda x, w, b, *, eps=1e-5: (
        x.float() * (x.float().var(-1, False, keepdim=True) + eps).rsqrt() * w.float() + b.float()
    ).to(x.dtype),
    "dropped term: mean of squares as variance": lambda x, w, b, *, eps=1e-5: (
        (x.float() - x.float().mean(-1, True)) * (x.float().square().mean(-1, True) + eps).rsqrt() * w.float()
        + b.float()
    ).to(x.dtype),
    "scale: variance over a column less": lambda x, w, b, **s: kernel(x, w, b, less=1, **s),
    "scale: variance not divided": lambda x, w, b, **s: kernel(x, w, b, less=x.shape[-1], **s),
    "missing part: last eighth not in the statistics": lambda x, w, b, **s: kernel(
        x, w, b, of=lambda y: cut(y, max(1, y.shape[-1] // 8)), **s
    ),
    "padding: divided by the padded width": lambda x, w, b, **s: kernel(
        x, w, b, width=1 << x.shape[-1].bit_length(), **s
    ),
    "padding: zeros in the variance": lambda x, w, b, **s: kernel(
        x, w, b, of=lambda y: torch.nn.functional.pad(y, (0, 8)), **s
    ),
    "position: statistics of the next row": lambda x, w, b, **s: kernel(x, w, b, of=shifted, **s),
    "position: bias off by one": lambda x, w, b, **s: reference(x, w, shifted(b), **s),
    "swapped: weight and bias": lambda x, w, b, **s: reference(x, b, w, **s),
    "swapped: halves of the bias": lambda x, w, b, **s: reference(x, w, halves(b), **s),
    "rounding: input in fp8": lambda x, w, b, **s: reference(fp8(x.float()).to(x.dtype), w, b, **s),
    "rounding: variance from the squares": mean_square,
    "rounding: variance from the squares, not kept from below 0": lambda x, w, b, **s: mean_square(
        x, w, b, least=-1e30, **s
    ),
    "overflow: squares in fp16": lambda x, w, b, **s: kernel(x, w, b, add=lambda y: summed(y.half().float()), **s),
    "zeros: no eps for rows of zeros": lambda x, w, b, *, eps=1e-5: (
        (x.float() - x.float().mean(-1, True)) / x.float().var(-1, False, keepdim=True).sqrt() * w.float() + b.float()
    ).to(x.dtype),
    "NaN: 0 for it in the statistics": lambda x, w, b, **s: kernel(x, w, b, of=lambda y: y.nan_to_num(0), **s),
    "NaN: the bias for it": lambda x, w, b, **s: torch.where((y := kernel(x, w, b, **s)).isnan(), b, y),
    "rounding: sums in bf16": lambda x, w, b, **s: kernel(x, w, b, add=in_bf16, **s),
}

RIGHT: dict[str, Kernel] = {
    "summed in blocks": kernel,
    "by Welford": welford,
    "multiplied by 1 / H": by_reciprocal,
    "in float64": lambda x, w, b, **s: reference(x.double(), w.double(), b.double(), **s).to(x.dtype),
    "rounded before weight and bias": lambda x, w, b, **s: (
        reference(x, torch.ones_like(w), torch.zeros_like(b), **s).float() * w.float() + b.float()
    ).to(x.dtype),
    "torch's own": lambda x, w, b, *, eps=1e-5: torch.nn.functional.layer_norm(x, x.shape[-1:], w, b, eps),
}

HARMLESS = {"zeros: numbers below 1e-20 of x": "next to eps nothing is left of them, and the bias covers the rest"}
INAPPLICABLE = {"mask": "no mask", "expert": "no experts"}
