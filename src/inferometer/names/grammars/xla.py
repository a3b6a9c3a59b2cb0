"""XLA's kernels and HLO instructions: `loop_add_fusion_3`, `wrapped_transpose`, `gemm_fusion_dot.2`, `copy-start.1`.

Source: openxla/xla, `hlo/ir/hlo_opcode.h` and `backends/gpu/transforms` (the fusions' names: `rename_fusions.cc`). A
fusion is named after the operations that make its outputs, sorted; what is computed on the way to them isn't in it.
Numbers, `clone` and `remat` after a name only keep names apart. `-start` and `-done` are the halves of one operation.
Left out: those that communicate (`collectives.py`), and what the calls into other libraries are named by users.
"""

from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short
from inferometer.patterns import late_re

_LONGEST = 300
_FAMILIES: dict[Family, str] = {  # what costs most in a fusion comes first
    "conv": "convolution",
    "grouped_gemm": "ragged_dot",
    "gemm": "dot dot_general scaled_dot",
    "scan_sort": "sort",
    "reduction": "reduce",
    "gather_scatter": "scatter gather",
    "random": "rng rng_bit_generator rng_get_and_update_state",
    "activation": "tanh logistic",
    "elementwise": """
        abs add and atan2 cbrt ceil clamp compare complex cosine count_leading_zeros divide erf exponential
        exponential_minus_one floor imag iota is_finite log log_plus_one maximum minimum multiply negate not or popcnt
        power real reduce_precision remainder round_nearest_afz round_nearest_even rsqrt select shift_left
        shift_right_arithmetic shift_right_logical sign sine sqrt stochastic_convert subtract tan xor
    """,
    "copy": """
        bitcast bitcast_convert broadcast concatenate convert copy dynamic_reshape dynamic_slice dynamic_update_slice
        pad reshape reverse slice transpose
    """,
    "other": """
        async call cholesky command_buffer conditional custom_call domain fft fusion get_tuple_element infeed map
        outfeed reduce_window select_and_scatter triangular_solve tuple while
    """,
}
_FAMILY_OF = {op: family for family, ops in _FAMILIES.items() for op in ops.split()}
_OP = late_re(f"(?:{'|'.join(sorted(_FAMILY_OF, key=len, reverse=True))})(?=_|$)")
_NUMBERS = late_re(r"(?:[._](?:\d+|clone|remat\d*))+$")
_HALF = late_re(r"-(?:start|update|done)$")
_KIND = late_re(r"(?:loop|input|output|custom)_")
_PRODUCTS = ("gemm_fusion", "triton_gemm", "cublas_gemm", "cublas_lt_matmul")


def read(name: ParsedName) -> KernelName | None:
    """A fusion, a single instruction that became a kernel, or an instruction that a trace names as such."""
    function = name.function
    if not name.is_bare or len(function) > _LONGEST:
        return None
    plain = _NUMBERS.sub("", function)
    stem = _HALF.sub("", plain).replace("-", "_")
    if stem.startswith(_PRODUCTS):
        return _answer(function, "gemm", "XLA product")
    is_fusion = stem.endswith("_fusion") or stem.startswith("wrapped_")
    family = _family(_KIND.sub("", stem.removeprefix("wrapped_").removesuffix("_fusion"), count=1))
    if family is None or not (is_fusion or "-" in plain or function != plain or stem == "fusion"):
        return None
    return _answer(function, family, "XLA fusion" if is_fusion else "HLO instruction")


def _family(outputs: str) -> Family | None:
    """The family of the operations in `outputs` that costs most; None where anything else stands among them."""
    families, at = set[Family](), 0
    while at < len(outputs):
        match = _OP.match(outputs, at)
        if match is None:
            return None
        families.add(_FAMILY_OF[match[0]])
        at = match.end() + 1
    return next((family for family in _FAMILIES if family in families), None)


def _answer(function: str, family: Family, rule: str) -> KernelName:
    return KernelName(family=family, short_name=short(function), evidence=Evidence(rule, "D"))


GRAMMAR = Grammar("xla", "form", read, spaces="")
