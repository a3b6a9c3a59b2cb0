"""Kernels that move data between devices: NCCL, RCCL, DeepEP, custom all-reduce of the engines.

Which kernels do is recognised by `communication.find_collective`; here they get their library and types. NCCL links a
few specialisations only, so the algorithm and protocol in its names aren't always what ran: they become flags,
inferred.
"""

import re
from functools import lru_cache

from inferometer.names.communication import find_collective
from inferometer.names.dtypes import FLOATS, TYPES, first_dtype
from inferometer.names.grammars.words import find_arch, is_triton_style
from inferometer.names.kernel_name import Evidence, KernelName, Library
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short
from inferometer.patterns import late_re

_TYPE_WORD = late_re(r"_(bf16|fp16|f16|f32|fp32)(?=_|$)")
_HINTS = late_re(
    "reduce|gather|scatter|alltoall|all_to_all|a2a|ccl|shmem|userbuffers|deep_ep|hybrid_ep|mori|pplx|uccl|multimem|internode"
    "|collective-|all-to-all|intranode|lamport|broadcast|sendrecv|send_recv|c10d|on_stream_kernel"
    r"|^(?:send|recv)[-.]"
)
_NEVER = frozenset({"cub", "at_cuda_detail", "cublasLt", "cutlass"})
_NCCL = late_re(r"(?:nccl(?:Dev|SymDev|Symk?Dev)?Kernel|nccl(?:Sym)?k?DevKernel)_(?P<what>\w+)")
_OF_C = late_re(r"(?<=int8)_t(?=_|$)")  # `int8_t` is one word, and two by the underscore
_ALGORITHMS = ("RING", "TREE", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT", "COLLNET")
_PROTOCOLS = ("LL128", "LL", "SIMPLE")
_TYPES = TYPES | {
    "int8_t": "int8",
    "i8": "int8",
    "f16": "fp16",
    "f32": "fp32",
    "f64": "fp64",
    "f8e4m3": "fp8_e4m3",
    "f8e5m2": "fp8_e5m2",
    "half": "fp16",
    "fp32": "fp32",
}
_LIBRARIES: dict[str, Library] = {
    "deep_ep": "deep_ep", "hybrid_ep": "deep_ep", "vllm": "vllm", "sglang": "sgl_kernel",
    "tensorrt_llm": "tensorrt_llm", "aiter": "aiter",
    "flashinfer": "flashinfer", "c10d": "pytorch", "at": "pytorch", "fbgemm_gpu": "fbgemm", "torch": "pytorch",
    "sgl_hip": "sgl_kernel", "quickreduce": "vllm",
}  # fmt: skip
_BARE: dict[str, Library] = {
    **dict.fromkeys(
        ("multimem_all_reduce_kernel", "multimem_one_shot_all_reduce_kernel", "one_shot_all_reduce_kernel",
         "two_shot_all_reduce_kernel", "two_shot_all_reduce_kernel_inplace", "multimem_all_gather_kernel",
         "multimem_one_shot_reduce_kernel", "multimem_reduce_kernel", "multimem_barrier_kernel",
         "stream_write_value32"), "pytorch"),
    **dict.fromkeys(("userbuffers_fp16_sum_inplace_gpu_mc_rw",), "other"),
    **dict.fromkeys(
        ("oneShotAllReduceKernel", "twoShotAllReduceKernel", "moeAlltoAllKernel", "moeA2ADispatchKernel",
         "moeA2ACombineKernel", "moeAllToAllKernel"), "tensorrt_llm"),
}  # fmt: skip


def read(name: ParsedName) -> KernelName | None:
    """A kernel that communicates, as `find_collective` decides."""
    if name.namespaces[:2] == ("at", "native") or (name.namespaces and name.namespaces[0] in _NEVER):
        return None
    if name.function.startswith(("mscclKernel_", "kernel_cutlass_")):
        return None  # `msccl.py`, `cutlass.py`
    collective = _collective(name.path)
    if collective is None:
        return _read_layout(name) if name.namespaces[:1] in (("deep_ep",), ("hybrid_ep",)) else None
    match = _NCCL.match(name.function)
    if match is not None:
        return _read_nccl(name, match["what"])
    library = _library(name)
    dtype = first_dtype(name.arguments, FLOATS)
    if dtype is None and (word := _TYPE_WORD.search(name.function)) is not None:
        dtype = _TYPES[word[1]]
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.function).replace("_", " ").lower().removesuffix(" kernel")
    prefix = library if library in ("deep_ep", "nccl", "rccl") else ""
    spaces = " ".join(space for space in name.namespaces[1:] if space != "detail") if library == "deep_ep" else ""
    return KernelName(
        library=library,
        family="collective",
        dtype=dtype,
        arch=find_arch(name.function),
        flags=(collective,),
        short_name=short(prefix, spaces, words, dtype),
        evidence=Evidence("name of a collective", "D"),
    )


def _library(name: ParsedName) -> Library:
    """Whose kernel it is: NCCL and RCCL by the function's name, others by their namespace or the style of the name."""
    if re.search(r"rccl", name.function):
        return "rccl"
    if re.search(r"nccl", name.function, re.IGNORECASE) and not re.search(r"mscclpp|torch", name.path):
        return "rccl" if name.is_amd else "nccl"
    known = _BARE.get(name.function) if not name.namespaces else _LIBRARIES.get(name.namespaces[0])
    if known is not None and known != "other":
        return known
    if re.match(r"cross_device_reduce_\w+", name.function) and not name.is_bare:
        return "sgl_kernel"
    is_triton = is_triton_style(name) and (name.function.startswith("_") or "_kernel" in name.function)
    return "triton" if is_triton or _is_of_iris(name) else "other"


def _is_of_iris(name: ParsedName) -> bool:
    """Whether it is a collective of iris, AMD's library in Triton: `persistent_all_reduce_one_shot`."""
    return name.is_bare and name.function.startswith("persistent_")


def _read_layout(name: ParsedName) -> KernelName:
    """DeepEP's local part: how many tokens go where."""
    return KernelName(
        library="deep_ep",
        family="moe_routing",
        short_name=short("deep_ep", name.function.replace("_", " ")),
        evidence=Evidence("namespace of DeepEP", "D"),
    )


@lru_cache(maxsize=4_096)
def _collective(path: str) -> str | None:
    """As `find_collective`, which takes its time, of the function alone."""
    return find_collective(path) if _HINTS.search(path.lower()) else None


def _read_nccl(name: ParsedName, what: str) -> KernelName:
    library: Library = "rccl" if name.is_amd else "nccl"
    words = what.split("_")
    coll = words[0]
    dtype = next((_TYPES[word] for word in words[1:] if word in _TYPES), None)
    dtype = dtype or next((_TYPES[word] for word in ("int8_t", "bfloat16") if word in what), None)
    if coll in ("SendRecv", "AllGather", "Broadcast"):
        dtype = None  # bytes are moved, whatever they are
    flags = tuple(word for word in words if word in _ALGORITHMS or word in _PROTOCOLS)
    return KernelName(
        library=library,
        family="collective",
        dtype=dtype,
        flags=(coll, *flags),
        short_name=short(library, *_OF_C.sub("", what).lower().split("_")),
        evidence=Evidence("NCCL kernel", "D"),
    )


GRAMMAR = Grammar("collectives", "form", read)
