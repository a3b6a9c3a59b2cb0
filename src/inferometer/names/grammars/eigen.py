"""Eigen's tensor kernels, as TensorFlow and PaddlePaddle launch them, and what TensorFlow's compiler generates.

Source: Eigen, `unsupported/Eigen/CXX11/src/Tensor`, and TensorFlow, `core/kernels/mlir_generated`. `EigenMetaKernel`
evaluates `TensorAssignOp<target,expression>`: the expression's operators say what it does, and the outermost stands
first. Sums of whole tensors, contractions and convolutions have kernels of their own. Generated kernels are
`<Op>_GPU_<types>_kernel`, as in `AddV2_GPU_DT_HALF_DT_HALF_kernel`.
"""

import re

from inferometer.names.dtypes import FLOATS, first_dtype
from inferometer.names.grammars.words import find_family
from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short
from inferometer.patterns import late_re

_LONGEST = 4_000  # of an expression: what costs most in it stands near its front
_OWN_KERNELS: tuple[tuple[str, Family], ...] = (
    ("Reduction", "reduction"),
    ("Contraction", "gemm"),
    ("Convolution", "conv"),
    ("Scan", "scan_sort"),
)
_DECISIVE: tuple[tuple[str, Family], ...] = (  # wherever it is in the expression
    (r"Tensor(?:Tuple|Pair)?Reduc(?:tion|er)", "reduction"),
    (r"TensorScanOp", "scan_sort"),
    (r"TensorContraction", "gemm"),
    (r"TensorConvolution", "conv"),
    (r"(?:Uniform|Normal)RandomGenerator", "random"),
    (r"Gather\w{0,40}Generator", "gather_scatter"),
    (r"scalar_(?:logistic|tanh)_(?!\w*gradient)|scalar_relu", "activation"),
)
_ARITHMETIC = late_re(r"TensorCwise(?:Unary|Binary|Ternary)Op|TensorSelectOp|TensorGeneratorOp")
_MOVES = late_re(
    r"Tensor(?:Conversion|Broadcasting|Shuffling|(?:Strided?|Striding)?Slicing|Padding|Reverse|Concatenation|Reshaping|"
    r"Chipping|LayoutSwap|ForcedEval|Inflation|ImagePatch|CwiseNullary)Op"
)
_SCALAR = late_re(r"scalar_(\w{1,30}?)_op\b")
_GENERATED = late_re(r"([A-Z][A-Za-z0-9]{1,40})_GPU_DT_\w{1,60}_kernel")


def read(name: ParsedName) -> KernelName | None:
    """A kernel of Eigen, or one that TensorFlow generated."""
    if name.namespaces[:1] == ("Eigen",):
        return _read_eigen(name)
    match = _GENERATED.fullmatch(name.function) if not name.namespaces else None
    if match is None:
        return None
    operation = match[1].removesuffix("V2").removesuffix("V3")
    family: Family | None = "copy" if operation == "Cast" else find_family(operation)
    return _answer(family or "elementwise", "tensorflow", operation.lower(), rule="generated TensorFlow operator")


def _read_eigen(name: ParsedName) -> KernelName:
    for word, family in _OWN_KERNELS:
        if word in name.function:
            return _answer(family, "eigen", word.lower(), first_dtype(name.arguments, FLOATS))
    expression = name.text[name.text.find("TensorAssignOp") :][:_LONGEST]
    moves: Family = "copy" if _MOVES.search(expression) else "other"
    usual: Family = "elementwise" if _ARITHMETIC.search(expression) else moves
    family = next((family for pattern, family in _DECISIVE if re.search(pattern, expression)), usual)
    scalar = _SCALAR.search(expression) if family in ("elementwise", "activation") else None
    return _answer(family, "eigen", scalar[1].replace("_", " ") if scalar else family)


def _answer(
    family: Family, library: str, words: str, dtype: str | None = None, rule: str = "Eigen expression"
) -> KernelName:
    return KernelName(family=family, dtype=dtype, short_name=short(library, words, dtype), evidence=Evidence(rule, "D"))


GRAMMAR = Grammar("eigen", "form", read, spaces="Eigen", letters="ABCDEFGHIJKLMNOPQRSTUVWXYZ")
