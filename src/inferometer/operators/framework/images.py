"""Pools, resizing and padding over the last dimensions of a tensor [N, C, …], and their gradients.

Of an input that is made smaller, only as many elements need to be read as a result has, or what its kernel meets.
"""

from math import prod

from inferometer.operators.framework.call import OpCall
from inferometer.operators.framework.counting import moved
from inferometer.operators.framework.family import Model, OpFamily
from inferometer.operators.work import Work

_INDEX_BYTES = 8


def _pool(call: OpCall) -> Work:
    """`x` [N, C, H, W], kernel, stride, padding: the values; of the greatest dilation, too, and their places."""
    x = call.tensor(0)
    kernel, stride, padding = (_pair(call.integers(at), 2) for at in range(1, 4))
    dilation = (1, 1) if call.op == "aten::avg_pool2d" else _pair(call.integers(4), 2)
    stride = stride or kernel
    out = [_pooled(*each) for each in zip(x.dims[-2:], kernel, stride, padding, dilation, strict=True)]
    numel = prod(x.dims[:-2]) * prod(out)
    size = x.item_bytes + (_INDEX_BYTES if "indices" in call.op else 0)
    return moved(x.bytes, numel * size, vector=numel * (prod(kernel) - 1))


def _pair(values: tuple[int, ...], n: int) -> tuple[int, ...]:
    return values * n if len(values) == 1 else values


def _pooled(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def _pool_backward(call: OpCall) -> Work:
    """Gradient and x: x's values aren't needed, but where each maximum was, an index for each gradient."""
    grad, x = call.tensor(0), call.tensor(1)
    return moved(grad.numel * (grad.item_bytes + _INDEX_BYTES), x.numel * x.item_bytes, vector=grad.numel)


def _average(rank: int) -> Model:
    """`x` [N, C, …], sizes of the result: each element counts once."""

    def work(call: OpCall) -> Work:
        x = call.tensor(0)
        numel = prod(x.dims[:-rank]) * prod(_pair(call.integers(1), rank))
        return moved(x.bytes, numel * x.item_bytes, vector=x.numel)

    return work


def _average_backward(call: OpCall) -> Work:
    """Gradient and x, whose sizes count alone."""
    grad, x = call.tensor(0), call.tensor(1)
    return moved(grad.bytes, x.numel * x.item_bytes, vector=x.numel)


def _resized(rank: int, points: int) -> Model:
    """`x` [N, C, …], sizes of the result: each element is made of so many points."""

    def work(call: OpCall) -> Work:
        x = call.tensor(0)
        numel = prod(x.dims[:-rank]) * prod(call.integers(1))
        read = min(x.touched, numel * points)
        return moved(read * x.item_bytes, numel * x.item_bytes, vector=(points - 1) * numel)

    return work


def _resized_backward(call: OpCall) -> Work:
    """Gradient, sizes of the result, sizes of x."""
    grad = call.tensor(0)
    return moved(grad.bytes, prod(call.integers(2)) * grad.item_bytes, vector=grad.numel)


def _padded(call: OpCall) -> Work:
    """`x`, what is added before and after, the last dimension first."""
    x, added = call.tensor(0), call.integers(1)
    sizes = list(x.dims)
    for at in range(0, len(added), 2):
        sizes[-1 - at // 2] += added[at] + added[at + 1]
    return moved(x.bytes, prod(sizes) * x.item_bytes)


def _columns(call: OpCall) -> Work:
    """`x` [N, C, H, W], kernel, dilation, padding, stride: the kernel's places below each other, [N, C k, L]."""
    x = call.tensor(0)
    kernel, dilation, padding, stride = (_pair(call.integers(at), 2) for at in range(1, 5))
    out = [_pooled(*each) for each in zip(x.dims[-2:], kernel, stride, padding, dilation, strict=True)]
    return moved(x.bytes, prod(x.dims[:-2]) * prod(kernel) * prod(out) * x.item_bytes)


_RANKS = {"1d": 1, "2d": 2, "3d": 3}
_LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}
FAMILY = OpFamily(
    name="pools and resizing",
    models={
        **dict.fromkeys(("aten::max_pool2d_with_indices", "aten::max_pool2d", "aten::avg_pool2d"), _pool),
        "aten::max_pool2d_with_indices_backward": _pool_backward,
        **{f"aten::_adaptive_avg_pool{name}": _average(rank) for name, rank in _RANKS.items() if rank > 1},
        **{f"aten::_adaptive_avg_pool{name}_backward": _average_backward for name in _RANKS},
        **{f"aten::avg_pool{name}_backward": _average_backward for name in _RANKS},
        **{f"aten::upsample_nearest{name}": _resized(rank, 1) for name, rank in _RANKS.items()},
        **{f"aten::upsample_{_LINEAR[rank]}{name}": _resized(rank, 2**rank) for name, rank in _RANKS.items()},
        "aten::upsample_bicubic2d": _resized(2, 16),
        **{
            f"aten::upsample_{kind}{name}_backward": _resized_backward
            for name, rank in _RANKS.items()
            for kind in ("nearest", _LINEAR[rank])
        },
        **{f"aten::{kind}_pad{name}": _padded for kind in ("reflection", "replication") for name in _RANKS},
        "aten::im2col": _columns,
    },
)
