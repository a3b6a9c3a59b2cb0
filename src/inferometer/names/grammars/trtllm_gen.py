"""trtllm-gen: the compiled kernels of TensorRT-LLM (also used through FlashInfer) for Blackwell.

`fmhaSm100aKernel_QkvBfloat16OBfloat16H128PagedKvCausalP32VarSeqQ128Kv128PersistentContext`: types, head size, layout,
mask, page, tiles, schedule, phase. `bmm_Bfloat16_E4m3E4m3_Fp32_t128x8x128_s4_…_dynB[atch]_sm100a`: result, operands (A
is the weight when transposed out), accumulator, tile, stages. Undocumented: read from the public lists of these files.
"""

import re

from inferometer.names.dtypes import product
from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short, size
from inferometer.patterns import late_re

_TYPES = {
    "Bfloat16": "bf16", "Fp16": "fp16", "Fp32": "fp32", "E4m3": "fp8_e4m3", "E5m2": "fp8_e5m2", "E2m1": "nvfp4",
    "MxE4m3": "mxfp8", "MxE2m1": "mxfp4", "Int8": "int8", "Tf32": "tf32", "Bf16": "bf16",
}  # fmt: skip
_TYPE = r"(?:Mx)?(?:E4m3|E5m2|E2m1|E2m3|Bfloat16|Bf16|Fp16|Fp32|Tf32|MxInt4|Int4|Int8|UE8m0|DsFp8|DsE4m3)"
_FMHA = late_re(
    rf"fmhaSm(?P<arch>\d+)[a-z]?Kernel_?Qk?(?P<kv>v)?(?P<q>{_TYPE})(?:K(?P<k>{_TYPE})V\w*?|V(?P<v>{_TYPE}))?(?:Kv(?P<kv2>{_TYPE}))?O(?P<o>{_TYPE})(?P<rest>\w*)"
)
_TILES = late_re(r"Q(\d+)Kv(\d+)")
_HEAD = late_re(r"^H(?:Qk)?(\d+)")
_GEMM = late_re(
    rf"(?P<op>bmm|gemm|batchedGemm)_(?P<c>{_TYPE})_(?P<a>{_TYPE})(?P<b>{_TYPE})?_(?P<acc>\w+?)_t(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)"
    r"(?:u\d+)?(?:_s(?P<stages>\d+))?(?P<rest>\w*)"
)
_CLUSTER = late_re(r"_(?:cga|c)(\d+x\d+x\d+)")
_V2_TILE = late_re(r"_(\d{1,4})_(\d{1,4})_S_")
_V2_TYPE = late_re(r"_(bf16|fp16|fp32|e4m3|int8)(?=_|$)")
_V2_TYPES = {"bf16": "bf16", "fp16": "fp16", "fp32": "fp32", "e4m3": "fp8_e4m3", "int8": "int8"}
_MASKS = (("SlidingOrChunkedCausal", "sliding"), ("Causal", "causal"), ("Custom", "custom mask"), ("Dense", "dense"))


def read(name: ParsedName) -> KernelName | None:
    """Attention or a batched product of trtllm-gen."""
    function = name.function
    if function.startswith("fmhaSm"):
        return _read_attention(function)
    if function.startswith("fmha_v2_"):
        return _read_fmha_v2(function)
    if function.startswith(("bmm_", "gemm_", "batchedGemm_")):
        match = _GEMM.match(function)
        return None if match is None else _read_gemm(match)
    return None


def _read_attention(function: str) -> KernelName:
    match = _FMHA.match(function)
    rest = match["rest"] if match else function
    tiles, head = _TILES.search(rest), _HEAD.search(rest)
    dtype = None
    if match is not None:
        other = match["kv2"] or match["k"] or match["v"]
        dtype = _TYPES.get(match["q"]) if not other else product(_TYPES.get(match["q"]), _TYPES.get(other))
    family: Family = "attention"
    if "ForGen" in rest:
        family = "attention_decode"
    elif "Context" in rest:
        family = "attention_prefill"
    split = "MultiCtasKv" in rest
    mask = next((flag for word, flag in _MASKS if word in rest), "")
    flags = [
        flag for flag in (mask, "paged" if "PagedKv" in rest else "", "varlen" if "VarSeq" in rest else "") if flag
    ]
    depth = int(head[1][:6]) if head else None
    m, n = (int(tiles[1][:6]), int(tiles[2][:6])) if tiles else (None, None)
    arch = f"sm{match['arch']}" if match else None
    phase = {"attention_decode": "decode", "attention_prefill": "prefill"}.get(family, "")
    return KernelName(
        library="tensorrt_llm",
        family=family,
        dtype=dtype,
        tile_m=m,
        tile_n=n,
        split_k="yes" if split else None,
        arch=arch,
        head_dim=depth,
        flags=(*flags, *(["split"] if split else [])),
        short_name=short(
            *("trtllm fmha", phase, arch, dtype, f"d{depth}" if depth else "", size(m, n), *flags),
            "split" if split else "",
        ),
        evidence=Evidence("trtllm-gen attention", "I"),
    )


def _read_fmha_v2(function: str) -> KernelName:
    """TensorRT-LLM's generated attention for Hopper and before: type, tile (flash only), head size, mask, arch."""
    type_name, arch = _V2_TYPE.search(function), re.search(r"_sm(\d{2,3})", function)
    tile = _V2_TILE.search(function) if "_flash_" in function else None
    m, n = (int(tile[1]), int(tile[2])) if tile else (None, None)
    dtype = _V2_TYPES.get(type_name[1]) if type_name else None
    mask = "causal" if "_causal" in function else ""
    arch_name = f"sm{arch[1]}" if arch else None
    return KernelName(
        library="tensorrt_llm",
        family="attention",
        dtype=dtype,
        tile_m=m,
        tile_n=n,
        arch=arch_name,
        flags=(mask,) if mask else (),
        short_name=short("trtllm fmha_v2", arch_name, dtype, size(m, n), mask),
        evidence=Evidence("TensorRT-LLM fmha_v2", "I"),
    )


def _read_gemm(match: re.Match[str]) -> KernelName:
    rest = match["rest"]
    first, second = _TYPES.get(match["a"]), _TYPES.get(match["b"] or match["a"])
    dtype = product(second, first) if "transOut" in rest else product(first, second)
    is_cut = match["op"] == "bmm" and "_sm" not in rest  # what makes it grouped stands near the end
    grouped = "_dynB" in rest or is_cut
    fused = tuple(word for word in ("swiGlu", "geGlu", "relu2", "silu") if word.lower() in rest.lower())
    arch = re.search(r"_sm(\d+)", rest)
    split = re.search(r"_splitK(\d+)|_sk(\d+)", rest)
    m, n, k = (int(match[axis][:6]) for axis in "mnk")
    stages = int(match["stages"][:4]) if match["stages"] else None
    cluster = _CLUSTER.search(rest)
    return KernelName(
        library="tensorrt_llm",
        family="grouped_gemm" if grouped else "gemm",
        dtype=dtype,
        tile_m=m,
        tile_n=n,
        tile_k=k,
        stages=stages,
        split_k=int((split[1] or split[2])[:4]) if split else None,
        arch=f"sm{arch[1]}" if arch else None,
        cluster=cluster[1] if cluster else None,
        layout=next((word for word in ("TN", "NN", "NT", "TT") if f"_{word}_" in rest), None),
        flags=(*(["transOut"] if "transOut" in rest else []), *(["dynBatch"] if grouped else [])),
        fused=tuple(word.lower() for word in fused),
        short_name=short(
            *("trtllm", "grouped gemm" if grouped else "bmm" if match["op"] == "bmm" else "gemm", dtype),
            *(size(m, n, k), f"s{stages}" if stages else "", *(word.lower() for word in fused)),
        ),
        evidence=Evidence("trtllm-gen gemm", "I"),
    )


GRAMMAR = Grammar("trtllm_gen", "form", read, spaces="", letters="fbg")
