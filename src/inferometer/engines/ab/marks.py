"""What an answer comes to in two numbers: cheap enough for every call of every repetition.

The sum of the values tells an answer from that of another repetition, and the sum of their sizes how much of a
difference that is; either is NaN or infinite where a value is. Both are in float64: no float32 adds up to infinity.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from inferometer.engines.ab.differences import tensors_of


class Mark(NamedTuple):
    """`abs_sum` is None of integers; both are of what is no answer."""

    sum: float | None = None
    abs_sum: float | None = None


def mark_of(answer: Any) -> Any:
    """A mark; on a GPU what `read_marks` makes one of, so that nothing waits for it here."""
    import torch

    tensors = tensors_of(answer)
    floats = [tensor for tensor in tensors if tensor.is_floating_point()]
    sums = [tensor.sum(dtype=torch.float64) for tensor in floats or tensors]
    sizes = [torch.linalg.vector_norm(tensor, 1, dtype=torch.float64) for tensor in floats]
    if sums and sums[0].is_cuda:
        return torch.stack(sums + sizes), len(sums)
    return _mark([float(part) for part in sums + sizes], len(sums))


def read_marks(marks: Sequence[Any]) -> list[Mark]:
    """Of what `mark_of` gave, and of None for what has no answer; a GPU is waited for."""
    return [_read(mark) for mark in marks]


def _read(mark: Any) -> Mark:
    if mark is None or isinstance(mark, Mark):
        return mark or Mark()
    parts, count = mark
    return _mark(parts.tolist(), count)


def _mark(parts: Sequence[float], count: int) -> Mark:
    """Of `count` sums, and sums of sizes where there are any."""
    sizes = parts[count:]
    return Mark(sum(parts[:count]), sum(sizes) if sizes else None)
