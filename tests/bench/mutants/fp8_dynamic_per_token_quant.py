"""Wrong and right kernels of `fp8_dynamic_per_token_quant`."""

import torch
from tests.bench.mutants.shared import Kernel, bf16, cut, halves, shifted, then
from torch import Tensor

from inferometer.operators.catalogue.draws import largest_of, torch_dtype
from inferometer.operators.catalogue.fp8_dynamic_per_token_quant import LEAST, reference

Two = tuple[Tensor, ...]


def kernel(
    x: Tensor, *, fp8_dtype: str = "fp8_e4m3fnuz", fp8_max: float | None = None, largest: Kernel | None = None,
    keep: Kernel = Tensor.float, divide: bool = True, most: float | None = None, least: float = LEAST,
    rounded: Kernel = Tensor.float, keep_scale: Kernel = Tensor.float,
) -> Two:  # fmt: skip
    """Divided by the scale, or multiplied by its reciprocal as `keep` rounds it.

    `largest(magnitudes)` [T, 1]; `rounded` is applied before the cast, `keep_scale` to the scale.
    """
    most = most or fp8_max or largest_of(fp8_dtype)
    x32 = x.float()
    found = x32.abs().amax(-1, keepdim=True) if largest is None else largest(x32)
    scale = keep_scale(found.clamp(min=least) / most)
    value = x32 / scale if divide else x32 * keep(most / found.clamp(min=least))
    top = largest_of(fp8_dtype)
    return rounded(value).clamp(-top, top).to(torch_dtype(fp8_dtype)), scale[:, 0]


def towards_zero(value: Tensor) -> Tensor:
    """Fractions cut to three bits, not rounded."""
    return (value.view(torch.int32) & (-1 << 20)).view(torch.float32)


def other_type(x: Tensor, *, fp8_dtype: str = "fp8_e4m3fnuz", fp8_max: float | None = None) -> Two:
    """The bits of the other e4m3, with its scale."""
    other = "fp8_e4m3fn" if fp8_dtype == "fp8_e4m3fnuz" else "fp8_e4m3fnuz"
    q, scale = reference(x, fp8_dtype=other, fp8_max=fp8_max)
    return q.view(torch_dtype(fp8_dtype)), scale


WRONG: dict[str, Kernel] = {
    "overflow: x in fp16": lambda x, **s: kernel(x.half(), **s),
    "overflow: scale of at most 1e6": lambda x, **s: kernel(x, keep_scale=lambda y: y.clamp(max=1e6), **s),
    "zeros: divided by a scale of 0": lambda x, **s: kernel(x, least=0.0, **s),
    "scale: 1": lambda x, *, fp8_dtype="fp8_e4m3fnuz", **_: (
        x.float().clamp(-240, 240).to(torch_dtype(fp8_dtype)),
        torch.ones(len(x)),
    ),
    "scale: one for all rows": lambda x, **s: kernel(x, largest=lambda y: y.abs().amax().expand(len(y), 1), **s),
    "scale: its reciprocal": lambda x, **s: then(reference(x, **s), lambda q, scale: (q, 1 / scale)),
    "scale: to the largest value of the other type": lambda x, **s: kernel(
        x, most=240.0 if s.get("fp8_dtype") == "fp8_e4m3fn" else 448.0, **s
    ),
    "scale: to the type's own largest value": lambda x, **s: reference(x, **{**s, "fp8_max": None}),
    "scale: to 127, as int8": lambda x, **s: kernel(x, most=127.0, **s),
    "scale: bits of the other type": other_type,
    "dropped term: magnitude, largest signed value": lambda x, **s: kernel(
        x, largest=lambda y: y.amax(-1, keepdim=True), **s
    ),
    "dropped term: least magnitude": lambda x, **s: kernel(x, least=0.0, **s),
    "dropped term: least magnitude of 0.01": lambda x, **s: kernel(x, least=0.01, **s),
    "missing part: last eighth not in the maximum": lambda x, **s: kernel(
        x, largest=lambda y: cut(y, y.shape[1] // 8).abs().amax(-1, keepdim=True), **s
    ),
    "missing part: first tile alone in the maximum": lambda x, **s: kernel(
        x, largest=lambda y: y[:, :64].abs().amax(-1, keepdim=True), **s
    ),
    "position: scale of the next row": lambda x, **s: kernel(
        x, largest=lambda y: shifted(y).abs().amax(-1, keepdim=True), **s
    ),
    "swapped: halves of the row": lambda x, **s: reference(halves(x), **s),
    "padding: row filled up with ones": lambda x, **s: kernel(
        x, largest=lambda y: y.abs().amax(-1, keepdim=True).clamp(min=1.0), **s
    ),
    "rounding: towards zero": lambda x, **s: kernel(x, rounded=towards_zero, **s),
    "rounding: reciprocal in bf16": lambda x, **s: kernel(x, divide=False, keep=bf16, **s),
    "rounding: scale in bf16": lambda x, **s: kernel(x, keep_scale=bf16, **s),
    "rounding: scale to a power of two": lambda x, **s: kernel(x, keep_scale=lambda y: y.log2().ceil().exp2(), **s),
}

RIGHT: dict[str, Kernel] = {
    "divided": kernel,
    "reciprocal of the scale from the maximum": lambda x, **s: kernel(x, divide=False, **s),
    "scale a unit of the last place off": lambda x, **s: kernel(
        x, keep_scale=lambda y: y * torch.tensor(1.0 + 2.0**-23), **s
    ),
}

INAPPLICABLE = {
    "NaN": "left out: maxima pass over it",
    "identity": "no input has the dtype of an output",
    "mask": "no mask",
    "expert": "no experts",
}
