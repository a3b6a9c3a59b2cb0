"""What several families count alike: types that results have, what is read and written, what products multiply in."""

import re
from collections.abc import Iterable, Sequence
from math import prod
from typing import Final

from inferometer.operators.framework.call import OpCall, Tensor, Unmodelled
from inferometer.operators.work import Product, Work

_MATRIX_TYPES: Final = {
    "c10::BFloat16": "bf16",
    "c10::Half": "fp16",
    "double": "fp64",
    "signed char": "int8",
    "char": "int8",
    "c10::Float8_e4m3fn": "fp8",
    "c10::Float8_e5m2": "fp8",
    "c10::Float8_e4m3fnuz": "fp8",
    "c10::Float8_e5m2fnuz": "fp8",
    "c10::Float4_e2m1fn_x2": "fp4",
}
_TF32 = re.compile(r"s1688|tf32|TF32|16816gemm_tf32|_S_B_.*XF32|f32f32_tf32|BF16_BF16_TF32", re.ASCII)
_FP32 = re.compile(
    r"sgemm|simt|SIMT|_S_B_Bias|_SB_|gemv|gemmSN|dot_kernel|splitKreduce|implicit_convolve_sgemm", re.ASCII
)
_RANKS: Final = ("bool", "unsigned char", "signed char", "char", "short int", "short", "int", "long int", "long")
_FLOATS: Final = ("c10::Half", "c10::BFloat16", "float", "double")
_OPAQUE = re.compile(r"OpaqueType<(\d+)u?>")
_NAMED_TYPES: Final = {
    "c10::BFloat16": 2, "hip_bfloat16": 2, "__nv_bfloat16": 2, "c10::Half": 2, "__half": 2, "double": 8, "float": 4,
    "long": 8, "int": 4, "unsigned char": 1, "bool": 1,
}  # fmt: skip

DEFAULT_FLOAT: Final = "float"
"""What PyTorch makes of whole numbers where the result needs a float."""
EVEN: Final = "tokens choose their experts evenly"
TF32_ASSUMED: Final = "float32 products are TF32's, the faster: neither type nor kernel says which"


def matrix_dtype(call: OpCall, *tensors: Tensor) -> tuple[str, tuple[str, ...]]:
    """What matrix units multiply, as `hardware` names it, and what is assumed.

    Both of 8 bits use the units for 8 bits; of different types, the wider decides. float32 is TF32 or not by the
    kernels' names; where these don't say, the faster is assumed.

    Raises:
        Unmodelled: The units' type for these isn't known.
    """
    widest = max(tensors, key=lambda tensor: tensor.item_bytes)
    if widest.dtype == "float":
        return _float_dtype(call.kernels)
    found = _MATRIX_TYPES.get(widest.dtype)
    if found is None:
        raise Unmodelled(f'what the device multiplies "{widest.dtype}" in isn\'t known')
    return found, ()


def _float_dtype(kernels: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    if any(_TF32.search(kernel) for kernel in kernels):
        return "tf32", ()
    if any(_FP32.search(kernel) for kernel in kernels):
        return "fp32", ()
    return "tf32", (TF32_ASSUMED,)


def product_work(
    product: Product, dtype: str, read_bytes: int, written_bytes: int, assumes: tuple[str, ...] = ()
) -> Work:
    """A product of matrices."""
    return Work(dtype=dtype, products=(product,), read_bytes=read_bytes, written_bytes=written_bytes, assumes=assumes)


def linear_sizes(x: Tensor, weight: Tensor) -> tuple[int, int, int]:
    """m, n and k of `x` [..., K] times the transpose of `weight` [N, K].

    Raises:
        Unmodelled: The two don't fit.
    """
    if len(weight.dims) != 2 or not x.dims or x.dims[-1] != weight.dims[1]:
        raise Unmodelled(f"expected x [..., K] and a weight [N, K], found {list(x.dims)} and {list(weight.dims)}")
    return prod(x.dims[:-1]), weight.dims[0], weight.dims[1]


def moved(read: int, written: int, *, vector: int = 0, special: int = 0, assumes: tuple[str, ...] = ()) -> Work:
    """Work without products."""
    return Work(vector_flops=vector, special_ops=special, read_bytes=read, written_bytes=written, assumes=assumes)


def read_bytes(tensors: Iterable[Tensor | None]) -> int:
    """Bytes of all tensors that are there, each once."""
    return sum(tensor.bytes for tensor in tensors if tensor is not None)


def broadcast(tensors: Sequence[Tensor]) -> tuple[int, ...]:
    """The shape of an element-wise result.

    Raises:
        Unmodelled: The shapes don't go together.
    """
    rank = max((len(tensor.dims) for tensor in tensors), default=0)
    shape = []
    for at in range(-rank, 0):
        sizes = {tensor.dims[at] for tensor in tensors if len(tensor.dims) >= -at} - {1}
        if len(sizes) > 1:
            raise Unmodelled(f"its shapes don't go together: {', '.join(str(list(each.dims)) for each in tensors)}")
        shape.append(sizes.pop() if sizes else 1)
    return tuple(shape)


def promoted(tensors: Sequence[Tensor]) -> str:
    """The type of an element-wise result by PyTorch's rules: tensors of no dimension count only by their kind.

    Python's numbers are recorded as such tensors, of type `double`: with whole numbers they make the default float.
    """
    full = [tensor.dtype for tensor in tensors if tensor.dims]
    best = _widest(full)
    for dtype in (tensor.dtype for tensor in tensors if not tensor.dims):
        if best is None or _kind(dtype) > _kind(best):
            best = dtype if best is None or dtype != "double" else DEFAULT_FLOAT
    if best is None:
        raise Unmodelled("it has no tensor whose type is known")
    return best


def is_whole(dtype: str) -> bool:
    """Whether it is of whole numbers, or of truths."""
    return _kind(dtype) < 2


def _kind(dtype: str) -> int:
    return 2 if dtype in _FLOATS or dtype.startswith("c10::") else 0 if dtype == "bool" else 1


def _widest(dtypes: Sequence[str]) -> str | None:
    floats = [dtype for dtype in dtypes if _kind(dtype) == 2]
    if {"c10::Half", "c10::BFloat16"} <= set(floats) and not {"float", "double"} & set(floats):
        return "float"
    if floats:
        return max(floats, key=lambda dtype: _FLOATS.index(dtype) if dtype in _FLOATS else -1)
    return max(dtypes, key=lambda dtype: _RANKS.index(dtype) if dtype in _RANKS else -1, default=None)


def item_bytes(dtype: str) -> int:
    """Bytes of an element.

    Raises:
        Unmodelled: The type has no known size.
    """
    return Tensor((), dtype).item_bytes


def listed_bytes(call: OpCall) -> int:
    """Bytes of an element of a list's tensors, whose types profilers don't record: as the kernels' names say.

    Raises:
        Unmodelled: They don't.
    """
    for kernel in call.kernels:
        if opaque := _OPAQUE.search(kernel):
            return int(opaque[1])
        named = [size for name, size in _NAMED_TYPES.items() if re.search(rf"[<, (]{re.escape(name)}[,>* ]", kernel)]
        if named:
            return named[0]
    raise Unmodelled("the type of the tensors in its list isn't recorded, and no kernel's name says it")


def row_count(tensor: Tensor) -> int:
    """Of rows, which lie along the last dimension.

    Raises:
        Unmodelled: It has no dimension.
    """
    if not tensor.dims:
        raise Unmodelled("its tensor has no dimension")
    return prod(tensor.dims[:-1])
