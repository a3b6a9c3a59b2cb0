"""Wrong and right kernels of `block_scaled_mm`."""

import torch
from tests.bench.mutants.shared import Kernel, bf16, cut, halves, shifted, then
from torch import Tensor

from inferometer.operators.catalogue.block_scaled_mm import reference


def kernel(
    a: Tensor, b: Tensor, a_scales: Tensor, b_scales: Tensor, *, group_n: int = 128, group_k: int = 128,
    keep: Kernel = Tensor.float, width: int = 16, scale_first: bool = False, bits: int = 23,
    part: Kernel = Tensor.float,
) -> Tensor:  # fmt: skip
    """Groups from the last one, sums of `width` products, `part` rounds each, `keep` each group;
    `bits` of a partial sum are kept."""
    n, k = b.shape
    scale_Gn = b_scales.repeat_interleave(group_n, 0)[:n].T
    total = torch.zeros(a.shape[0], n)
    for group in reversed(range(k // group_k)):
        scale = a_scales[:, group, None] * scale_Gn[group]
        partial = torch.zeros_like(total)
        for start in range(group * group_k, (group + 1) * group_k, width):
            of = slice(start, min(start + width, (group + 1) * group_k))
            partial = truncated(partial + part(a[:, of].float() @ b[:, of].float().T), bits)
        total = keep(total + partial * scale)
    return total


def truncated(x: Tensor, bits: int) -> Tensor:
    """So many bits of the fraction kept, as Hopper's FP8 units do (arXiv:2412.19437, section 3.3.2)."""
    return (x.view(torch.int32) & (-1 << (23 - bits))).view(torch.float32)


def dequantised(
    a: Tensor, b: Tensor, a_scales: Tensor, b_scales: Tensor, *, group_n: int = 128, group_k: int = 128
) -> Tensor:
    """Operands scaled in float32, then one product."""
    n, k = b.shape
    a32 = a.float() * a_scales.repeat_interleave(group_k, 1)[:, :k]
    b32 = b.float() * b_scales.repeat_interleave(group_n, 0)[:n].repeat_interleave(group_k, 1)[:, :k]
    return a32 @ b32.T


def dequantised_to_bf16(
    a: Tensor, b: Tensor, a_scales: Tensor, b_scales: Tensor, *, group_n: int, group_k: int
) -> Tensor:
    n, k = b.shape
    a32 = a.float() * a_scales.repeat_interleave(group_k, 1)[:, :k]
    b32 = b.float() * b_scales.repeat_interleave(group_n, 0)[:n].repeat_interleave(group_k, 1)[:, :k]
    return bf16(a32) @ bf16(b32).T


WRONG: dict[str, Kernel] = {
    "overflow: sums in fp16": lambda a, b, s, t, **g: kernel(a, b, s, t, part=lambda y: y.half().float(), **g),
    "overflow: result in fp16": lambda *x, **g: reference(*x, **g).half().float(),
    "zeros: result divided by its row's largest and back": lambda *x, **g: then(
        (reference(*x, **g),), lambda y: y / y.abs().amax(-1, keepdim=True) * y.abs().amax(-1, keepdim=True)
    ),
    "NaN: as the largest number": lambda a, *x, **g: reference(a.float().nan_to_num(240.0).to(a.dtype), *x, **g),
    "NaN: in all rows": lambda a, *x, **g: reference(a, *x, **g) + 0 * a.float().sum(),
    "scale: none of a": lambda a, b, s, t, **g: reference(a, b, torch.ones_like(s), t, **g),
    "scale: none of b": lambda a, b, s, t, **g: reference(a, b, s, torch.ones_like(t), **g),
    "scale: of a's first group for all": lambda a, b, s, t, **g: reference(a, b, s[:, :1].expand_as(s), t, **g),
    "scale: one of b for all": lambda a, b, s, t, **g: reference(a, b, s, t[:1, :1].expand_as(t), **g),
    "scale: e4m3fn read as e4m3fnuz and the other way": lambda a, b, s, t, **g: reference(
        a.view(other(a.dtype)), b, s, t, **g
    ),
    "position: scales of a off by a group": lambda a, b, s, t, **g: reference(a, b, shifted(s, dim=1), t, **g),
    "position: scales of a of the next row": lambda a, b, s, t, **g: reference(a, b, shifted(s), t, **g),
    "position: scales of b of the next tile": lambda a, b, s, t, **g: reference(a, b, s, shifted(t), **g),
    "position: rows of b off by one": lambda a, b, s, t, **g: reference(a, shifted(b), s, t, **g),
    "swapped: halves of a row of a": lambda a, b, s, t, **g: reference(halves(a), b, s, t, **g),
    "swapped: groups of n and k in b's scales": lambda a, b, s, t, **g: reference(a, b, s, t.T.reshape(t.shape), **g),
    "missing part: last group of k": lambda a, b, s, t, *, group_k, **g: reference(
        cut(a, group_k), b, s, t, group_k=group_k, **g
    ),
    "missing part: last 16 of k": lambda a, b, s, t, **g: reference(cut(a, 16), b, s, t, **g),
    "missing part: last rows of b, as in a tile of 16": lambda a, b, s, t, **g: reference(
        a, cut(b, b.shape[0] % 16 or 16, 0), s, t, **g
    ),
    "rounding: sum of groups in bf16": lambda a, b, s, t, **g: kernel(a, b, s, t, keep=bf16, **g),
    "rounding: operands scaled and rounded to bf16": dequantised_to_bf16,
    "rounding: partial sums of 8 bits": lambda a, b, s, t, **g: kernel(a, b, s, t, bits=8, **g),
}


def other(dtype: torch.dtype) -> torch.dtype:
    return torch.float8_e4m3fnuz if dtype == torch.float8_e4m3fn else torch.float8_e4m3fn


RIGHT: dict[str, Kernel] = {
    "groups from the last one, in blocks": kernel,
    "partial sums of 13 bits, as Hopper's": lambda a, b, s, t, **g: kernel(a, b, s, t, bits=13, width=32, **g),
    "scaled before the product, in fp32": dequantised,
}

HARMLESS = {
    "overflow: b_scales in fp16": "about what matrix units do to the sums; those of a may be too large for fp16"
}
INAPPLICABLE = {
    "identity": "no input has the output's dtype",
    "mask": "no mask",
    "expert": "no experts",
    "dropped term": "products and scales only, which are under `scale` and `missing part`",
    "padding": "the last tile of n has no padded columns in the contract",
}
