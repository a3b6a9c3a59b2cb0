"""Kernels that TensorRT's compiler Myelin generates: `__myl_<operations>_myl<n>_<n>`, `__myl_FcCast_myl2_7`.

Source: profiles of TensorRT engines; NVIDIA documents none of it, so all is inferred. Operations are cut to three or
four letters, in the order in which they were fused. Reductions are told apart only where a softmax or a norm shows.
"""

from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short
from inferometer.patterns import late_re

_NAME = late_re(r"__myl_(?:bb\d{1,4}_\d{1,4}_)?([A-Za-z]{1,200})(?:_\w{0,60})?")
_OPERATION = late_re(r"[A-Z][a-z]*")
_FAMILIES: tuple[tuple[Family, frozenset[str]], ...] = (  # any of these operations
    ("gemm", frozenset({"Fc", "Gemm", "Mat", "Matm", "Mm"})),
    ("conv", frozenset({"Conv"})),
    ("activation", frozenset({"Silu", "Sil", "Gelu", "Gel", "Relu", "Tanh", "Tan", "Sigm", "Sig", "Erf"})),
)
_ROOTS = frozenset({"Sqr", "Sqrt", "Rsq", "Rsqr"})
_MOVES = frozenset({"Mov", "Move", "Cas", "Cast", "Tra", "Tran", "Conc", "Res", "Resh", "Sli", "Slic", "Repl"})
_ARITHMETIC = frozenset({"Add", "Sub", "Mul", "Div", "Pow", "Sqr", "Sqrt", "Exp", "Log", "Neg", "Abs", "Sel", "Sele"})


def read(name: ParsedName) -> KernelName | None:
    """A kernel of Myelin; its family where the operations leave no choice."""
    match = _NAME.fullmatch(name.function) if name.is_bare else None
    if match is None:
        return None
    operations = _OPERATION.findall(match[1])
    return KernelName(
        family=_family(operations),
        short_name=short("myelin", " ".join(operations).lower()),
        evidence=Evidence("operations that Myelin fused", "I"),
    )


def _family(operations: list[str]) -> Family:
    for family, words in _FAMILIES:
        if not words.isdisjoint(operations):
            return family
    if {"Exp", "Sum", "Div"} <= set(operations):
        return "softmax"
    if "Mean" in operations and not _ROOTS.isdisjoint(operations):
        return "norm"
    if _MOVES.issuperset(operations):
        return "copy"
    return "elementwise" if (_MOVES | _ARITHMETIC).issuperset(operations) else "other"


GRAMMAR = Grammar("myelin", "form", read, spaces="", letters="_")
