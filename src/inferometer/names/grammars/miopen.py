"""MIOpen: convolutions (implicit GEMM, Winograd, direct, naive) and the tensor kernels around them.

`igemm_<way>_<kind>_<layout>_<type>_…_bt<M>x<N>x<K>_…`; `naive_conv_<packing>_<way>_<layout>_<in>_<acc>_<out>`;
`miopenSp3AsmConv_…_gfx<arch>_<type>_…`. Source: MIOpen's public repository. `half` is a type in a naive convolution,
but only 16 bits in a transpose.
"""

import re

from inferometer.names.dtypes import TYPES
from inferometer.names.kernel_name import Evidence, Family, KernelName, Mark
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short, size
from inferometer.patterns import late_re

_IGEMM = late_re(
    r"igemm_(?P<way>fwd|bwd|wrw)_(?P<kind>\w+?)_(?P<layout>nhwc|nchw|nchwc)_(?P<type>fp32|fp16|bf16|int8)_(?P<rest>\w*)"
)
_NAIVE = late_re(r"naive_conv_\w*?(?P<way>fwd|bwd|wrw)_[a-z]+_(?P<type>float|half|ushort|int8_t)_")
_WINOGRAD = late_re(r"miopenSp3AsmConv_\w*?_(?P<arch>gfx\d{1,2})_(?P<type>fp32|fp16|bf16)")
_BATCHED = late_re(r"batched_transpose_(?P<tile>\d+x\d+)\w*?_(?P<type>half|dword|ushort|byte)")
_FUNCTIONS: tuple[tuple[str, Family], ...] = (
    (r"miopenSp3AsmConv\w*|miopenGcnAsm\w*|MIOpenConv\w*|gcnAsmConv\w*|naive_conv_\w+|xdlops_conv\w*", "conv"),
    (r"gridwise_convolution_\w+", "conv"),
    (r"Im2d?2Col\w*|Im3d2Col\w*|Col2Im\w*|transpose_NCHW2Vec\w*|transpose_\w*CHW\w*", "copy"),
    (r"SubTensorOp\w*|OpTensor\w*|Op[1-5]dTensor\w*|ScaleTensor\w*|SetTensor\w*", "elementwise"),
    (r"MIOpen(?:BatchNorm|LayerNorm|GroupNorm|LRN)\w*|(?:Add|T5)?[Ll]ayer[Nn]orm(?:Fwd|Bwd)\w*", "norm"),
    (r"MIOpenNeuron\w*|MIOpenActi\w*", "activation"),
    (r"Softmax\w*", "softmax"),
    (r"mloPooling\w*", "reduction"),
    (r"InitKernelState\w*|Dropout(?:Forward|Backward)\w*", "random"),
)
_FUNCTIONS_COMPILED = tuple((late_re(pattern), family) for pattern, family in _FUNCTIONS)
_NAIVE_TYPES = {"float": "fp32", "half": "fp16", "ushort": "bf16", "int8_t": "int8"}


def read(name: ParsedName) -> KernelName | None:
    """A kernel of MIOpen."""
    function = name.function
    if (match := _IGEMM.match(function)) is not None:
        tile = re.search(r"_bt(\d+)x(\d+)x(\d+)", f"_{match['rest']}")
        sizes = tuple(int(number[:6]) for number in tile.groups()) if tile else (None, None, None)
        dtype = TYPES[match["type"]]
        return _answer("conv", ("conv", match["way"], dtype, size(*sizes)), "implicit gemm", dtype=dtype, tile=sizes)
    if (match := _NAIVE.match(function)) is not None:
        dtype = _NAIVE_TYPES[match["type"]]
        return _answer("conv", ("naive conv", match["way"], dtype), "naive convolution", dtype=dtype)
    if (match := _WINOGRAD.match(function)) is not None:
        dtype = TYPES[match["type"]]
        words = ("winograd conv", match["arch"], dtype)
        return _answer("conv", words, "Winograd", dtype=dtype, arch=match["arch"])
    if (match := _BATCHED.match(function)) is not None:
        return _answer("copy", ("transpose", match["tile"]), "transpose")
    for pattern, family in _FUNCTIONS_COMPILED:
        if pattern.fullmatch(function):
            return _answer(family, (function[:48],), "function", mark="I")
    return None


def _answer(
    family: Family,
    words: tuple[str, ...],
    rule: str,
    *,
    dtype: str | None = None,
    tile: tuple[int | None, ...] = (None, None, None),
    arch: str | None = None,
    mark: Mark = "D",
) -> KernelName:
    return KernelName(
        library="miopen",
        family=family,
        dtype=dtype,
        tile_m=tile[0],
        tile_n=tile[1],
        tile_k=tile[2],
        arch=arch,
        short_name=short("miopen", *words),
        evidence=Evidence(f"MIOpen {rule}", mark),
    )


GRAMMAR = Grammar("miopen", "namespace", read, spaces="", letters="ACDILMOSTbgilmntx")
