"""Convolutions. FLOPs are two for each product of a direct one; Winograd's and Fourier's ways take fewer.

The frameworks' own op and those of the vendors' libraries have padding, stride and groups at different places. Layout
transposes are launches of the same call, and no compulsory work.
"""

from math import prod
from typing import NamedTuple

import msgspec

from inferometer.operators.framework.call import OpCall, Tensor, Unmodelled
from inferometer.operators.framework.counting import matrix_dtype, product_work, read_bytes
from inferometer.operators.framework.family import Model, OpFamily
from inferometer.operators.work import Product, Work


class _Places(NamedTuple):
    """Where arguments stand."""

    stride: int
    padding: int
    dilation: int | None
    groups: int | None
    bias: int | None = None
    transposed: int | None = None  # of the flag that says so
    added: int | None = None  # of the output's padding, which transposed ones have
    other: int | None = None  # of what is added to the result

    def are_transposed(self, call: OpCall) -> bool:
        """Whether this call is the gradient of a convolution: of ops that are nothing else, or by its flag."""
        return self.added is not None if self.transposed is None else bool(call.value(self.transposed))


class _Shape(msgspec.Struct, frozen=True):
    """What a convolution takes: `macs` multiply-adds, and the output's elements."""

    macs: int
    output: int


def _convolution(places: _Places) -> Model:
    def work(call: OpCall) -> Work:
        x, weight = call.tensor(0), call.tensor(1)
        shape = _shape(call, x, weight, places)
        dtype, assumes = matrix_dtype(call, x, weight)
        more = [call.maybe_tensor(at) for at in (places.bias, places.other) if at is not None]
        read = _read(call, x, weight, places) + weight.bytes + read_bytes(more)
        return product_work(Product(2 * shape.macs), dtype, read, shape.output * x.item_bytes, assumes)

    return work


def _shape(call: OpCall, x: Tensor, weight: Tensor, places: _Places) -> _Shape:
    """`x` [N, C, …] and weight [Cout, Cin of a group, …]; of a transposed one, [Cin, Cout of a group, …]."""
    rank = len(weight.dims) - 2
    if rank < 1 or len(x.dims) not in (rank + 1, rank + 2):
        raise Unmodelled(f"expected x [N, C, …] and a weight, found {list(x.dims)} and {list(weight.dims)}")
    batch, space, kernel = (x.dims[0] if len(x.dims) == rank + 2 else 1), x.dims[-rank:], weight.dims[2:]
    if places.are_transposed(call):
        macs = batch * prod(space) * prod(weight.dims)
        groups = 1 if places.groups is None else call.integer(places.groups)
        stride, padding = _all(call, places.stride, rank), _all(call, places.padding, rank)
        dilation, added = _all(call, places.dilation, rank), _all(call, places.added, rank)
        out = [
            (size - 1) * s - 2 * p + d * (k - 1) + a + 1
            for size, s, p, d, k, a in zip(space, stride, padding, dilation, kernel, added, strict=True)
        ]
        return _Shape(macs, batch * weight.dims[1] * groups * prod(out))
    out = _out(call, space, kernel, places)
    output = batch * weight.dims[0] * prod(out)
    return _Shape(output * weight.dims[1] * prod(kernel), output)


def _out(call: OpCall, space: tuple[int, ...], kernel: tuple[int, ...], places: _Places) -> list[int]:
    rank = len(kernel)
    return [
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, p, d, k, s in zip(
            space,
            _all(call, places.padding, rank),
            _all(call, places.dilation, rank),
            kernel,
            _all(call, places.stride, rank),
            strict=True,
        )
    ]


def _all(call: OpCall, at: int | None, rank: int) -> tuple[int, ...]:
    """A value for each dimension; 1 of an op that has no such argument."""
    values = (1,) if at is None else call.integers(at)
    return values * rank if len(values) == 1 else values


def _read(call: OpCall, x: Tensor, weight: Tensor, places: _Places) -> int:
    """Of the input only what the kernel meets: with steps wider than the kernel, places between stay unread."""
    if places.are_transposed(call):
        return x.bytes
    kernel = weight.dims[2:]
    stride = _all(call, places.stride, len(kernel))
    out = _out(call, x.dims[-len(kernel) :], kernel, places)
    met = [
        min(size, o * k) if s > k else size
        for size, o, k, s in zip(x.dims[-len(kernel) :], out, kernel, stride, strict=True)
    ]
    return x.bytes * prod(met) // max(1, prod(x.dims[-len(kernel) :]))


def _backward(call: OpCall) -> Work:
    """The gradients of x, weight and bias that are asked for; the first two multiply as much as the forward pass each.

    Gradient, x, weight, bias sizes, stride, padding, dilation, transposed, output padding, groups, which are asked for.
    """
    grad, x, weight = call.tensor(0), call.tensor(1), call.tensor(2)
    of_x, of_weight, of_bias = _mask(call)
    macs = grad.numel * weight.dims[1] * prod(weight.dims[2:])
    if call.value(7):
        macs = prod(x.dims) * weight.dims[1] * prod(weight.dims[2:])
    dtype, assumes = matrix_dtype(call, grad, weight)
    written = of_x * x.numel * x.item_bytes + of_weight * weight.numel * weight.item_bytes
    written += of_bias * grad.dims[1] * grad.item_bytes
    read = grad.bytes + (weight.bytes if of_x else 0) + (x.bytes if of_weight else 0)
    products = (Product(2 * macs),) * (of_x + of_weight)
    return Work(dtype=dtype, products=products, read_bytes=read, written_bytes=written, assumes=assumes)


def _mask(call: OpCall) -> tuple[int, int, int]:
    found = call.value(10)
    if not isinstance(found, list) or len(found) != 3:
        raise Unmodelled("which gradients are asked for isn't recorded")
    return bool(found[0]), bool(found[1]), bool(found[2])


_FRAMEWORK = _Places(stride=3, padding=4, dilation=5, groups=8, bias=2, transposed=6, added=7)
FAMILY = OpFamily(
    name="convolutions",
    models={
        **dict.fromkeys(
            ("aten::convolution", "aten::_convolution", "aten::convolution_overrideable"), _convolution(_FRAMEWORK)
        ),
        **dict.fromkeys(("aten::conv1d", "aten::conv2d", "aten::conv3d"), _convolution(_Places(3, 4, 5, 6, bias=2))),
        "aten::cudnn_convolution": _convolution(_Places(stride=3, padding=2, dilation=4, groups=5)),
        **dict.fromkeys(
            ("aten::miopen_convolution", "aten::miopen_depthwise_convolution"),
            _convolution(_Places(stride=4, padding=3, dilation=5, groups=6, bias=2)),
        ),
        "aten::cudnn_convolution_transpose": _convolution(_Places(stride=4, padding=2, dilation=5, groups=6, added=3)),
        "aten::miopen_convolution_transpose": _convolution(
            _Places(stride=5, padding=3, dilation=6, groups=7, bias=2, added=4)
        ),
        **dict.fromkeys(
            ("aten::cudnn_convolution_relu", "aten::miopen_convolution_relu"),
            _convolution(_Places(stride=3, padding=4, dilation=5, groups=6, bias=2)),
        ),
        **dict.fromkeys(
            ("aten::cudnn_convolution_add_relu", "aten::miopen_convolution_add_relu"),
            _convolution(_Places(stride=5, padding=6, dilation=7, groups=8, bias=4, other=2)),
        ),
        **dict.fromkeys(
            ("aten::_conv_depthwise2d", "aten::conv_depthwise3d"),
            _convolution(_Places(stride=4, padding=5, dilation=6, groups=None, bias=3)),
        ),
        "aten::_slow_conv2d_forward": _convolution(_Places(stride=4, padding=5, dilation=None, groups=None, bias=3)),
        "aten::convolution_backward": _backward,
    },
    covering=frozenset({"aten::convolution", "aten::_convolution"}),
)
