"""Wrong and right kernels of `l2_norm`."""

from tests.bench.mutants.shared import Kernel, cut, fp8, in_bf16, shifted, summed
from torch import Tensor

from inferometer.operators.catalogue.l2_norm import reference


def kernel(x: Tensor, *, eps: float = 1e-6, of: Kernel = lambda y: y, squares: Kernel | None = None) -> Tensor:
    """`of(x)` is what the length is taken of, `squares(x)` the sum of its squares."""
    y = of(x.float())
    total = summed(y.square(), 48) if squares is None else squares(y)
    return (x.float() * (total + eps).rsqrt()).to(x.dtype)


WRONG: dict[str, Kernel] = {
    "dropped term: eps": lambda x, **_: reference(x, eps=0.0),
    "dropped term: eps to the mean": lambda x, *, eps=1e-6: reference(x, eps=eps * x.shape[1]),
    "dropped term: eps outside the root": lambda x, *, eps=1e-6: (
        x.float() / (x.float().norm(dim=-1, keepdim=True) + eps)
    ).to(x.dtype),
    "scale: mean in place of sum": lambda x, **s: kernel(x, squares=lambda y: y.square().mean(-1, True), **s),
    "scale: unnormalised": lambda x, **_: x.clone(),
    "scale: root forgotten": lambda x, *, eps=1e-6: (x.float() / (x.float().square().sum(-1, True) + eps)).to(x.dtype),
    "scale: sum of magnitudes": lambda x, **s: kernel(x, squares=lambda y: y.abs().sum(-1, True).square(), **s),
    "scale: largest magnitude": lambda x, **s: kernel(x, squares=lambda y: y.abs().amax(-1, True).square(), **s),
    "missing part: last eighth not summed": lambda x, **s: kernel(x, of=lambda y: cut(y, y.shape[1] // 8), **s),
    "position: length of the next row": lambda x, **s: kernel(x, of=shifted, **s),
    "swapped: length of columns": lambda x, **s: kernel(x, squares=lambda y: y.square().sum(0, True), **s),
    "padding: row filled up with ones": lambda x, **s: kernel(
        x, squares=lambda y: y.square().sum(-1, True) + (1 << y.shape[1].bit_length()) - y.shape[1], **s
    ),
    "rounding: squares summed in bf16": lambda x, **s: kernel(x, squares=lambda y: in_bf16(y.square()), **s),
    "rounding: input in fp8": lambda x, **s: reference(fp8(x.float()).to(x.dtype), **s),
    "overflow: squares in fp16": lambda x, **s: kernel(
        x, squares=lambda y: y.square().half().float().sum(-1, True), **s
    ),
    "zeros: divided by the length": lambda x, **_: (x.float() / x.float().norm(dim=-1, keepdim=True)).to(x.dtype),
    "NaN: 0 for it in the sum": lambda x, **s: kernel(x, squares=lambda y: y.nan_to_num(0).square().sum(-1, True), **s),
    "NaN: 0 for it in the result": lambda x, **s: kernel(x, **s).nan_to_num(0.0),
}

RIGHT: dict[str, Kernel] = {
    "summed in blocks": kernel,
    "divided by the root": lambda x, *, eps=1e-6: (x.float() / (x.float().square().sum(-1, True) + eps).sqrt()).to(
        x.dtype
    ),
    "length rounded to bf16": lambda x, *, eps=1e-6: (
        x.float() * (x.float().square().sum(-1, True) + eps).rsqrt().bfloat16().float()
    ).to(x.dtype),
    "in float64": lambda x, *, eps=1e-6: (x.double() * (x.double().square().sum(-1, True) + eps).rsqrt()).to(x.dtype),
    "square root of the reciprocal": lambda x, *, eps=1e-6: (
        x.float() * (x.float().square().sum(-1, True) + eps).reciprocal().sqrt()
    ).to(x.dtype),
    "product in bf16": lambda x, *, eps=1e-6: x * (x.float().square().sum(-1, True) + eps).rsqrt().to(x.dtype),
}

ONLY_IN = {"length rounded to bf16": ("bf16",), "product in bf16": ("bf16", "fp16")}
INAPPLICABLE = {"mask": "no mask", "expert": "no experts"}
