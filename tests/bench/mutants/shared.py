"""What kernels in this folder are made of, and the kinds of fault that each operator's must have.

A module `NAME.py` here has, for the operator of that name:

- `WRONG`: kernels with one fault each, by `kind: what`, the kind one of KINDS;
- `RIGHT`: kernels that compute in another order or precision, as hardware does, and must be accepted;
- `INAPPLICABLE`: kinds of which it has none, with the reason. (`zero output`, `stale output` and `contract` are in
  `generic.py` for all, `identity` where an input has the shape and dtype of an output; `inputs.py` has faults of every
  input.)
- `HARMLESS`, where there are any: faults of `inputs.py` that make no right kernel wrong, with the reason.
- `ONLY_IN`, where there are any: the types in which right kernels are right; in others they aren't, since they round
  inside to one of fewer bits.

A kernel is called as the reference is: `kernel(*tensors, **settings)`, and changes no tensor.
"""

from collections.abc import Callable, Iterator
from math import inf
from typing import Any

import torch
from torch import Tensor

Kernel = Callable[..., Any]

KINDS = (
    "zero output",
    "identity",
    "stale output",
    "swapped",  # heads, halves, rows, axes, operands
    "mask",  # dropped or off by one
    "missing part",  # a tile, token, chunk, group that isn't computed or summed
    "scale",
    "expert",  # a wrong one
    "position",  # off by one, of another sequence
    "dropped term",  # bias, eps, residual, weight, gate
    "rounding",  # through a type of too few bits
    "padding",  # read as if it were data
    "contract",  # dtype, shape, strides, number of outputs
    "stale input",  # of another call
    "overflow",  # wrong only far up: squares or sums in fp16, exp of what isn't relative to a maximum
    "zeros",  # wrong only at 0, or next to it: divided by, flushed, given a length
    "NaN",  # swallowed, or spread to what it has no part in
    "no tokens",
)
"""Issue 11 and 1.7 of the operators' specification."""


def bf16(x: Tensor) -> Tensor:
    """float32 of the nearest bf16."""
    return x.bfloat16().float()


def as_in(like: Tensor) -> Kernel:
    """Rounds to the dtype of another tensor."""
    dtype = like.dtype
    return lambda x: x.to(dtype).float()


def fp8(x: Tensor) -> Tensor:
    """float32 with e4m3's three bits; scaled as a whole, so that nothing saturates."""
    scale = x.abs().amax().clamp(min=1e-12) / 448.0
    return (x / scale).to(torch.float8_e4m3fn).float() * scale


def halves(x: Tensor, dim: int = -1) -> Tensor:
    """Swapped."""
    return moved(x, lambda bits: bits.roll(bits.shape[dim] // 2, dim))


def shifted(x: Tensor, by: int = 1, dim: int = 0) -> Tensor:
    """Rolled along a dimension."""
    return moved(x, lambda bits: bits.roll(by, dim))


def cut(x: Tensor, count: int = 1, dim: int = -1) -> Tensor:
    """The last `count` along a dimension are zeros."""

    def zeroed(bits: Tensor) -> Tensor:
        bits = bits.clone()
        bits.narrow(dim, bits.shape[dim] - count, count).zero_()
        return bits

    return moved(x, zeroed)


def then(found: Any, change: Kernel) -> Any:
    """`change` of the outputs of a kernel."""
    return change(*found)


def moved(x: Tensor, move: Callable[[Tensor], Tensor]) -> Tensor:
    """For fp8, which can't be indexed on every device: its bits are moved."""
    return move(x.view(torch.uint8)).view(x.dtype) if x.dtype.itemsize == 1 and x.dtype.is_floating_point else move(x)


def blocks(size: int, width: int = 16) -> Iterator[slice]:
    """Slices of `width`, the last one first: another order of sums."""
    yield from reversed([slice(start, min(start + width, size)) for start in range(0, size, width)])


def summed(x: Tensor, width: int = 16) -> Tensor:
    """Sum of the last dimension, block by block from its end, kept as a dimension; float32."""
    total = x.new_zeros(*x.shape[:-1], 1)
    for part in blocks(x.shape[-1], width):
        total = total + x[..., part].sum(-1, keepdim=True)
    return total


def in_bf16(x: Tensor) -> Tensor:
    """Sum of the last dimension, number by number, each partial sum rounded to bf16: a wrong kernel's."""
    total = torch.zeros_like(x[..., :1])
    for column in range(x.shape[-1]):
        total = bf16(total + bf16(x[..., column : column + 1]))
    return total


def times(a: Tensor, b: Tensor, width: int = 16, keep: Kernel = bf16) -> Tensor:
    """float32 `a @ b` of operands as `keep` rounds them, added up block by block from the end, as matrix units do."""
    total = a.new_zeros(1)
    for part in blocks(a.shape[-1], width):
        total = total + keep(a[..., part]) @ keep(b[..., part, :])
    return total


def online_softmax(score: Tensor, v: Tensor, width: int = 16, keep: Kernel = bf16, start: float = -inf) -> Tensor:
    """softmax(score) @ v in one pass over blocks of keys, a running maximum from `start`, weights as `keep` has them.

    As flash attention does it (arXiv:2205.14135): normalised at the end, so that rounding meets other numbers.
    """
    most = score.new_full((*score.shape[:-1], 1), start)
    size, total = torch.zeros_like(most), score.new_zeros(*score.shape[:-1], v.shape[-1])
    for first in range(0, score.shape[-1], width):
        part = score[..., first : first + width]
        now = torch.maximum(most, part.amax(-1, keepdim=True))
        against = now.clamp(min=-1e30)  # where nothing was visible so far
        weight, kept = (part - against).exp(), (most - against).exp()
        size = size * kept + weight.sum(-1, keepdim=True)
        total = total * kept + keep(weight) @ v[..., first : first + width, :]
        most = now
    return total / size.clamp(min=1e-30)
