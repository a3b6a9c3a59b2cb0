"""AMD's inference kernels: AITER, Composable Kernel, MIOpen. Sources: their public repositories; names as recorded.

AITER has C++ templates in its namespace, assembly with plain names (`fmoe_…`, `mla_dec_…`) and generated kernels
(`hgemm_bf16_…`, `mfma_moe1_afp8_wfp4_…`). ROCm's paged attention belongs to vLLM unless a `ck_tile` variant is an
argument.
"""

import re

from inferometer.names.dtypes import FLOATS, TYPES, first_dtype, product
from inferometer.names.kernel_name import Evidence, Family, KernelName, Library, Mark
from inferometer.names.reading import Grammar, ParsedName, last_word, numbers, split_template
from inferometer.names.short_names import short, size
from inferometer.names.words import find_family

_SHORT_TYPES = TYPES | {
    "fp8": "fp8_e4m3",
    "fp4": "mxfp4",
    "h": "fp16",
    "b": "bf16",
    "f": "fp32",
    "a8": "",
    "i8": "int8",
}
_HGEMM = re.compile(r"hgemm_(?P<type>[a-z0-9]+?)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)(?:x(?P<s>\d+))?(?:_\w*)?")
_MOE = re.compile(
    r"mfma_moe(?P<stage>[12])_a(?P<a>[a-z0-9]+)_w(?P<w>[a-z0-9]+)_(?:\w*?_)?t(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)(?:_\w*)?"
)
_ASM: tuple[tuple[str, Family], ...] = (
    (r"fmoe_|_?ZN5aiter\d*fmoe|fmoe$", "grouped_gemm"),
    (r"moe_(?:ck2stages|stage[12]|gemm)", "grouped_gemm"),
    (r"mla_(?:dec|a8w8|a16w16|stage1|prefill_ps|pfl)\w*", "attention_decode"),
    (r"mla_reduce\w*|kn_mla_reduce\w*", "attention_combine"),
    (r"kn_get_mla_metadata\w*", "attention_metadata"),
    (r"pa_(?:bf16|fp16|fp8|a16w16|a8w8|mqa)\w*|pa_decode\w*", "attention_decode"),
    (r"fmha_(?:fwd|bwd)_\w+|fmha_v3\w*|_?fwd_hd\d+_\w+|bwd_hd\d+_\w+", "attention"),
    (r"(?:f4gemm|f8_block_scale|i8gemm|bf16gemm|fp8gemm|a8w8_|a4w4_)\w+", "gemm"),
)
_ASM_COMPILED = tuple((re.compile(pattern), family) for pattern, family in _ASM)
_ADD = re.compile(r"add_rmsnorm")
_IGEMM = re.compile(
    r"igemm_(?P<way>fwd|bwd|wrw)_(?P<kind>\w+?)_(?P<layout>nhwc|nchw|nchwc)_(?P<type>fp32|fp16|bf16)_(?P<rest>\w*)"
)
_BATCHED = re.compile(r"batched_transpose_(?P<tile>\d+x\d+)\w*?_(?P<type>half|dword|ushort|byte)")
_MIOPEN: tuple[tuple[str, Family], ...] = (
    (r"Im2d?2Col\w*|Im3d2Col\w*|Col2Im\w*", "copy"), (r"SubTensorOp\w*|OpTensor\w*|Op[1-5]dTensor\w*", "elementwise"),
    (r"MIOpenBatchNorm\w*|MIOpenLayerNorm\w*", "norm"), (r"mloPooling\w*", "other"), (r"Softmax\w*", "softmax"),
    (r"miopenSp3AsmConv\w*|miopenGcnAsmConv\w*|MIOpenConv\w*|gcnAsmConv\w*|naive_conv_\w+|xdlops_conv\w*", "conv"),
    (r"MIOpenNeuron\w*|MIOpenActi\w*", "activation"), (r"transpose_NCHW2Vec\w*|transpose_\w*CHW\w*", "copy"),
)  # fmt: skip
_MIOPEN_COMPILED = tuple((re.compile(pattern), family) for pattern, family in _MIOPEN)


def read(name: ParsedName) -> KernelName | None:
    """A kernel of AITER, Composable Kernel or MIOpen."""
    function, spaces = name.function, name.namespaces
    if spaces[:1] == ("aiter",):
        return _read_aiter(name)
    if spaces[:1] in (("ck",), ("ck_tile",)):
        return _read_ck(name)
    if function.startswith("paged_attention_ll4mi_"):
        return _read_paged(name)
    if not spaces and function[:1] in "hmfpka_":
        found = _read_asm(function)
        if found is not None:
            return found
    return _read_miopen(name) if not spaces else None


def _read_aiter(name: ParsedName) -> KernelName:
    function = name.function
    dtype = first_dtype(name.arguments, FLOATS)
    family = "rope" if function.startswith("kn_entry_") else find_family(function) or "other"
    if family == "moe_routing":
        dtype = None  # of the scores, not of the tokens
    words = function.removesuffix("_kernel").replace("_", " ")
    flags = [argument for argument in name.arguments if argument in ("0", "1")]
    fused: tuple[str, ...] = ()
    if _ADD.match(function):
        adds = _bool_at(name.arguments, 0)
        quantizes = _bool_at(name.arguments, 1)
        fused = (*(["residual"] if adds else []), *(["quant"] if quantizes else []))
        words, family = f"{'add + ' if adds or not flags else ''}rms_norm{' + quant' if quantizes else ''}", "norm"
    return _answer("aiter", family, words, dtype, "AITER function", fused=fused)


def _bool_at(arguments: tuple[str, ...], index: int) -> bool:
    """The flag of that number: flags stand after two types and two sizes."""
    return arguments[4 + index : 5 + index] == ("1",)


def _read_ck(name: ParsedName) -> KernelName:
    text = name.arguments[1] if name.function == "kentry" and len(name.arguments) > 1 else ""
    kernels = [argument for argument in name.arguments if re.match(r"(?:ck_tile::)?[A-Z]\w+", argument)]
    inner = next((argument for argument in (*kernels, text) if not argument.isdecimal()), "")
    kind = (
        last_word(split_template(inner)[0]) if name.function.startswith(("kentry", "kernel_entry")) else name.function
    )
    if name.function.startswith(("kernel_gemm_", "kernel_batched_gemm", "kernel_grouped_gemm", "kernel_moe")):
        kind = name.function
    family: Family
    if re.search(r"Fmha", kind):
        family = "attention_combine" if "Combine" in kind else "kv_cache" if "AppendKV" in kind else "attention"
    elif re.search(r"[Mm]oe(?:Sort|_sort)", kind) or "Topk" in kind:
        family = "moe_routing"
    elif re.search(r"[Mm]oe|[Gg]rouped_?[Gg]emm|FusedMoe", kind):
        family = "grouped_gemm"
    elif re.search(r"conv", kind, re.IGNORECASE):
        family = "conv"
    elif re.search(r"gemm", kind, re.IGNORECASE):
        family = "gemm"
    else:
        family = find_family(kind) or "other"
    shape = re.search(r"sequence<(\d+),(\d+),(\d+),(\d+),(\d+),(\d+)>", name.text) if "Fmha" in kind else None
    m, n = (int(shape[1][:5]), int(shape[2][:5])) if shape else (None, None)
    dtype = _ck_type(name.text) if family in ("attention", "attention_combine", "gemm", "grouped_gemm") else None
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.removesuffix("Kernel").removeprefix("kernel_")).replace("_", " ")
    return _answer("ck", family, f"ck {words.lower()}", dtype, "Composable Kernel", tile=(m, n, None))


def _ck_type(text: str) -> str | None:
    """The type of inputs: 16-bit names are written out; `unsigned short` is how CK stores bf16."""
    found = re.search(r"(?<=[<,])(DF16b|std::bfloat16_t|__bf16|_Float16|ck::bhalf_t)(?=[,>])", text)
    return TYPES.get(last_word(found[1])) if found else None


def _read_paged(name: ParsedName) -> KernelName:
    library: Library = "aiter" if "ck_tile::" in name.text or "aiter::" in name.text else "vllm"
    dtype, ints = first_dtype(name.arguments, FLOATS), numbers(name.arguments)
    if "reduce" in name.function:
        head = next((value for value in ints if value is not None), None)
        words = short("paged attention reduce", dtype, f"d{head}" if head else "")
        return _answer(
            library, "attention_combine", words, None, "ROCm paged attention", dtype_too=dtype, head_dim=head
        )
    kind = re.search(r"mfma(\d+)", name.function)
    sizes = [value for value in ints[4:] if value is not None and value > 1]
    depth = sizes[0] if sizes and sizes[0] in (64, 80, 96, 112, 120, 128, 192, 256) else None
    depth = sizes[1] if sizes[:1] == [16] and len(sizes) > 1 else depth
    words = short("paged attention", f"mfma{kind[1]}" if kind else "", dtype, f"d{depth}" if depth else "")
    return _answer(library, "attention_decode", words, None, "ROCm paged attention", dtype_too=dtype, head_dim=depth)


def _read_asm(function: str) -> KernelName | None:
    if (match := _HGEMM.fullmatch(function)) is not None:
        dtype = _SHORT_TYPES.get(match["type"]) or None
        stages = int(match["s"][:3]) if match["s"] else None
        tile = tuple(int(match[axis][:6]) for axis in "mnk")
        words = short("aiter hgemm", dtype, size(*tile), f"s{stages}" if stages else "")
        return _answer("aiter", "gemm", words, None, "AITER hgemm", dtype_too=dtype, tile=tile, stages=stages)
    if (match := _MOE.fullmatch(function)) is not None:
        dtype = product(_SHORT_TYPES.get(match["a"]) or None, _SHORT_TYPES.get(match["w"]) or None)
        tile = tuple(int(match[axis][:6]) for axis in "mnk")
        words = short(f"aiter moe stage {match['stage']}", dtype, size(*tile))
        return _answer("aiter", "grouped_gemm", words, None, "AITER moe", dtype_too=dtype, tile=tile)
    for pattern, family in _ASM_COMPILED:
        if pattern.match(function):
            return _answer("aiter", family, f"aiter {function[:50]}", None, "AITER assembly", mark="I")
    return None


def _read_miopen(name: ParsedName) -> KernelName | None:
    function = name.function
    if (match := _IGEMM.match(function)) is not None:
        tile = re.search(r"_bt(\d+)x(\d+)x(\d+)", f"_{match['rest']}")
        sizes = tuple(int(number[:6]) for number in tile.groups()) if tile else (None, None, None)
        dtype = TYPES[match["type"]]
        words = short("miopen conv", match["way"], dtype, size(*sizes))
        return _answer("miopen", "conv", words, None, "MIOpen implicit gemm", dtype_too=dtype, tile=sizes)
    if (match := _BATCHED.match(function)) is not None:
        return _answer("miopen", "copy", f"miopen transpose {match['tile']}", None, "MIOpen transpose")
    for pattern, family in _MIOPEN_COMPILED:
        if pattern.fullmatch(function):
            return _answer("miopen", family, f"miopen {function[:48]}", None, "MIOpen function", mark="I")
    return None


def _answer(
    library: Library,
    family: Family,
    words: str,
    dtype: str | None,
    rule: str,
    *,
    dtype_too: str | None = None,
    tile: tuple[int | None, ...] = (None, None, None),
    mark: Mark = "D",
    **more: object,
) -> KernelName:
    """`dtype` is added to the words; `dtype_too` stands in them already."""
    return KernelName(
        library=library,
        family=family,
        dtype=dtype or dtype_too,
        tile_m=tile[0],
        tile_n=tile[1],
        tile_k=tile[2],
        short_name=short(words, dtype),
        evidence=Evidence(rule, mark),
        **more,  # type: ignore[arg-type]
    )


GRAMMAR = Grammar("amd", "namespace", read, spaces="aiter|ck|ck_tile|vllm")
