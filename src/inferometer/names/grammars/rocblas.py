"""rocBLAS's own kernels, besides those that Tensile generates: `rocblas_<operation>_kernel<…>`.

Source: rocBLAS's public repository. The skinny products that bypass Tensile (gemv, dot) count as gemm, as their
cuBLAS counterparts do; scaling by beta is a part of a product.
"""

from inferometer.names.dtypes import FLOATS, first_dtype
from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short

_FAMILIES: tuple[tuple[str, Family], ...] = (
    ("gemm", "gemm"), ("gemv", "gemm"), ("dot", "gemm"), ("trsm", "gemm"), ("syrk", "gemm"), ("scal", "gemm_epilogue"),
    ("copy", "copy"), ("transpose", "copy"), ("swap", "copy"), ("axpy", "elementwise"), ("asum", "reduction"),
    ("nrm2", "reduction"), ("iamax", "reduction"), ("reduction", "reduction"),
)  # fmt: skip


def read(name: ParsedName) -> KernelName | None:
    """A kernel whose function begins with `rocblas_`."""
    if not name.function.startswith("rocblas_"):
        return None
    family: Family = next((family for word, family in _FAMILIES if word in name.function), "other")
    dtype = first_dtype(name.arguments, FLOATS)
    words = name.function.removeprefix("rocblas_").replace("_kernel", "").replace("_", " ")
    return KernelName(
        library="rocblas",
        family=family,
        dtype=dtype,
        short_name=short("rocblas", words, dtype),
        evidence=Evidence("rocBLAS function", "D"),
    )


GRAMMAR = Grammar("rocblas", "form", read, letters="r", spaces="")
