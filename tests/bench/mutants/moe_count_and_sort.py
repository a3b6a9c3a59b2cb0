"""Wrong and right kernels of `moe_count_and_sort`."""

import torch
from tests.bench.mutants.shared import Kernel, cut, shifted
from torch import Tensor

from inferometer.operators.catalogue.moe_count_and_sort import reference

Three = tuple[Tensor, ...]


def kernel(
    ids: Tensor, *, num_experts: int, backwards: bool = False, by_choice: bool = False, falling: bool = False
) -> Three:
    """Buckets of slots, expert by expert."""
    flat = (ids.T if by_choice else ids).flatten()
    buckets = [(flat == expert).nonzero().flatten() for expert in range(num_experts)]
    buckets = buckets[::-1] if falling else buckets
    count = torch.tensor([len(bucket) for bucket in buckets])
    first = torch.tensor([0, *count.cumsum(0).tolist()])
    order = torch.cat([bucket.flip(0) if backwards else bucket for bucket in buckets])
    return tuple(x.to(torch.int32) for x in (order, count, first))


def by_keys(ids: Tensor, *, num_experts: int) -> Three:
    """Any sort, of expert and slot as one key."""
    flat = ids.flatten().long()
    order = (flat * len(flat) + torch.arange(len(flat))).sort().values % len(flat)
    count = torch.bincount(flat, minlength=num_experts)
    first = torch.cat([torch.zeros(1, dtype=torch.int64), count.cumsum(0)])
    return tuple(x.to(torch.int32) for x in (order, count, first))


def changed(**change: Kernel) -> Kernel:
    """The reference with one of its outputs changed: `order`, `count` or `first`, by `change(output, ids)`."""

    def wrong(ids: Tensor, *, num_experts: int) -> Three:
        found = dict(zip(("order", "count", "first"), reference(ids, num_experts=num_experts), strict=True))
        for name, of in change.items():
            found[name] = of(found[name], ids)
        return tuple(found.values())

    return wrong


WRONG: dict[str, Kernel] = {
    "swapped: slots of an expert backwards": lambda x, **s: kernel(x, backwards=True, **s),
    "swapped: slots numbered choice by choice": lambda x, **s: kernel(x, by_choice=True, **s),
    "swapped: experts falling": lambda x, **s: kernel(x, falling=True, **s),
    "swapped: order and its inverse": changed(order=lambda o, _: o.argsort().to(torch.int32)),
    "expert: ids off by one": lambda x, *, num_experts: reference((x + 1) % num_experts, num_experts=num_experts),
    "expert: counted in the next": changed(count=lambda c, _: shifted(c)),
    "missing part: last expert": lambda x, *, num_experts: kernel(
        x.clamp(max=num_experts - 2), num_experts=num_experts
    ),
    "missing part: last slot not counted": changed(
        count=lambda c, x: c - torch.nn.functional.one_hot(x[-1, -1].long(), len(c)).to(c.dtype)
    ),
    "missing part: last slot not sorted": changed(order=lambda o, _: cut(o)),
    "missing part: counts of first choices": changed(
        count=lambda c, x: torch.bincount(x[:, 0].long(), minlength=len(c)).to(c.dtype)
    ),
    "position: inclusive sum": changed(first=lambda f, _: torch.cat([f[1:], f[-1:]])),
    "position: slots from 1": changed(order=lambda o, _: o + 1),
    "position: tokens in place of slots": changed(order=lambda o, x: o // x.shape[1]),
    "scale: counts summed in blocks of 16": changed(
        first=lambda f, _: torch.cat([f[:1], (-(-f.diff() // 16) * 16).cumsum(0).to(f.dtype)])
    ),
    "dropped term: total": changed(first=lambda f, _: cut(f)),
    "padding: counts of an expert 0 for padding": changed(
        count=lambda c, x: c + (torch.arange(len(c)) == 0) * (-x.numel() % 16)
    ),
    "rounding: counts in bf16": changed(count=lambda c, x: (c.bfloat16() + 128 - 128).to(c.dtype)),
}

RIGHT: dict[str, Kernel] = {"by buckets": kernel, "by a sort of keys": by_keys}

INAPPLICABLE = dict.fromkeys(("overflow", "zeros", "NaN"), "integers") | {
    "identity": "no input has the shape of an output",
    "mask": "no mask",
}
