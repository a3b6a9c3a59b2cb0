"""Candle, the library under several engines in Rust: `<op>_<type>[_<type>]`, such as `ucopy_bf16` and `cast_f32_bf16`.

Unary operators begin with `u`, binary ones with `b`; index kernels name the type of the index first. Source: the
kernels of the crate candle-kernels, whose functions have no parameters in their names.
"""

import re

from inferometer.names.dtypes import TYPES
from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short
from inferometer.patterns import late_re

_TYPE = r"(?:bf16|f16|f32|f64|f8_e4m3|u8|u32|i16|i32|i64)"
_FAMILIES: tuple[tuple[Family, str], ...] = (
    ("copy", "ucopy|cast|copy2d|const_set"),
    ("activation", "ugelu|ugelu_erf|urelu|uelu|usilu|usigmoid|utanh"),
    ("elementwise", "u(?:neg|recip|exp|log|sin|cos|erf|ceil|floor|round|normcdf|abs|sqr|sqrt|powf|sign)"),
    ("elementwise", "b(?:add|sub|mul|div|minimum|maximum)|affine|where"),
    ("reduction", "fast_(?:sum|min|max|argmin|argmax)|sum"),
    ("gather_scatter", "is|ia|sa|gather|s"),
    ("scan_sort", "asort_(?:asc|desc)"),
    ("norm", "rmsnorm|layernorm"),
    ("rope", "rope|rope_i|rope_thd"),
    ("softmax", "softmax"),
)
_NAME = late_re("|".join(rf"(?P<_{i}>{ops})(?P<types{i}>(?:_{_TYPE})+)" for i, (_, ops) in enumerate(_FAMILIES)))
_OWN = late_re(r"[ub][a-z_]+_[a-z0-9_]+|fast_\w+|(?:is|ia|sa)_\w+_\w+|cast_\w+_\w+|affine_\w+|asort_\w+|copy2d_\w+")


def read(name: ParsedName) -> KernelName | None:
    """A kernel whose name no other library writes so."""
    function = name.function
    if not name.is_bare or len(function) > 60 or _OWN.fullmatch(function) is None:
        return None
    match = _NAME.fullmatch(function)
    if match is None:
        return None
    at = next(i for i in range(len(_FAMILIES)) if match[f"_{i}"] is not None)
    types = [TYPES.get(found) for found in re.findall(_TYPE, match[f"types{at}"])]
    dtype = types[-1]
    if match[f"_{at}"] == "cast":
        dtype = f"{types[0]}>{types[-1]}" if len(types) == 2 and None not in types else None
    return KernelName(
        family=_FAMILIES[at][0],
        dtype=dtype,
        short_name=short("candle", match[f"_{at}"].replace("_", " "), dtype),
        evidence=Evidence("candle kernel", "D"),
    )


GRAMMAR = Grammar("candle", "form", read, spaces="", letters="ubficswgar")
