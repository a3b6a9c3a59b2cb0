"""Products of matrices: mm, addmm, bmm, linear and their quantised kinds. FLOPs are 2 M N K for each of a batch.

Read are both operands as far as they are touched (an expanded batch once) and the bias; written is the result. Sources
of positions: PyTorch's native_functions.yaml, 2.13; vLLM's and AITER's bindings.
"""

from math import prod

from msgspec.structs import replace

from inferometer.operators.framework.call import SCALAR_TYPES, OpCall, Tensor, Unmodelled
from inferometer.operators.framework.counting import (
    broadcast,
    item_bytes,
    linear_sizes,
    matrix_dtype,
    product_work,
    read_bytes,
)
from inferometer.operators.framework.family import OpFamily
from inferometer.operators.work import Product, Work

_PAIRS = "c10::Float4_e2m1fn_x2"
_SCALE_BYTES = (4, 4, 1, 1, 4, 4)
"""Of a scale, by `torch.nn.functional.ScalingType`: a tensor, a row, blocks of 16 (fp8), 32 (e8m0), 128, 128 x 128."""


def _product(call: OpCall, batch: int, m: int, n: int, k: int, a: Tensor, b: Tensor, read: int, written: int) -> Work:
    dtype, assumes = matrix_dtype(call, a, b)
    return product_work(Product(2 * batch * m * n * k, M=m, N=n, K=k), dtype, read, written, assumes)


def _sizes(a: Tensor, b: Tensor, rank: int) -> tuple[int, int, int]:
    """M, N and K of operands [..., M, K] and [..., K, N].

    Raises:
        Unmodelled: They are no such operands.
    """
    if len(a.dims) != rank or len(b.dims) != rank or a.dims[-1] != b.dims[-2]:
        raise Unmodelled(f"expected operands of {rank} dimensions that fit, found {list(a.dims)} and {list(b.dims)}")
    return a.dims[-2], b.dims[-1], a.dims[-1]


def _mm(call: OpCall) -> Work:
    a, b = call.tensor(0), call.tensor(1)
    m, n, k = _sizes(a, b, 2)
    return _product(call, 1, m, n, k, a, b, a.bytes + b.bytes, m * n * a.item_bytes)


def _addmm(call: OpCall) -> Work:
    bias, a, b = call.tensor(0), call.tensor(1), call.tensor(2)
    m, n, k = _sizes(a, b, 2)
    read = a.bytes + b.bytes + (0 if _is_zero(call, 3) else bias.bytes)
    return _product(call, 1, m, n, k, a, b, read, m * n * a.item_bytes)


def _is_zero(call: OpCall, at: int) -> bool:
    """Whether a factor is given as 0: what it multiplies needn't be read."""
    try:
        return bool(call.value(at) == 0)
    except Unmodelled:
        return False


def _bmm(call: OpCall) -> Work:
    return _batched(call, call.tensor(0), call.tensor(1), 0)


def _baddbmm(call: OpCall) -> Work:
    bias = 0 if _is_zero(call, 3) else call.tensor(0).bytes
    return _batched(call, call.tensor(1), call.tensor(2), bias)


def _batched(call: OpCall, a: Tensor, b: Tensor, bias: int) -> Work:
    m, n, k = _sizes(a, b, 3)
    batch = a.dims[0]
    return _product(call, batch, m, n, k, a, b, a.bytes + b.bytes + bias, batch * m * n * a.item_bytes)


def _linear(call: OpCall) -> Work:
    """`x` [..., K], weight [N, K] and an optional bias."""
    x, weight = call.tensor(0), call.tensor(1)
    m, n, k = linear_sizes(x, weight)
    read = x.bytes + weight.bytes + read_bytes([call.maybe_tensor(2)])
    return _product(call, 1, m, n, k, x, weight, read, m * n * x.item_bytes)


def _matmul(call: OpCall) -> Work:
    """Of operands with up to one batch dimension or more, broadcast as NumPy does; vectors are rows or columns."""
    a, b = call.tensor(0), call.tensor(1)
    if not a.dims or not b.dims:
        raise Unmodelled("its operands have no dimension")
    left = a.dims if len(a.dims) > 1 else (1, *a.dims)
    right = b.dims if len(b.dims) > 1 else (*b.dims, 1)
    if left[-1] != right[-2]:
        raise Unmodelled(f"expected operands that fit, found {list(a.dims)} and {list(b.dims)}")
    batch = prod(broadcast([Tensor(left[:-2], a.dtype), Tensor(right[:-2], b.dtype)]))
    m, n, k = left[-2], right[-1], left[-1]
    return _product(call, batch, m, n, k, a, b, a.bytes + b.bytes, batch * m * n * a.item_bytes)


def _addmv(call: OpCall) -> Work:
    """What is added [M], matrix [M, K], vector [K]."""
    found = _matmul(replace(call, inputs=call.inputs[1:3]))
    return replace(found, read_bytes=found.read_bytes + (0 if _is_zero(call, 3) else call.tensor(0).bytes))


def _scaled_mm(call: OpCall) -> Work:
    """Operands [M, K] and [K, N] of 8 or 4 bits with their scales, 4-bit ones packed in pairs along K.

    Older PyTorch has the bias at 2 and the type at 3.
    """
    a, b = call.tensor(0), call.tensor(1)
    m, n, k = _sizes(a, b, 2)
    k *= 2 if a.dtype == b.dtype == _PAIRS else 1
    extra = [call.maybe_tensor(at) for at in range(2, 6)]  # after them may be an output
    is_old = len(call.inputs) > 3 and isinstance(call.inputs[3], str)
    out = _dtype_argument(call, 3 if is_old else 6)
    return _product(call, 1, m, n, k, a, b, a.bytes + b.bytes + read_bytes(extra), m * n * out)


def _scaled_mm_v2(call: OpCall) -> Work:
    """The same with lists of scales, each with its recipe, which shows a scale's type: lists don't record types."""
    a, b = call.tensor(0), call.tensor(1)
    m, n, k = _sizes(a, b, 2)
    k *= 2 if a.dtype == b.dtype == _PAIRS else 1
    scales = sum(_scale_bytes(call, at) for at in (2, 5)) + read_bytes([call.maybe_tensor(8)])
    out = _dtype_argument(call, 9, a.item_bytes)
    return _product(call, 1, m, n, k, a, b, a.bytes + b.bytes + scales, m * n * out)


def _scale_bytes(call: OpCall, at: int) -> int:
    """Bytes of a list of scales, whose recipes follow it."""
    scales, recipes = call.tensors(at), call.integers(at + 1)
    if len(scales) != len(recipes) or not all(0 <= recipe < len(_SCALE_BYTES) for recipe in recipes):
        raise Unmodelled(f"expected a recipe for each of {len(scales)} scales, found {list(recipes)}")
    return sum(scale.touched * _SCALE_BYTES[recipe] for scale, recipe in zip(scales, recipes, strict=True))


def _dtype_argument(call: OpCall, at: int, default: int = 2) -> int:
    """Bytes of an element of the type that an argument names by its number; 2 where none is given."""
    value = call.value(at)
    if value is None or value == "":
        return default
    if value not in SCALAR_TYPES:
        raise Unmodelled(f'argument {at} should name a type, found "{value}"')
    return item_bytes(SCALAR_TYPES[value])


def _grouped_mm(call: OpCall) -> Work:
    """Rows [M, K] in groups, each by its own matrix of [G, K, N]: at least one matrix must be read."""
    a, b = call.tensor(0), call.tensor(1)
    if len(a.dims) != 2 or len(b.dims) != 3 or a.dims[1] != b.dims[1]:
        raise Unmodelled(f"expected rows [M, K] and matrices [G, K, N], found {list(a.dims)} and {list(b.dims)}")
    m, n, k = a.dims[0], b.dims[2], a.dims[1]
    dtype, assumes = matrix_dtype(call, a, b)
    one = b.bytes // b.dims[0] if b.dims[0] else 0
    return product_work(
        Product(2 * m * n * k, N=n, K=k), dtype, a.bytes + one, m * n * 2,
        (*assumes, "all rows are of one group: which groups have rows isn't recorded"),
    )  # fmt: skip


def _scaled_grouped_mm(call: OpCall) -> Work:
    """The same of 8 bits, with the scales of both at 2 and 3, and the type of the result at 7."""
    found = _grouped_mm(call)
    rows, matrices = call.tensor(2), call.tensor(3)
    one = matrices.bytes // matrices.dims[0] if matrices.dims and matrices.dims[0] else 0
    written = call.tensor(0).dims[0] * call.tensor(1).dims[2] * _dtype_argument(call, 7)
    return replace(found, read_bytes=found.read_bytes + rows.bytes + one, written_bytes=written)


def _weight_of_4_bits(call: OpCall) -> Work:
    """`x` [M, K], packed weight, columns of a group, scales and zeros [groups, N, 2]: multiplied in the type of x."""
    x, weight, scales = call.tensor(0), call.tensor(1), call.tensor(3)
    if len(x.dims) != 2 or len(scales.dims) != 3:
        raise Unmodelled(f"expected x [M, K] and scales [groups, N, 2], found {list(x.dims)}, {list(scales.dims)}")
    (m, k), n = x.dims, scales.dims[1]
    return _product(call, 1, m, n, k, x, x, x.bytes + weight.bytes + scales.bytes, m * n * x.item_bytes)


def _weight_of_8_bits(call: OpCall) -> Work:
    """`x` [M, K], weight [N, K] of 8 bits, its scales [N]: multiplied in the type of x."""
    found = _linear(replace(call, inputs=call.inputs[:2]))
    return replace(found, read_bytes=found.read_bytes + call.tensor(2).bytes)


def _int_mm(call: OpCall) -> Work:
    a, b = call.tensor(0), call.tensor(1)
    m, n, k = _sizes(a, b, 2)
    return _product(call, 1, m, n, k, a, b, a.bytes + b.bytes, m * n * 4)


def _blockwise(call: OpCall) -> Work:
    """AITER's x [M, K], weight [N, K] and the scales of both; 4-bit operands are packed in pairs along K."""
    x, weight = call.tensor(0), call.tensor(1)
    if len(x.dims) != 2 or len(weight.dims) != 2 or x.dims[1] != weight.dims[1]:
        raise Unmodelled(f"expected x [M, K] and a weight [N, K], found {list(x.dims)} and {list(weight.dims)}")
    (m, k), n = x.dims, weight.dims[0]
    is_packed = "a4w4" in call.op or "afp4" in call.op
    scales = read_bytes([call.maybe_tensor(2), call.maybe_tensor(3)])
    raw = x.dtype == weight.dtype == "unsigned char"
    dtype = "fp4" if is_packed else "fp8" if raw else matrix_dtype(call, x, weight)[0]
    depth = 2 * k if is_packed else k
    return product_work(
        Product(2 * m * n * depth, M=m, N=n, K=depth), dtype, x.bytes + weight.bytes + scales, m * n * 2
    )


_LINEAR = ("aten::linear", "aten::_linear", "vllm::rocm_unquantized_gemm", "vllm::default_unquantized_gemm")
FAMILY = OpFamily(
    name="products of matrices",
    models={
        "aten::mm": _mm,
        "aten::addmm": _addmm,
        "aten::addmm_": _addmm,
        "aten::_addmm_activation": _addmm,
        "aten::bmm": _bmm,
        "aten::baddbmm": _baddbmm,
        "aten::baddbmm_": _baddbmm,
        "aten::matmul": _matmul,
        "aten::mv": _matmul,
        "aten::addmv": _addmv,
        "aten::addmv_": _addmv,
        "aten::dot": _matmul,
        "aten::_scaled_mm": _scaled_mm,
        "aten::_scaled_mm_v2": _scaled_mm_v2,
        "aten::_grouped_mm": _grouped_mm,
        "aten::_scaled_grouped_mm": _scaled_grouped_mm,
        "aten::_int_mm": _int_mm,
        "aten::_weight_int4pack_mm": _weight_of_4_bits,
        "aten::_weight_int8pack_mm": _weight_of_8_bits,
        "aiter::gemm_a16w16": _linear,
        "aiter::gemm_a8w8_blockscale": _blockwise,
        "aiter::gemm_a8w8_blockscale_bpreshuffle": _blockwise,
        "aiter::gemm_a4w4": _blockwise,
        "aiter::gemm_afp4wfp4": _blockwise,
        "aiter::gemm_afp4wfp4_": _blockwise,
        **dict.fromkeys(_LINEAR, _linear),
    },
    covering=frozenset({*_LINEAR, "aten::matmul", "aiter::gemm_a16w16"}),
)
