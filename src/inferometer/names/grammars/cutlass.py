"""CUTLASS: kernels as C++ templates, and the launchers around them; names made by its generator are read next door.

Source: CUTLASS's headers. In CUTLASS 3, `GemmUniversal<Shape,CollectiveMma<Mainloop<Stages,Cluster,…>,Tile,A,…>,…>`: a
shape of groups, or a schedule over arrays of pointers, makes a grouped product. Products of mixed types (Machete,
`…MixedInput`, `DqMma…`) have their weight first or second, in a narrower type. `kernel_cutlass_…` (CuTe in Python)
shows its operator by words alone.
"""

import re

from inferometer.names.cutlass_generated import read_cut, read_procedural
from inferometer.names.dtypes import FLOATS, TYPES, dtype_of, product
from inferometer.names.grammars.words import find_family
from inferometer.names.kernel_name import Evidence, Family, KernelName, Library
from inferometer.names.reading import Grammar, ParsedName, arguments_of, last_word, split_template
from inferometer.names.short_names import short, size
from inferometer.patterns import late_re

_IS_FLASH = late_re(r"(?:\w+::)?(?:enable_\w+<)?flash::(?!enable)")
_WRAPPERS = frozenset({"Kernel", "Kernel2", "device_kernel", "device_kernel_unordered"})
_MAINLOOP = late_re(r"Mainloop\w*<(?:(\d+)|[^<>,]*StageCount\w*<(\d+)>)")
_SCHEDULE = late_re(r"Kernel(?:PtrArray)?\w*?(Pingpong|Cooperative)")
_GROUPED = late_re(r"GroupProblemShape|MoEProblemShape|PtrArray|GemmGrouped|MoeFCGemm|GroupedGemm|ArrayProblemShape")
_ATTENTION = late_re(r"[Ff]mha|FMHA|Mla\b|MLA|[Aa]ttention|Flash")
_COMBINE = late_re(r"Reduction|Combine|MergeState")
_SHAPE = late_re(r"GemmShape<(\d+),(\d+),(\d+)>")
_ARCH = late_re(r"(?:Sm|_sm|::SM(?=\d+[A-Z][a-z]))(\d{2,3})")
_TILE = late_re(r"cute::tuple<cute::C<(\d+)>,cute::C<(\d+)>,cute::(?:C<(\d+)>[,>]|tuple<)")
_COLLECTIVE = late_re(r"Collective(?:Mma|Conv)\w{0,40}(?=<)")
_THREADBLOCK = late_re(r"Mma(?:Multistage|Pipelined)(?=<)")
_INTEGER = late_re(r"integer_subbyte<(\d{1,2}),")
_FIRST_TYPE = late_re(
    r"cutlass::(half_t|bfloat16_t|tfloat32_t|float_e4m3_t|float_e5m2_t)|(?<=[<,])(float|double|signed char)(?=[,>])"
)
_WIDE = frozenset({"bf16", "fp16", "fp32"})
_NARROWEST = frozenset({"int4", "int2", "int1", "mxfp4", "nvfp4"})
_PYTHON_TYPE = late_re(r"tensorptr(bf16|f16|f32|tf32|f8E4M3FN|f8E5M2)gm")
_PYTHON_TYPES = TYPES | {"f8E4M3FN": "fp8_e4m3", "f8E5M2": "fp8_e5m2"}
_IS_COLLECTIVE = late_re(r"all_?reduce|all_?gather|all_?to_?all|reduce_?scatter", re.IGNORECASE)
_IS_NARROW = late_re(r"w\d{1,2}a\d{1,2}", re.IGNORECASE)  # the widths of weights and activations of a product
_PYTHON_LIBRARIES: tuple[tuple[str, Library], ...] = (
    ("flashinfer", "flashinfer"), ("vllm", "vllm"), ("sgl_kernel", "sgl_kernel"), ("sglang", "sgl_kernel"),
    ("tensorrt_llm", "tensorrt_llm"),
)  # fmt: skip


def read(name: ParsedName) -> KernelName | None:
    """A name of CUTLASS, bare or inside one of its launchers."""
    function = name.function
    if name.namespaces[:1] and name.namespaces[0].startswith(("cutlass", "hytlass")) and function in _WRAPPERS:
        if name.arguments and _IS_FLASH.match(name.arguments[0]):
            return None
        inner = unwrap(name)
        text = last_word(split_template(inner)[0])
        is_cudnn = "cudnn" in name.namespaces[0]
        generated = read_procedural(text, is_cudnn=is_cudnn) or read_cut(text, is_cudnn=is_cudnn)
        return generated or _read_template(inner, is_cudnn=is_cudnn)
    if function.startswith("cutlass"):
        return read_procedural(function, is_cudnn=False)
    if function.startswith("kernel_cutlass_"):
        return _read_python(function)
    return _read_helper(name) if name.namespaces[:1] == ("cutlass",) else None


def _read_helper(name: ParsedName) -> KernelName:
    """A function of CUTLASS that isn't launched by a wrapper, as `reorder_tensor_kernel`."""
    return KernelName(
        library="cutlass",
        family=find_family(name.function) or "other",
        short_name=short("cutlass", name.function),
        evidence=Evidence("words in CUTLASS's namespace", "I"),
    )


def unwrap(name: ParsedName) -> str:
    """The kernel inside `device_kernel<enable_sm90_or_later<K>>`."""
    inner = name.arguments[0] if name.arguments else ""
    for _ in range(4):
        head, arguments = split_template(inner)
        if not (last_word(head).startswith("enable_") and arguments):
            break
        inner = arguments[0]
    return inner


def _read_template(inner: str, *, is_cudnn: bool) -> KernelName:
    head = split_template(inner)[0]
    kind = last_word(head)
    arch = _ARCH.search(inner)
    arch_name = f"sm{arch[1]}" if arch else None
    if _ATTENTION.search(kind) or "::fmha::" in head:
        family: Family = "attention_combine" if _COMBINE.search(kind) else "attention"
        dtype = _first_type(inner)
        words = "fmha combine" if family == "attention_combine" else "fmha mla" if "Mla" in kind else "fmha"
        words += " bwd" if "Bwd" in kind else ""
        m, n, depth = _tile(inner)
        return KernelName(
            library="cutlass",
            family=family,
            dtype=dtype,
            tile_m=m,
            tile_n=n,
            tile_k=depth,
            arch=arch_name,
            head_dim=depth,
            short_name=short("cutlass", words, arch_name, dtype, size(m, n), f"d{depth}" if depth else ""),
            evidence=Evidence("CUTLASS attention template", "I"),
        )
    if "reduction::" in head or "ReduceSplitK" in kind:
        return KernelName(
            library="cutlass",
            family="gemm_epilogue",
            short_name="cutlass splitK reduce",
            evidence=Evidence("CUTLASS reduction template", "D"),
        )
    if (
        "conv::" in head
        or "Convolution" in kind
        or "ConvUniversal" in kind
        or (is_cudnn and kind.startswith("cutlass_"))
    ):
        return _with_tile(inner, "conv", arch_name)
    if "gemm" in head.lower() or (_COLLECTIVE.search(inner) and "transform::" not in head):
        return _with_tile(inner, "grouped_gemm" if _GROUPED.search(inner) else "gemm", arch_name)
    return KernelName(
        library="cutlass",
        family=find_family(kind) or "other",
        dtype=_first_type(inner),
        arch=arch_name,
        short_name=short("cutlass", kind),
        evidence=Evidence("words of a CUTLASS template", "I"),
    )


def _with_tile(inner: str, family: Family, arch: str | None) -> KernelName:
    """A matrix product or convolution: what its collective, or CUTLASS 2's threadblock, says of tile and types."""
    dtype = stages = None
    shape = _SHAPE.search(inner)
    if (collective := _COLLECTIVE.search(inner)) is not None:
        arguments = arguments_of(collective[0], inner)
        dtype = _collective_type(arguments, inner)
        mainloop = _MAINLOOP.search(arguments[0] if arguments else "")
        stages = int((mainloop[1] or mainloop[2])[:4]) if mainloop else None
        m, n, k = _tile(inner)
    elif shape is not None:
        m, n, k = (int(number[:6]) for number in shape.groups())
        dtype, stages = _threadblock_type(inner), _threadblock_stages(inner)
    else:
        m, n, k = _tile(inner)
        dtype = "fp8_e4m3" if "_gemm_fp8_" in inner[:200] else _first_type(inner)
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


def _tile(text: str) -> tuple[int | None, int | None, int | None]:
    """The first shape of three numbers that are too large for a cluster: M, N, K; in attention M, N, head size.

    Where the head has two parts, as in MLA, its size stays empty.
    """
    for match in _TILE.finditer(text):
        m, n, k = (int(number[:6]) for number in match.groups("8"))
        if min(m, n, k) >= 8:
            return m, n, k if match[3] else None
    return None, None, None


def _collective_type(arguments: tuple[str, ...], inner: str) -> str | None:
    if "machete::" in inner[:400]:
        layout = arguments_of("PrepackedLayoutBTemplate", inner)
        return _ordered(_element(layout[0]), _element(layout[1])) if len(layout) > 1 else None
    return _ordered(_element(arguments[2]), _element(arguments[4])) if len(arguments) >= 5 else None


def _element(text: str) -> str | None:
    """The type of an operand; of a tuple with the types of its scales, the first."""
    dtype = dtype_of(text)
    if dtype is None and text.startswith("cute::tuple<"):
        return _element(split_template(text)[1][0])
    whole = _INTEGER.search(text[:80])
    return f"int{whole[1]}" if dtype is None and whole else dtype


def _ordered(first: str | None, second: str | None) -> str | None:
    """The product of two operands: mixed products put the weight first, so that the narrower type is the weight."""
    swapped = (second in _WIDE and first not in _WIDE) or (first in _NARROWEST and second not in _NARROWEST)
    return product(second, first) if swapped else product(first, second)


def _threadblock_type(inner: str) -> str | None:
    first = _first_type(inner)
    if "DqMma" not in inner:
        return first
    whole = _INTEGER.search(inner)
    return product(first, f"int{whole[1]}" if whole else "int8" if "unsigned char" in inner else None)


def _threadblock_stages(inner: str) -> int | None:
    """What follows the policy in a multistage threadblock; pipelined ones have none."""
    found = _THREADBLOCK.search(inner)
    arguments = arguments_of(found[0], inner) if found else ()
    after = next((i + 1 for i, text in enumerate(arguments) if "::MmaPolicy<" in text[:60]), 10)
    return int(arguments[after]) if after < len(arguments) and re.fullmatch(r"\d{1,3}", arguments[after]) else None


def _first_type(text: str) -> str | None:
    match = _FIRST_TYPE.search(text)
    dtype = dtype_of(match[0]) if match else None
    return dtype if dtype in FLOATS | {"int8"} else None


def _read_python(function: str) -> KernelName:
    """`kernel_cutlass_<function>_<tensors>`: the first tensor of floats shows the type."""
    words = re.split(r"_(?:tensor(?!rt)|object_at|TiledMMA|None)", function.removeprefix("kernel_cutlass_"))[0]
    arch, tensor = re.search(r"[sS]m(\d{2,3})(?!\d)", words), _PYTHON_TYPE.search(function)
    owner = words.removeprefix("kernel_")
    family = "collective" if _IS_COLLECTIVE.search(words) else find_family(words) or "other"
    if family == "other" and _IS_NARROW.search(words):
        family = "grouped_gemm" if "moe" in words else "gemm"
    return KernelName(
        library=next((library for word, library in _PYTHON_LIBRARIES if owner.startswith(word)), "cutlass"),
        family=family,
        dtype=_PYTHON_TYPES[tensor[1]] if tensor else None,
        arch=f"sm{arch[1]}" if arch else None,
        short_name=short("cute_dsl", words[:48].lower()),
        evidence=Evidence("words of a CuTe DSL name", "I"),
    )


GRAMMAR = Grammar("cutlass", "form", read, spaces="cutlass.*|hytlass.*", letters="ck")
