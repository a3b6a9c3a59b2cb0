"""Wrong and right kernels of `fused_qk_rmsnorm`."""

from typing import Any

import torch
from tests.bench.mutants import rms_norm
from tests.bench.mutants.shared import Kernel, cut, fp8, halves, shifted
from torch import Tensor

from inferometer.operators.catalogue.fused_qk_rmsnorm import reference


def kernel(
    qkv: Tensor, q_weight: Tensor, k_weight: Tensor, *, head_num: int, kv_head_num: int, eps: float = 1e-6,
    norm: Kernel = rms_norm.kernel, parts: str = "qk", whole: bool = False,
) -> Tensor:  # fmt: skip
    """A kernel of `rms_norm` over the heads of `parts`; `whole`: over all heads of a token together."""
    T = qkv.shape[0]
    q, k, v = (
        part.clone() for part in qkv.view(T, -1, q_weight.shape[0]).split([head_num, kv_head_num, kv_head_num], 1)
    )
    for name, part, weight in (("q", q, q_weight), ("k", k, k_weight), ("v", v, k_weight)):
        if name in parts:
            rows = part.reshape(T, -1) if whole else part.reshape(-1, part.shape[-1])
            wide = weight.repeat(part.shape[1]) if whole else weight
            part.copy_(norm(rows, wide, eps=eps).view(part.shape))
    return torch.cat([q, k, v], 1).flatten(1)


def with_norm(name: str) -> Kernel:
    def wrong(qkv: Tensor, q_weight: Tensor, k_weight: Tensor, **settings: Any) -> Tensor:
        return kernel(qkv, q_weight, k_weight, norm=rms_norm.WRONG[name], **settings)

    return wrong


def heads_rolled(qkv: Tensor, q_weight: Tensor, k_weight: Tensor, **settings: Any) -> Tensor:
    out = reference(qkv, q_weight, k_weight, **settings)
    return out.view(out.shape[0], -1, q_weight.shape[0]).roll(1, 1).flatten(1)


NORM: tuple[str, ...] = ("dropped term: eps", "dropped term: eps outside the root", "scale: sum in place of mean")
NORM += ("missing part: last eighth not summed", "padding: divided by the padded width")
NORM += ("overflow: squares in fp16", "zeros: no eps for rows of zeros", "NaN: 0 for it in the sum")
NORM += ("position: root of the next row", "position: weight off by one")

WRONG: dict[str, Kernel] = {
    **{name: with_norm(name) for name in NORM},
    "dropped term: weight of queries": lambda x, q, k, **s: reference(x, torch.ones_like(q), k, **s),
    "dropped term: weight of keys": lambda x, q, k, **s: reference(x, q, torch.ones_like(k), **s),
    "missing part: keys not normed": lambda x, q, k, **s: kernel(x, q, k, parts="q", **s),
    "missing part: last columns of the weight": lambda x, q, k, **s: reference(x, q, cut(k, len(k) // 8), **s),
    "scale: values normed too": lambda x, q, k, **s: kernel(x, q, k, parts="qkv", **s),
    "scale: over all heads of a token": lambda x, q, k, **s: kernel(x, q, k, whole=True, **s),
    "swapped: weights of queries and keys": lambda x, q, k, **s: reference(x, k, q, **s),
    "swapped: heads off by one before the norm": lambda x, q, k, *, head_num, kv_head_num, **s: reference(
        x.view(len(x), -1, len(q)).roll(1, 1).flatten(1), q, k, head_num=head_num, kv_head_num=kv_head_num, **s
    ),
    "swapped: halves of the weight": lambda x, q, k, **s: reference(x, halves(q), halves(k), **s),
    "position: heads off by one": heads_rolled,
    "position: tokens off by one": lambda x, q, k, **s: reference(shifted(x), q, k, **s),
    "rounding: input in fp8": lambda x, q, k, **s: reference(fp8(x.float()).to(x.dtype), q, k, **s),
    "rounding: squares summed in bf16": with_norm("rounding: squares summed in bf16"),
}

RIGHT: dict[str, Kernel] = {
    "summed in blocks, rounded once": kernel,
    "divided by the root": lambda x, q, k, **s: kernel(x, q, k, norm=rms_norm.divided, **s),
    "square root of the reciprocal": lambda x, q, k, **s: kernel(x, q, k, norm=rms_norm.sqrt_of_reciprocal, **s),
    "in float64": lambda x, q, k, **s: reference(x.double(), q.double(), k.double(), **s).to(x.dtype),
    "rounded before the weight": lambda x, q, k, **s: kernel(x, q, k, norm=rms_norm.rounded_before_weight, **s),
}

INAPPLICABLE = {"mask": "no mask", "expert": "no experts"}
