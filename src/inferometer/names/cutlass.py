"""CUTLASS: procedural names (`cutlass_80_tensorop_…`, `cutlass3x_sm90_…`) and kernels as C++ templates.

Source: CUTLASS's profiler documentation and headers. A procedural name of CUTLASS 2 is usually launched by cuBLAS; the
name can't tell. In CUTLASS 3, `GemmUniversal<Shape,CollectiveMma<Mainloop<Stages,Cluster,Schedule>,Tile,A,…>,…>`: a
shape of groups, or a schedule over arrays of pointers, makes a grouped product. `kernel_cutlass_…` (CuTe in Python)
tells its operator by words alone.
"""

import re

from inferometer.names.cublas import INSTRUCTIONS
from inferometer.names.dtypes import FLOATS, TYPES, dtype_of, product
from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName, arguments_of, last_word, split_template, tuple_numbers
from inferometer.names.short_names import short, size
from inferometer.names.words import find_family

_V2 = re.compile(
    r"cutlass(?:_(?P<arch>\d+))?_(?P<unit>simt|tensorop|wmma_tensorop)_(?P<names>\w*?)(?P<letter>[shdcziq]|gz|gc|)"
    r"(?P<mma>\d*)(?P<op>gemm|fprop|dgrad|wgrad|gemv|symm|syrk|trmm)(?P<rest>\w*)"
)
_V2_TILE = re.compile(r"_(\d+)x(\d+)_(\d+)x(\d+)")
_V3 = re.compile(
    r"cutlass3x_sm(?P<arch>\d+)a?_(?P<unit>\w*?tensorop|simt)_(?:\w*?_)??(?P<mma>[a-z]*\d+x\d+x\d+)?(?P<op>gemm|fprop)(?P<rest>\w*)"
)
_V3_TILE = re.compile(r"_(\d+)x(\d+)x(\d+)_(\d+x\d+x\d+)_(\d+)_([nt]{3})")
_TYPE_WORD = re.compile(r"_(bf16|f16|f32|tf32|f64|e4m3|e5m2|s8|u8|s32)(?=_)")
_LETTERS = {"s": "fp32", "h": "fp16", "d": "fp64", "c": "complex64", "i": "int8", "gc": "complex64"}
_IS_FLASH = re.compile(r"(?:\w+::)?(?:enable_\w+<)?flash::(?!enable)|flash::enable_\w+<flash::")
_WRAPPERS = frozenset({"Kernel", "Kernel2", "device_kernel", "device_kernel_unordered"})
_MAINLOOP = re.compile(r"Mainloop\w*<(?:(\d+)|[^<>,]*StageCount\w*<(\d+)>)")
_SCHEDULE = re.compile(r"Kernel(?:PtrArray)?\w*?(Pingpong|Cooperative)")
_GROUPED = re.compile(r"GroupProblemShape|MoEProblemShape|PtrArray|GemmGrouped|MoeFCGemm|GroupedGemm|ArrayProblemShape")
_ATTENTION = re.compile(r"[Ff]mha|FMHA|Mla\b|MLA|[Aa]ttention|Flash")
_COMBINE = re.compile(r"Reduction|Combine|MergeState")
_SHAPE = re.compile(r"GemmShape<(\d+),(\d+),(\d+)>")
_ARCH = re.compile(r"(?:arch::Sm|MainloopSm|MainloopXeSm|Sm)(\d{2,3})")
_FIRST_TYPE = re.compile(
    r"cutlass::(half_t|bfloat16_t|tfloat32_t|float_e4m3_t|float_e5m2_t)|(?<=[<,])(float|double|signed char)(?=[,>])"
)


def read(name: ParsedName) -> KernelName | None:
    """A name of CUTLASS, bare or inside one of its launchers."""
    function = name.function
    if name.namespaces[:1] and name.namespaces[0].startswith(("cutlass", "hytlass")) and function in _WRAPPERS:
        if name.arguments and _IS_FLASH.match(name.arguments[0]):
            return None
        inner = unwrap(name)
        text = last_word(split_template(inner)[0])
        is_cudnn = name.namespaces[0].endswith("cudnn")
        return _read_procedural(text, is_cudnn=is_cudnn) or _read_template(inner)
    if function.startswith("cutlass"):
        return _read_procedural(function, is_cudnn=False)
    if function.startswith("kernel_cutlass_"):
        return _read_python(function)
    return None


def unwrap(name: ParsedName) -> str:
    """The kernel inside `device_kernel<enable_sm90_or_later<K>>`."""
    inner = name.arguments[0] if name.arguments else ""
    for _ in range(4):
        head, arguments = split_template(inner)
        if not (last_word(head).startswith("enable_") and arguments):
            break
        inner = arguments[0]
    return inner


def _read_procedural(text: str, *, is_cudnn: bool) -> KernelName | None:
    match = _V3.match(text) or _V2.match(text)
    if match is None:
        return None
    is_new = text.startswith("cutlass3x")
    is_conv = match["op"] in ("fprop", "dgrad", "wgrad")
    tile = (_V3_TILE if is_new else _V2_TILE).search(match["rest"])
    m, n, k = (int(tile[1]), int(tile[2]), int(tile[3])) if tile else (None, None, None)
    stages = (int(tile[5] if is_new else tile[4]) or None) if tile else None
    types = _TYPE_WORD.findall(match["rest"] + "_")
    mma = match["mma"] or ""
    if is_new:
        dtype = product(TYPES.get(types[0]), TYPES.get(types[1])) if len(types) > 1 else None
        layout, instruction = tile[6] if tile else None, mma.lstrip("abcdefghijklmnopqrstuvwxyz") or None
    else:
        prefix = match["names"].strip("_").split("_")[0]
        plain = "tf32" if match["letter"] == "s" and mma else _LETTERS.get(match["letter"])
        dtype = TYPES.get(prefix) or (TYPES.get(types[0]) if types else None) or plain
        found = re.search(r"_([nt]{2})(?=_|$)", match["rest"])
        layout, instruction = found[1] if found else None, INSTRUCTIONS.get(mma)
    fused = tuple(word for word in ("bias", "relu", "gelu", "silu") if f"_{word}" in match["rest"])
    schedule = tuple(word for word in ("pingpong", "cooperative") if word in match["rest"])
    arch = f"sm{match['arch']}" if match["arch"] else None
    return KernelName(
        library="cudnn" if is_cudnn else "cutlass",
        family="conv" if is_conv else "gemm",
        dtype=dtype,
        tile_m=m,
        tile_n=n,
        tile_k=k,
        stages=stages,
        split_k="yes" if re.search(r"split_?k", match["rest"], re.IGNORECASE) else None,
        arch=arch,
        cluster=tile[4] if tile and is_new else None,
        layout=layout,
        instruction=instruction,
        flags=schedule,
        fused=fused,
        short_name=short(
            *("cutlass", "conv" if is_conv else "gemm", arch if is_new else "", dtype, match["unit"], size(m, n, k)),
            *(f"s{stages}" if stages else "", *schedule, *fused, layout),
        ),
        evidence=Evidence("CUTLASS procedural name", "D"),
    )


def _read_template(inner: str) -> KernelName:
    head, arguments = split_template(inner)
    kind = last_word(head)
    arch = _ARCH.search(inner)
    arch_name = f"sm{arch[1]}" if arch else None
    if _ATTENTION.search(kind) or "::fmha::" in head:
        family: Family = "attention_combine" if _COMBINE.search(kind) else "attention"
        dtype = _first_type(inner)
        words = "fmha combine" if family == "attention_combine" else "fmha mla" if "Mla" in kind else "fmha"
        return KernelName(
            library="cutlass",
            family=family,
            dtype=dtype,
            arch=arch_name,
            short_name=short("cutlass", words, arch_name, dtype),
            evidence=Evidence("CUTLASS attention template", "I"),
        )
    if "reduction::" in head or "ReduceSplitK" in kind:
        return KernelName(
            library="cutlass",
            family="gemm_epilogue",
            short_name="cutlass splitK reduce",
            evidence=Evidence("CUTLASS reduction template", "D"),
        )
    if "conv::" in head or "Convolution" in kind or "ConvUniversal" in kind:
        return _with_tile(inner, "conv", arch_name)
    if "gemm" in inner or "Gemm" in inner:
        grouped = _GROUPED.search(kind) or (arguments and _GROUPED.search(inner))
        return _with_tile(inner, "grouped_gemm" if grouped else "gemm", arch_name)
    return KernelName(
        library="cutlass",
        family=find_family(kind) or "other",
        arch=arch_name,
        short_name=short("cutlass", kind),
        evidence=Evidence("words of a CUTLASS template", "I"),
    )


def _with_tile(inner: str, family: Family, arch: str | None) -> KernelName:
    """A matrix product or convolution: what CollectiveMma, or CUTLASS 2's threadblock, says of tile and types."""
    collective = arguments_of("CollectiveMma", inner) or arguments_of("CollectiveConv", inner)
    tile: list[int] = []
    dtype, stages = None, None
    if collective:
        if len(collective) >= 5:
            tile = _tile(collective[1])
            dtype = product(dtype_of(collective[2]), dtype_of(collective[4]))
            mainloop = _MAINLOOP.search(collective[0])
            stages = int((mainloop[1] or mainloop[2])[:4]) if mainloop else None
    else:
        shape = _SHAPE.search(inner)
        tile = [int(number[:6]) for number in shape.groups()] if shape else []
        dtype = _first_type(inner)
        multistage = arguments_of("MmaMultistage", inner)
        if len(multistage) > 10 and re.fullmatch(r"\d{1,3}", multistage[10]):
            stages = int(multistage[10])
    m, n, k = tile[:3] if len(tile) >= 3 else (None, None, None)
    schedule = _SCHEDULE.search(inner)
    flags = (schedule[1].lower(),) if schedule else ()
    split = "yes" if "GemmSplitKParallel" in inner else None
    words = {"conv": "conv", "grouped_gemm": "grouped gemm"}.get(family, "gemm")
    return KernelName(
        library="cutlass",
        family=family,
        dtype=dtype,
        tile_m=m,
        tile_n=n,
        tile_k=k,
        stages=stages,
        split_k=split,
        arch=arch,
        flags=flags,
        short_name=short("cutlass", words, arch, dtype, size(m, n, k), f"s{stages}" if stages else "", *flags),
        evidence=Evidence("CUTLASS template", "D"),
    )


def _tile(shape: str) -> list[int]:
    """M, N, K of a tile; none where the argument is something else, as in kernels for mixed types."""
    numbers = tuple_numbers(shape) if shape.startswith("cute::tuple<") else []
    return numbers if len(numbers) == 3 and all(number >= 8 for number in numbers) else []


def _first_type(text: str) -> str | None:
    match = _FIRST_TYPE.search(text)
    dtype = dtype_of(match[0]) if match else None
    return dtype if dtype in FLOATS | {"int8"} else None


def _read_python(function: str) -> KernelName:
    """`kernel_cutlass_<function>_<tensors>`: the types of the tensors are mangled, and left alone."""
    words = re.split(r"_(?:tensor|object_at|TiledMMA|None)", function.removeprefix("kernel_cutlass_"))[0]
    return KernelName(
        library="cutlass",
        family=find_family(words) or "other",
        short_name=short("cute_dsl", words[:48].lower()),
        evidence=Evidence("words of a CuTe DSL name", "I"),
    )


GRAMMAR = Grammar("cutlass", "form", read, spaces="cutlass.*|hytlass.*", letters="ck")
