"""Products with operands of 8 or 4 bits in serving engines: both operands, their scales and the bias are read.

Both of 8 or 4 bits use the device's units for these; weights of 4 bits next to activations of 16 are multiplied in the
activations' type. Positions: the bindings of vLLM, SGLang's sgl-kernel and AITER.
"""

from math import prod

from inferometer.operators.framework.call import SCALAR_TYPES, OpCall, Tensor, Unmodelled
from inferometer.operators.framework.counting import item_bytes, linear_sizes, matrix_dtype, product_work, read_bytes
from inferometer.operators.framework.family import Model, OpFamily
from inferometer.operators.work import Product, Work

_RAW = "unsigned char"  # of 8 bits in older bindings, and of two numbers of 4
_RESULT_BYTES = 2
_SIZES = 3  # rows, columns and depth stand next to each other


def _work(sizes: tuple[int, int, int], dtype: str, read: int, written: int) -> Work:
    m, n, k = sizes
    return product_work(Product(2 * m * n * k, M=m, N=n, K=k), dtype, read, written)


def _dtype(call: OpCall, a: Tensor, b: Tensor) -> str:
    return "fp8" if a.dtype == b.dtype == _RAW else matrix_dtype(call, a, b)[0]


def _into(*, first_scale: int, last: int) -> Model:
    """Output [M, N], a [M, K], b [K, N], and from `first_scale` to `last` scales, zeros and a bias."""

    def work(call: OpCall) -> Work:
        out, a, b = (call.tensor(at) for at in range(3))
        m, n, k = _sizes(a, b)
        if out.dims != (m, n):
            raise Unmodelled(f"expected an output [{m}, {n}], found {list(out.dims)}")
        more = read_bytes(call.maybe_tensor(at) for at in range(first_scale, last + 1))
        return _work((m, n, k), _dtype(call, a, b), a.bytes + b.bytes + more, out.bytes)

    return work


def _sizes(a: Tensor, b: Tensor) -> tuple[int, int, int]:
    """M, N, K of [M, K] and [K, N], or of a weight that lies the other way round."""
    if len(a.dims) == len(b.dims) == 2 and a.dims[1] in b.dims:
        k = a.dims[1]
        return a.dims[0], b.dims[1] if b.dims[0] == k else b.dims[0], k
    raise Unmodelled(f"expected operands of 2 dimensions that fit, found {list(a.dims)} and {list(b.dims)}")


def _scaled(call: OpCall) -> Work:
    """A [M, K], b [K, N], scales of both, the type of the result, bias."""
    a, b = call.tensor(0), call.tensor(1)
    m, n, k = _sizes(a, b)
    more = read_bytes((call.tensor(2), call.tensor(3), call.maybe_tensor(5)))
    found = call.value(4)
    size = item_bytes(SCALAR_TYPES[found]) if found in SCALAR_TYPES else _RESULT_BYTES
    return _work((m, n, k), _dtype(call, a, b), a.bytes + b.bytes + more, m * n * size)


def _of_4_bits(call: OpCall) -> Work:
    """Output [M, N], a [M, K / 2], b [N, K / 2], scales of blocks of both, the scale of all."""
    out, a, b = (call.tensor(at) for at in range(3))
    if len(a.dims) != 2 or len(b.dims) != 2 or a.dims[1] != b.dims[1] or out.dims != (a.dims[0], b.dims[0]):
        raise Unmodelled(f"expected rows of packed numbers that fit, found {list(a.dims)} and {list(b.dims)}")
    (m, half), n = a.dims, b.dims[0]
    more = read_bytes(call.maybe_tensor(at) for at in range(3, 6))
    return _work((m, n, 2 * half), "fp4", a.bytes + b.bytes + more, out.bytes)


def _plain_into(call: OpCall) -> Work:
    """Output [M, N], a [M, K], b in either order."""
    out, a, b = (call.tensor(at) for at in range(3))
    m, n, k = _sizes(a, b)
    return _work((m, n, k), matrix_dtype(call, a, b)[0], a.bytes + b.bytes, m * n * out.item_bytes)


def _packed(*, weight_at: int, scales_at: int | None = None) -> Model:
    """X [M, K], and a packed weight of 4 or 8 bits with its scales: the columns are those of the scales.

    Without `scales_at`, M, N and K stand next to each other among the values, and the scales are the first matrix of N
    columns after the weight.
    """

    def work(call: OpCall) -> Work:
        x, weight = call.tensor(0), call.tensor(weight_at)
        m, k = prod(x.dims[:-1]), x.dims[-1]
        n = call.tensor(scales_at).dims[-1] if scales_at is not None else _columns(call, m, k)
        scales = call.tensor(scales_at) if scales_at is not None else _scales(call, weight_at, n)
        read = x.bytes + weight.bytes + scales.bytes
        return _work((m, n, k), matrix_dtype(call, x)[0], read, m * n * x.item_bytes)

    return work


def _columns(call: OpCall, m: int, k: int) -> int:
    for at in range(len(call.inputs) - _SIZES + 1):
        found = [call.value(at + step) for step in range(_SIZES)]
        if all(type(each) is int for each in found) and (found[0], found[2]) == (m, k):
            return int(found[1])
    raise Unmodelled("its sizes aren't among its values")


def _scales(call: OpCall, weight_at: int, n: int) -> Tensor:
    after = (call.maybe_tensor(at) for at in range(weight_at + 1, len(call.inputs)))
    found = next((each for each in after if each and len(each.dims) == 2 and each.dims[1] == n), None)
    if found is None:
        raise Unmodelled(f"no scales of {n} columns are among its arguments")
    return found


def _rows_by_rows(*, has_output: bool = False) -> Model:
    """Both operands with rows of K, and scales or a bias of them: every row of one times every row of the other.

    `has_output`: one of the others is the output, [M, N] or the other way round, and of 16 bits.
    """

    def work(call: OpCall) -> Work:
        a, b = call.tensor(0), call.tensor(1)
        if len(a.dims) != 2 or len(b.dims) != 2 or a.dims[1] != b.dims[1]:
            raise Unmodelled(f"expected operands with rows of one length, found {list(a.dims)} and {list(b.dims)}")
        (m, k), n = a.dims, b.dims[0]
        others = [each for at in range(2, len(call.inputs)) if (each := call.maybe_tensor(at)) is not None]
        out = next((each for each in others if each.dims in ((m, n), (n, m))), None) if has_output else None
        more = read_bytes(each for each in others if each is not out)
        size = max(a.item_bytes, _RESULT_BYTES)
        return _work((m, n, k), _dtype(call, a, b), a.bytes + b.bytes + more, m * n * size)

    return work


def _by_blocks(call: OpCall) -> Work:
    """X [..., K] of 16 bits, weight [N, K] of 8, sizes of blocks, scales of the weight: x is made of 8 bits first."""
    x, weight, scales = call.tensor(0), call.tensor(1), call.tensor(3)
    m, n, k = linear_sizes(x, weight)
    read = x.bytes + weight.bytes + scales.bytes
    return _work((m, n, k), _dtype(call, weight, weight), read, m * n * x.item_bytes)


_COVERING = "vllm::apply_w8a8_block_fp8_linear"
FAMILY = OpFamily(
    name="quantised products",
    models={
        "_C::cutlass_scaled_mm": _into(first_scale=3, last=5),
        "_C::cutlass_scaled_mm_azp": _into(first_scale=3, last=7),
        **dict.fromkeys(("_C::cutlass_scaled_fp4_mm", "sgl_kernel::cutlass_scaled_fp4_mm"), _of_4_bits),
        **{f"sgl_kernel::{name}_scaled_mm": _scaled for name in ("fp8", "int8", "fp8_blockwise")},
        **dict.fromkeys(
            ("_C::dsv3_fused_a_gemm", "sgl_kernel::dsv3_fused_a_gemm", "sgl_kernel::dsv3_router_gemm"), _plain_into
        ),
        **dict.fromkeys(
            ("_C::marlin_gemm", "_C::gptq_marlin_gemm", "sgl_kernel::gptq_marlin_gemm"), _packed(weight_at=2)
        ),
        **dict.fromkeys(("_C::gptq_gemm", "sgl_kernel::gptq_gemm"), _packed(weight_at=1, scales_at=3)),
        **dict.fromkeys(("_C::awq_gemm", "_C::allspark_w8a16_gemm"), _packed(weight_at=1, scales_at=2)),
        **dict.fromkeys(("_rocm_C::wvSplitK", "_rocm_C::LLMM1"), _rows_by_rows()),
        "_rocm_C::wvSplitKQ": _rows_by_rows(has_output=True),
        **dict.fromkeys(("aiter::gemm_a8w8", "aiter::gemm_a8w8_CK", "aiter::gemm_a8w8_bpreshuffle"), _rows_by_rows()),
        _COVERING: _by_blocks,
    },
    covering=frozenset({_COVERING}),
)
