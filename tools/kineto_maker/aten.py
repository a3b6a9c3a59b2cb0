"""PyTorch's own operators with the arguments and the nesting that the profiler records for them."""

from __future__ import annotations

from typing import Final

from .nodes import BF16, FP32, INT32, INT64, Call, Launch, Node, Op, Tensor

_SCALAR_TYPES: Final = {INT32: 3, INT64: 4, FP32: 6, BF16: 15}  # c10::ScalarType


def view(tensor: Tensor, dims: tuple[int, ...]) -> Op:
    """Another shape of the same memory."""
    return Op("aten::view", (tensor, dims))


def as_strided(tensor: Tensor, dims: tuple[int, ...], strides: tuple[int, ...]) -> Op:
    """A window on the same memory."""
    return Op("aten::as_strided", (tensor, dims, strides, None))


def empty(dims: tuple[int, ...], dtype: str = BF16) -> Op:
    """New memory; PyTorch's allocator asks whether a graph is being captured."""
    return Op("aten::empty", (dims, _SCALAR_TYPES[dtype], 0, None, False, None), (Call("cudaStreamIsCapturing"),))


def copy(target: Tensor, source: Tensor, work: Node) -> Op:
    """`target.copy_(source)`: a kernel on one device, a memcpy between two."""
    return Op("aten::copy_", (target, source, False), (work,))


def to(source: Tensor, dtype: str, work: Node) -> Op:
    """A cast or a move to new memory."""
    target = source._replace(dtype=dtype)
    code = _SCALAR_TYPES[dtype]
    new = Op("aten::empty_strided", (source.dims, contiguous_strides(source.dims), code, 0, None, False))
    inner = Op("aten::_to_copy", (source, code, None, None, None, False, None), (new, copy(target, source, work)))
    return Op("aten::to", (source, code, False, False, None), (inner,))


def matmul(rows: int, width: int, depth: int, launches: tuple[Launch, ...]) -> Op:
    """(rows, depth) x (depth, width), the second transposed in memory."""
    x, weight = Tensor((rows, depth)), Tensor((depth, width), BF16, (1, depth))
    return Op("aten::matmul", (x, weight), (Op("aten::mm", (x, weight), launches),))


def linear(rows: int, width: int, depth: int, launches: tuple[Launch, ...]) -> Op:
    """A projection of `rows` rows from `depth` to `width` features, without bias."""
    weight = Tensor((width, depth))
    transpose = Op("aten::transpose", (weight, 0, 1), (as_strided(weight, (depth, width), (1, depth)),))
    return Op(
        "aten::linear",
        (Tensor((rows, depth)), weight, None),
        (Op("aten::t", (weight,), (transpose,)), matmul(rows, width, depth, launches)),
    )


def contiguous_strides(dims: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides."""
    strides: list[int] = []
    step = 1
    for size in reversed(dims):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))
