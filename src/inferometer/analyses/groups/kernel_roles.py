"""The part that a kernel plays in a call, from what its name says.

Two foldings of names: by `short_name`, which statistics are made over, and by role, under which variants of one kernel
(tiles, dtypes, batch sizes) meet. Only products, convolutions and attention have variants that a library chooses
between at run time; other kernels are their own role, whatever dtype they have.
"""

import re
from functools import lru_cache

import msgspec

from inferometer.names import KernelName, decode

_VARIED = {
    "gemm": "GEMM",
    "grouped_gemm": "grouped GEMM",
    "conv": "convolution",
    "attention": "attention",
    "attention_prefill": "attention",
    "attention_decode": "attention",
    "attention_combine": "attention combine",
    "attention_metadata": "attention metadata",
}
_BLAS = frozenset({"cublas", "cublaslt", "cutlass"})  # cuBLAS launches kernels of all three
_CONVOLUTION = {"cudnn": "cudnn", "cutlass": "cudnn", "miopen": "miopen", "ck": "miopen"}  # who launches whose
_VARIANT_WORD = re.compile(r" (?:#\d+|v\d+|bf16|fp\d+|tf32|mx?fp\d\S*|fp8\S*|int\d+|bool|complex64|\S+>\S+)(?= |$)")


class Role(msgspec.Struct, frozen=True):
    """`key`: kernels with the same one may stand for each other. `label`: what people call it."""

    key: str
    label: str


@lru_cache(maxsize=65_536)
def role_of(kernel: str) -> Role:
    """The role of a kernel, by its raw name."""
    name = decode(kernel)
    words = _VARIED.get(name.family)
    if words is None:
        label = _VARIANT_WORD.sub("", name.short_name) or kernel
        is_there = label.split(" ", 1)[0] == name.library
        return Role(label if is_there else f"{name.library} {label}", label)
    if is_split(name):
        words = f"split-K {words}" if name.family in ("gemm", "grouped_gemm") else f"{words} split"
    return Role(f"{_chooser(name.library, words)} {words}", words)


def _chooser(library: str, words: str) -> str:
    """The library that chooses between variants of a role."""
    if "GEMM" in words and library in _BLAS:
        return "cublas"
    return _CONVOLUTION.get(library, library) if "convolution" in words else library


def is_split(name: KernelName) -> bool:
    """Whether its work is split along the sum, so that partial results must be put together."""
    return name.split_k is not None or "split" in name.flags


def warps_of_metadata(kernel: str) -> int | None:
    """Warps of FlashAttention 3's `prepare_varlen_num_blocks_kernel<NumWarps, Sort>`; None for any other kernel."""
    from inferometer.names.decoding import read_parts

    parts = read_parts(kernel)
    first = parts.arguments[0] if parts.arguments else ""
    is_it = parts.function == "prepare_varlen_num_blocks_kernel" and first.isdecimal()
    return int(first) if is_it else None
