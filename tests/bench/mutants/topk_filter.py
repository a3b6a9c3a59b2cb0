"""Wrong and right kernels of `topk_filter`."""

import torch
from tests.bench.mutants.shared import Kernel, shifted
from torch import Tensor

from inferometer.operators.catalogue.topk_filter import reference

OUT = float("-inf")


def kept(x: Tensor, threshold: Tensor, *, equal: bool = True, fill: float = OUT) -> Tensor:
    return torch.where(x >= threshold if equal else x > threshold, x, fill)


def kth(x: Tensor, k: int) -> Tensor:
    """The k-th largest, by a sort."""
    return x.sort(-1, descending=True).values[:, min(k, x.shape[1]) - 1 : min(k, x.shape[1])]


def exactly_k(x: Tensor, *, top_k: int = 50) -> Tensor:
    """Of logits that equal the k-th, only as many as make k."""
    best = x.topk(min(top_k, x.shape[1])).indices
    return torch.full_like(x, OUT).scatter(1, best, x.gather(1, best))


def counted(x: Tensor, *, top_k: int = 50) -> Tensor:
    """What fewer than k are larger than stays: no sort."""
    larger = (x[:, None, :] > x[:, :, None]).sum(-1)
    return torch.where(larger < top_k, x, OUT)


WRONG: dict[str, Kernel] = {
    "overflow: logits in fp16": lambda x, **s: reference(x.half().float(), **s),
    "overflow: -10,000 for what is dropped": lambda x, **s: reference(x, **s).clamp(min=-1e4),
    "zeros: k of the equal ones": lambda x, *, top_k=50: x.masked_fill(
        torch.ones_like(x, dtype=torch.bool).scatter(1, x.topk(min(top_k, x.shape[1]), -1).indices, False), -torch.inf
    ),
    "zeros: what isn't above 0 dropped": lambda x, **s: reference(x, **s).where(
        x.amax(-1, keepdim=True) > 0, -torch.inf
    ),
    "NaN: rows less their maximum": lambda x, **s: (
        reference(x, **s) - x.amax(-1, keepdim=True) + x.amax(-1, keepdim=True)
    ),
    "mask: none": lambda x, **_: x.clone(),
    "mask: one too few": lambda x, *, top_k=50: kept(x, kth(x, max(1, top_k - 1))),
    "mask: one too many": lambda x, *, top_k=50: kept(x, kth(x, top_k + 1)),
    "mask: the k-th itself": lambda x, *, top_k=50: kept(x, kth(x, top_k), equal=False),
    "mask: exactly k where some are equal": exactly_k,
    "mask: the least": lambda x, *, top_k=50: torch.where(x <= -kth(-x, top_k), x, OUT),
    "mask: by magnitude": lambda x, *, top_k=50: torch.where(x.abs() >= kth(x.abs(), top_k), x, OUT),
    "mask: threshold of the whole batch": lambda x, *, top_k=50: kept(x, kth(x.view(1, -1), top_k * len(x))),
    "swapped: threshold of the next row": lambda x, *, top_k=50: kept(x, shifted(kth(x, top_k))),
    "swapped: what is kept and what is not": lambda x, *, top_k=50: torch.where(x >= kth(x, top_k), OUT, x),
    "position: columns off by one": lambda x, **s: shifted(reference(x, **s), dim=1),
    "missing part: last tile of 128 columns": lambda x, *, top_k=50: kept(
        x, kth(x[:, : max(1, (x.shape[1] - 1) // 128 * 128)], top_k)
    ),
    "missing part: last column": lambda x, *, top_k=50: torch.cat(
        [reference(x, top_k=top_k)[:, :-1], torch.full_like(x[:, :1], OUT)], 1
    ),
    "dropped term: k of the call": lambda x, **_: reference(x, top_k=50),
    "scale: logits of the kept softmaxed": lambda x, **s: torch.softmax(reference(x, **s), -1),
    "padding: 0 in place of -inf": lambda x, *, top_k=50: kept(x, kth(x, top_k), fill=0.0),
    "padding: least number in place of -inf": lambda x, *, top_k=50: kept(
        x, kth(x, top_k), fill=float(torch.finfo(x.dtype).min)
    ),
    "padding: row filled up with zeros": lambda x, *, top_k=50: kept(
        x, kth(torch.nn.functional.pad(x, (0, 64)), top_k)
    ),
    "rounding: values in fp8": lambda x, **s: reference(x, **s).to(torch.float8_e5m2).float(),
    "rounding: compared in fp8": lambda x, *, top_k=50: kept(x, kth(x, top_k).to(torch.float8_e5m2).float()),
}

RIGHT: dict[str, Kernel] = {
    "by a sort": lambda x, *, top_k=50: kept(x, kth(x, top_k)),
    "counted": counted,
    "searched by bisection": lambda x, *, top_k=50: kept(x, bisected(x, min(top_k, x.shape[1]))),
}


def bisected(x: Tensor, k: int) -> Tensor:
    """The largest of the row's values that at least k reach, by halving the sorted candidates."""
    values = x.sort(-1).values
    low, high = torch.zeros(len(x), 1, dtype=torch.long), torch.full((len(x), 1), x.shape[1] - 1)
    for _ in range(x.shape[1].bit_length()):
        middle = (low + high + 1) // 2
        enough = (x >= values.gather(1, middle)).sum(-1, keepdim=True) >= k
        low, high = torch.where(enough, middle, low), torch.where(enough, high, (middle - 1).clamp(min=0))
    return values.gather(1, low)


INAPPLICABLE = {"expert": "no experts"}
