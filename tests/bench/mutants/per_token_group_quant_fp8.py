"""Wrong and right kernels of `per_token_group_quant_fp8`: those of `fp8_dynamic_per_token_quant` on groups."""

from typing import Any

import torch
from tests.bench.mutants import fp8_dynamic_per_token_quant as by_token
from tests.bench.mutants.shared import Kernel, halves, shifted, then
from torch import Tensor

from inferometer.operators.catalogue.draws import largest_of
from inferometer.operators.catalogue.per_token_group_quant_fp8 import LEAST_SCALE, reference

Two = tuple[Tensor, ...]


def in_groups(kernel: Kernel = by_token.kernel, **fault: Any) -> Kernel:
    """A kernel of whole rows over groups as rows."""

    def run(x: Tensor, *, group_size: int, fp8_dtype: str = "fp8_e4m3fn", fp8_max: float | None = None) -> Two:
        most = fp8_max or (224.0 if fp8_dtype == "fp8_e4m3fnuz" else largest_of(fp8_dtype))
        least = {} if kernel is not by_token.kernel else {"least": LEAST_SCALE * most}
        q, scale = kernel(x.view(-1, group_size), fp8_dtype=fp8_dtype, fp8_max=most, **{**least, **fault})
        return q.view(x.shape), scale.view(len(x), -1)

    return run


SAME = (
    "scale: 1", "scale: one for all rows", "scale: its reciprocal", "scale: to 127, as int8",
    "scale: bits of the other type", "scale: to the largest value of the other type",
    "dropped term: magnitude, largest signed value", "missing part: last eighth not in the maximum",
    "rounding: towards zero", "rounding: reciprocal in bf16", "rounding: scale in bf16",
    "rounding: scale to a power of two",
)  # fmt: skip

WRONG: dict[str, Kernel] = {
    "overflow: x in fp16": in_groups(by_token.WRONG["overflow: x in fp16"]),
    "overflow: scale of at most 1e6": in_groups(by_token.WRONG["overflow: scale of at most 1e6"]),
    "zeros: divided by a scale of 0": in_groups(least=0.0),
    **{name: in_groups(by_token.WRONG[name]) for name in SAME},
    "scale: to the type's own largest value": lambda x, *, fp8_dtype="fp8_e4m3fn", fp8_max=None, **s: reference(
        x, fp8_dtype=fp8_dtype, fp8_max=largest_of(fp8_dtype), **s
    ),
    "scale: one for a row": lambda x, *, group_size, **s: then(
        reference(x, group_size=x.shape[1], **s), lambda q, scale: (q, scale.repeat(1, x.shape[1] // group_size))
    ),
    "scale: one for a row as if groups had half the columns": lambda x, *, group_size, **s: then(
        reference(x, group_size=1, **s), lambda q, scale: (q, scale[:, : x.shape[1] // group_size].contiguous())
    ),
    "dropped term: least scale": in_groups(least=0.0),
    "dropped term: least scale of 1e-5": in_groups(least=1e-5 * 448),
    "position: groups off by one": lambda x, **s: then(reference(x, **s), lambda q, scale: (q, shifted(scale, dim=1))),
    "position: scale of the next group": in_groups(largest=lambda y: shifted(y).abs().amax(-1, keepdim=True)),
    "position: groups a column late": lambda x, **s: then(
        reference(shifted(x, 1, 1), **s), lambda q, scale: (shifted(q, -1, 1), scale)
    ),
    "swapped: scales by columns": lambda x, **s: then(
        reference(x, **s), lambda q, scale: (q, scale.T.reshape(scale.shape))
    ),
    "swapped: halves of the row": lambda x, **s: reference(halves(x), **s),
    "padding: groups filled up with ones": in_groups(largest=lambda y: y.abs().amax(-1, keepdim=True).clamp(min=1.0)),
}

RIGHT: dict[str, Kernel] = {
    "divided": in_groups(),
    "reciprocal of the scale from the maximum": in_groups(divide=False),
    "scale a unit of the last place off": in_groups(keep_scale=lambda y: y * torch.tensor(1.0 + 2.0**-23)),
}

INAPPLICABLE = {
    "NaN": "left out: maxima pass over it",
    "identity": "no input has the dtype of an output",
    "mask": "no mask",
    "expert": "no experts",
}
