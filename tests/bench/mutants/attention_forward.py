"""Wrong and right kernels of `attention_forward`."""

from itertools import pairwise

import torch
from tests.bench.mutants import attention
from tests.bench.mutants.attention import Attention, causal, everything
from tests.bench.mutants.shared import Kernel, cut, fp8, halves, shifted
from torch import Tensor

from inferometer.operators.catalogue.attention_forward import reference


def kernel(attend: Attention) -> Kernel:
    """All heads of a sequence at once."""

    def run(q: Tensor, k: Tensor, v: Tensor, cu_q: Tensor, cu_k: Tensor) -> Tensor:
        out = torch.zeros_like(q)
        for (start, stop), (first, last) in zip(pairwise(cu_q.tolist()), pairwise(cu_k.tolist()), strict=True):
            found = attend(*(x.transpose(0, 1) for x in (q[start:stop], k[first:last], v[first:last])))
            out[start:stop] = found.transpose(0, 1).to(q.dtype)
        return out

    return run


def whole(cu: Tensor) -> Tensor:
    return cu[[0, -1]]


def early(cu: Tensor, by: int = 1) -> Tensor:
    """Inner boundaries a token early."""
    return torch.cat([cu[:1], (cu[1:-1] - by).clamp(min=1), cu[-1:]])


WRONG: dict[str, Kernel] = {
    **{name: kernel(attend) for name, attend in attention.WRONG.items()},
    "mask: causal": kernel(Attention(mask=causal)),
    "mask: all sequences as one": lambda q, k, v, a, b: reference(q, k, v, whole(a), whole(b)),
    "mask: a window of 16 keys": kernel(Attention(mask=lambda t, L: everything(t, L).triu(-16))),
    "position: boundaries a key early": lambda q, k, v, a, b: reference(q, k, v, a, early(b)),
    "position: values off by one": lambda q, k, v, a, b: reference(q, k, shifted(v), a, b),
    "swapped: keys and values": lambda q, k, v, a, b: reference(q, v, k, a, b),
    "swapped: queries and keys": lambda q, k, v, a, b: reference(k, q, v, b, a) if q.shape == k.shape else q,
    "swapped: heads of the keys": lambda q, k, v, a, b: reference(q, shifted(k, dim=1), v, a, b),
    "swapped: halves of the queries": lambda q, k, v, a, b: reference(halves(q), k, v, a, b),
    "missing part: last eighth of a head": lambda q, k, v, a, b: reference(cut(q, q.shape[2] // 8), k, v, a, b),
    "scale: of a padded head": lambda q, k, v, a, b: reference((q * (q.shape[2] / 128) ** 0.5), k, v, a, b),
    "rounding: queries in fp8": lambda q, k, v, a, b: reference(fp8(q.float()).to(q.dtype), k, v, a, b),
    "rounding: values in fp8": lambda q, k, v, a, b: reference(q, k, fp8(v.float()).to(v.dtype), a, b),
    "rounding: weights in fp8": kernel(Attention(fault="weights in fp8")),
}

RIGHT: dict[str, Kernel] = {
    **{name: kernel(attend) for name, attend in attention.RIGHT.items()},
    "scale in the queries, rounded to bf16": lambda q, k, v, a, b: kernel(Attention(power=0.0))(
        q * q.shape[2] ** -0.5, k, v, a, b
    ),
}

INAPPLICABLE = {"expert": "no experts"}
