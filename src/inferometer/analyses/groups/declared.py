"""Which kernels follow which inside one call, as the libraries' sources have it: known without ops and host calls.

A relation shows what one function of the library launches, one after the other on one stream, and which of the two
never comes without the other. Where `both` don't, their counts must agree (`times` followers a leader).
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

import msgspec

from inferometer.analyses.groups.kernel_roles import role_of

Bound = Literal["both", "leader", "follower"]


class Relation(msgspec.Struct, frozen=True):
    """`leader` and `follower` match the keys of roles whole; `names` are words in the kernels' names, or empty.

    `bound`: which of them has the other each time. `source`: the function or file that launches both, or where it was
    seen. `by_dtype`: a leader and its follower have the same dtype.
    """

    leader: str
    follower: str
    source: str
    bound: Bound = "both"
    by_dtype: bool = False
    times: int = 1
    names: tuple[str, str] = ("", "")

    def is_leader(self, kernel: str) -> bool:
        """Whether this kernel, by its raw name, leads."""
        return _is(kernel, self.leader, self.names[0])

    def is_follower(self, kernel: str) -> bool:
        """Whether this kernel, by its raw name, follows."""
        return _is(kernel, self.follower, self.names[1])


def _is(kernel: str, role: str, word: str) -> bool:
    return re.fullmatch(role, role_of(kernel).key) is not None and word in kernel


DECLARED = (
    Relation("cublas split-K GEMM", "cublaslt splitK reduce", "cublasLtMatmul's reduction scheme"),
    Relation("cublas GEMM", "cublaslt splitK reduce", "same ops of PyTorch on A100: aten::mm, aten::addmm", "follower"),
    Relation("cublas GEMM", "cublaslt gemm bias epilogue", "same op of PyTorch on A100: aten::addmm", "follower"),
    Relation(r"cublas scale C \(beta\)", "cublas GEMM", "same op of PyTorch on A100: aten::addmm", "leader"),
    Relation(
        "cudnn (?:nchw to nhwc.*|compute offsets.*)",
        "cudnn (?:nchw to nhwc.*|compute offsets.*|convolution)",
        "same op of PyTorch on A100: aten::cudnn_convolution",
        "leader",
    ),
    Relation(
        "flash_attn3 attention metadata",
        "flash_attn3 attention(?: split)?",
        "FlashAttention hopper/flash_api.cpp",
    ),
    Relation("flash_attn3 attention split", "flash_attn3 attention combine", "FlashAttention hopper/flash_api.cpp"),
    Relation(
        "flash_attn2 attention split", "flash_attn2 attention combine", "FlashAttention csrc/flash_attn/flash_api.cpp"
    ),
    Relation(
        "flashinfer attention.*",
        "flashinfer attention combine",
        "FlashInfer include/flashinfer/attention: kernels that split KV end with MergeStates",
        "follower",
    ),
    Relation(
        "(?:vllm|aiter) attention",
        "(?:vllm|aiter) attention combine",
        "vLLM csrc/rocm/attention.cu, AITER csrc/cpp_itfs/pa",
        names=("paged_attention_ll4mi_QKV", "paged_attention_ll4mi_reduce"),
    ),
    Relation(
        "vllm attention",
        "vllm attention combine",
        "vLLM csrc/attention/paged_attention_v2.cu",
        names=("paged_attention_v2_kernel", "paged_attention_v2_reduce"),
    ),
    Relation(
        "triton attention",
        "triton attention combine",
        "vLLM vllm/v1/attention: unified_attention",
        names=("unified_attention_3d", "reduce_segments"),
    ),
    Relation(
        "triton attention",
        "triton attention combine",
        "vLLM and SGLang: triton_ops/decode_attention.py",
        names=("stage1", "stage2"),
    ),
    Relation(
        "ck attention",
        "ck attention combine",
        "CK example/ck_tile/01_fmha: fmha_fwd_splitkv",
        names=("SplitKV", "SplitKVCombine"),
    ),
    Relation(
        r"(?:vllm|sgl_kernel) moe align block size",
        r"(?:vllm|sgl_kernel) count and sort expert tokens",
        "moe_align_block_size in vLLM's and SGLang's csrc/moe",
    ),
    Relation(
        r"(?:vllm|sgl_kernel) moe align block size",
        "triton grouped GEMM",
        "fused_experts in vLLM and SGLang: two grouped GEMMs after one alignment",
        times=2,
        names=("", "fused_moe_kernel"),
    ),
    Relation("cub scan init", "cub scan", "CUB dispatch_scan.cuh", by_dtype=True),
    Relation("cub radix sort histogram", "cub radix sort exclusive sum", "CUB dispatch_radix_sort.cuh", by_dtype=True),
    Relation(
        "cub radix sort (?:exclusive sum|onesweep)",
        "cub radix sort onesweep",
        "CUB dispatch_radix_sort.cuh",
        "leader",
        by_dtype=True,
    ),
    Relation(
        "cub compact init",
        "cub (?:reduce by key|select sweep|unique by key sweep|partition.*|run length encode.*)",
        "CUB dispatch_reduce_by_key.cuh and dispatch_select_if.cuh",
    ),
    Relation("cub reduce", "cub reduce single tile", "CUB dispatch_reduce.cuh", "leader"),
)


@lru_cache(maxsize=65_536)
def find_relation(leader: str, follower: str) -> Relation | None:
    """The relation by which one kernel, by its raw name, may lead the other; None where the table has none."""
    return next(_relations(leader, follower), None)


def _relations(leader: str, follower: str) -> Iterator[Relation]:
    for relation in DECLARED:
        if relation.is_leader(leader) and relation.is_follower(follower):
            yield relation
