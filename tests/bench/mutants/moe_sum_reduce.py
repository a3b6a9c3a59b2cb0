"""Wrong and right kernels of `moe_sum_reduce`."""

import torch
from tests.bench.mutants.shared import Kernel, cut, fp8, halves, in_bf16, shifted
from torch import Tensor

from inferometer.operators.catalogue.moe_sum_reduce import reference


def kernel(x: Tensor, *, routed_scaling_factor: float = 1.0, add: Kernel | None = None) -> Tensor:
    """`add(x)` [T, H] of [T, k, H]; from the last expert, scaled before the sum."""
    if add is not None:
        return (add(x.float()) * routed_scaling_factor).to(x.dtype)
    total = torch.zeros_like(x[:, 0], dtype=torch.float32)
    for slot in reversed(range(x.shape[1])):
        total += x[:, slot].float() * routed_scaling_factor
    return total.to(x.dtype)


WRONG: dict[str, Kernel] = {
    "overflow: sum in fp16": lambda x, **s: kernel(x, add=lambda y: y.half().sum(1).float(), **s),
    "zeros: sum of what is above 1e-10": lambda x, **s: kernel(
        x, add=lambda y: y.masked_fill(y.abs() < 1e-10, 0).sum(1), **s
    ),
    "NaN: 0 for it": lambda x, **s: kernel(x, add=lambda y: y.nan_to_num(0).sum(1), **s),
    "NaN: in all of its row": lambda x, **s: kernel(x, add=lambda y: y.sum(1) + 0 * y.sum((1, 2))[:, None], **s),
    "scale: factor dropped": lambda x, **_: reference(x, routed_scaling_factor=1.0),
    "scale: factor squared": lambda x, *, routed_scaling_factor: reference(
        x, routed_scaling_factor=routed_scaling_factor**2
    ),
    "scale: mean in place of sum": lambda x, **s: kernel(x, add=lambda y: y.mean(1), **s),
    "scale: largest in place of sum": lambda x, **s: kernel(x, add=lambda y: y.amax(1), **s),
    "expert: first one for all": lambda x, **s: reference(x[:, :1].expand_as(x), **s),
    "expert: only the first": lambda x, **s: reference(x[:, :1], **s),
    "expert: of the next token": lambda x, **s: reference(torch.cat([x[:, :1], shifted(x)[:, 1:]], 1), **s),
    "missing part: last expert": lambda x, **s: reference(cut(x, 1, 1), **s),
    "missing part: first expert": lambda x, **s: reference(x[:, 1:], **s),
    "missing part: last columns": lambda x, **s: reference(cut(x, x.shape[2] % 16 or 16), **s),
    "dropped term: first expert twice": lambda x, **s: reference(torch.cat([x, x[:, :1]], 1), **s),
    "position: tokens off by one": lambda x, **s: reference(shifted(x), **s),
    "position: columns off by one": lambda x, **s: reference(shifted(x, dim=2), **s),
    "swapped: tokens and experts": lambda x, **s: reference(x.transpose(0, 1).reshape(x.shape), **s),
    "swapped: halves of a row": lambda x, **s: reference(halves(x), **s),
    "padding: eight experts, the rest the last one's": lambda x, **s: reference(
        torch.cat([x, x[:, -1:].expand(-1, -x.shape[1] % 8, -1)], 1), **s
    ),
    "rounding: input in fp8": lambda x, **s: reference(fp8(x.float()).to(x.dtype), **s),
}

RIGHT: dict[str, Kernel] = {
    "from the last expert, scaled first": kernel,
    "sums in bf16": lambda x, **s: kernel(x, add=lambda y: in_bf16(y.mT)[..., 0], **s),
    "in float64": lambda x, **s: kernel(x, add=lambda y: y.double().sum(1), **s),
    "scaled first": lambda x, *, routed_scaling_factor=1.0: (x.float() * routed_scaling_factor).sum(1).to(x.dtype),
    "sums of pairs": lambda x, **s: kernel(x, add=lambda y: y[:, ::2].sum(1) + y[:, 1::2].sum(1), **s),
}

ONLY_IN = {"sums in bf16": ("bf16",)}
INAPPLICABLE = {"identity": "no input has the output's shape", "mask": "no mask"}
