"""Pointwise templates of other frameworks, whose operator is a functor among the template's arguments.

Sources: ONNX Runtime, `core/providers/cuda/cu_inc` (`_UnaryElementWise<…,OP_Cast<…>>`); PaddlePaddle,
`phi/kernels/funcs` (`VectorizedElementwiseKernel<…,phi::CudaSiluFunctor<…>>`); MXNet, `mxnet_op.h`
(`mxnet_generic_kernel<…op_with_req<mshadow_op::mul,1>>`) and mshadow (`MapPlanKernel<…,BinaryMapExp<op::plus,…>>`).
"""

from inferometer.names.dtypes import FLOATS, first_dtype
from inferometer.names.grammars.words import find_family
from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short
from inferometer.patterns import late_re

_TEMPLATES = late_re(
    r"_(?:Unary|Binary|Tenary|Ternary)ElementWise\w*|Vectorized(?:Elementwise|Broadcast)Kernel|mxnet_generic_kernel\w*|MapPlan\w*Kernel|DistributionKernel"
)
_FUNCTOR = late_re(r"\bOP_(\w+)|(?:\b|Cuda)([A-Z]\w*?)Functor\b|\b(?:mshadow_op|op)::(?!mxnet_op)(\w+)\b(?!::)")
_FAMILIES: dict[str, Family] = {"cast": "copy", "identity": "copy", "fill": "copy", "assign": "copy"}
_POINTWISE = frozenset({"activation", "quantize", "random"})  # what else a functor of one element may be


def read(name: ParsedName) -> KernelName | None:
    """A template that applies a functor to each element."""
    if not name.arguments or _TEMPLATES.fullmatch(name.function) is None:
        return None
    match = _FUNCTOR.search(",".join(name.arguments)[:2_000])
    operator = next(part for part in match.groups() if part) if match else ""
    words = find_family(operator) if operator else None
    family = _FAMILIES.get(operator.lower()) or (words if words in _POINTWISE else None) or "elementwise"
    family = "random" if name.function == "DistributionKernel" else family
    dtype = first_dtype(name.arguments, FLOATS)
    return KernelName(
        family=family,
        dtype=dtype,
        short_name=short(operator.replace("_", " ").lower() or name.function, dtype),
        evidence=Evidence("functor of a pointwise template", "D"),
    )


GRAMMAR = Grammar("functors", "form", read, spaces="onnxruntime|phi|paddle|mxnet|mshadow", letters="_VmM")
