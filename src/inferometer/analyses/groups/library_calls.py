"""Which public call launches kernels of these roles together: facts, each with its source. Nothing is guessed.

A call is known by words that the roles of a group must hold, in order. Words are of `kernel_roles.Role.key`: its
library first. The op that a trace names is better evidence than this table, and is reported with it.
"""

from collections.abc import Sequence

import msgspec

_AT_LEAST = 2  # roles of a group


class LibraryCall(msgspec.Struct, frozen=True):
    """`roles`: beginnings of role keys that must follow each other. `api`: the public call, with its article."""

    name: str
    roles: tuple[str, ...]
    api: str
    source: str


LIBRARY_CALLS = (
    LibraryCall(
        "split-K GEMM",
        ("cublas ", "cublaslt splitK reduce"),
        "the cuBLAS call (cublasGemmEx or cublasLtMatmul)",
        "cuBLAS documentation, cublasLtMatmulAlgo: split-K and its reduction scheme",
    ),
    LibraryCall(
        "GEMM with epilogue",
        ("cublas ", "cublaslt gemm bias epilogue"),
        "the cuBLAS call (cublasGemmEx or cublasLtMatmul)",
        "cuBLAS documentation, cublasLtEpilogue_t",
    ),
    LibraryCall(
        "GEMM with scaling of C",
        ("cublas scale C (beta)", "cublas "),
        "the cuBLAS call (cublasGemmEx or cublasSgemm)",
        "same-op evidence in traces of PyTorch on A100 (aten::addmm)",
    ),
    LibraryCall(
        "GEMM with workspace reset",
        ("runtime memset", "cublas "),
        "the cuBLAS call (cublasGemmEx or cublasLtMatmul)",
        "same-op evidence in a trace of PyTorch on H100 (aten::mm, aten::addmm)",
    ),
    LibraryCall(
        "FlashAttention 3 varlen, split",
        ("flash_attn3 attention metadata", "flash_attn3 attention split", "flash_attn3 attention combine"),
        "flash_attn_with_kvcache (torch.ops.sgl_kernel.fwd in SGLang)",
        "FlashAttention hopper/flash_api.cpp, mha_fwd; SGLang flashattention_backend.py",
    ),
    LibraryCall(
        "FlashAttention 3 varlen",
        ("flash_attn3 attention metadata", "flash_attn3 attention"),
        "flash_attn_with_kvcache (torch.ops.sgl_kernel.fwd in SGLang)",
        "FlashAttention hopper/flash_api.cpp, mha_fwd; SGLang flashattention_backend.py",
    ),
    LibraryCall(
        "FlashAttention 3 split",
        ("flash_attn3 attention split", "flash_attn3 attention combine"),
        "FlashAttention's forward (mha_fwd)",
        "FlashAttention hopper/flash_api.cpp, mha_fwd",
    ),
    LibraryCall(
        "FlashAttention 2 split-KV",
        ("flash_attn2 attention", "flash_attn2 attention combine"),
        "FlashAttention's forward (mha_fwd_kvcache or mha_varlen_fwd)",
        "FlashAttention csrc/flash_attn/flash_api.cpp",
    ),
    LibraryCall(
        "FlashInfer attention with merge",
        ("flashinfer attention", "flashinfer attention combine"),
        "FlashInfer's attention wrapper (its run method)",
        "FlashInfer include/flashinfer/attention: split-KV kernels are followed by MergeStates",
    ),
    LibraryCall(
        "paged attention with reduction",
        ("vllm attention", "vllm attention combine"),
        "vLLM's paged_attention",
        "vLLM csrc/rocm/attention.cu and csrc/attention/paged_attention_v2.cu",
    ),
    LibraryCall(
        "paged attention with reduction",
        ("aiter attention", "vllm attention combine"),  # the reduction's name doesn't say which of the two it is
        "AITER's paged attention (paged_attention_ragged or paged_attention_rocm)",
        "AITER csrc/cpp_itfs/pa; same-op evidence in a trace of SGLang on MI300X",
    ),
    LibraryCall(
        "split-KV attention in Triton",
        ("triton attention", "triton attention combine"),
        "the engine's attention function (unified_attention or decode_attention_fwd)",
        "vLLM and SGLang, Triton attention: the split kernel is followed by the one that reduces its parts",
    ),
    LibraryCall(
        "CK attention, split",
        ("ck attention", "ck attention combine"),
        "the call that runs CK's fmha_fwd_splitkv (mha_varlen_fwd or mha_fwd_kvcache)",
        "CK example/ck_tile/01_fmha",
    ),
    LibraryCall(
        "scan",
        ("cub scan init", "cub scan"),
        "the call that runs cub::DeviceScan (torch.cumsum in PyTorch)",
        "CUB cub/device/dispatch/dispatch_scan.cuh",
    ),
    LibraryCall(
        "radix sort",
        ("cub radix sort",),
        "the call that runs cub::DeviceRadixSort (torch.sort in PyTorch)",
        "CUB cub/device/dispatch/dispatch_radix_sort.cuh",
    ),
    LibraryCall(
        "selection",
        ("cub compact init", "cub select sweep"),
        "the call that runs cub::DeviceSelect or cub::DevicePartition (torch.nonzero in PyTorch)",
        "CUB cub/device/dispatch/dispatch_select_if.cuh",
    ),
    LibraryCall(
        "reduction in two passes",
        ("cub reduce", "cub reduce single tile"),
        "the call that runs cub::DeviceReduce",
        "CUB cub/device/dispatch/dispatch_reduce.cuh",
    ),
    LibraryCall(
        "reduction by key",
        ("cub compact init", "cub reduce by key"),
        "the call that runs cub::DeviceReduce::ReduceByKey or cub::DeviceRunLengthEncode",
        "CUB cub/device/dispatch/dispatch_reduce_by_key.cuh",
    ),
    LibraryCall(
        "alignment of tokens to experts",
        ("vllm moe align block size", "vllm count and sort expert tokens"),
        "moe_align_block_size (called by fused_experts)",
        "vLLM csrc/moe/moe_align_sum_kernels.cu",
    ),
    LibraryCall(
        "alignment of tokens to experts",
        ("sgl_kernel moe align block size", "sgl_kernel count and sort expert tokens"),
        "moe_align_block_size (called by fused_experts)",
        "SGLang sgl-kernel/csrc/moe/moe_align_kernel.cu",
    ),
    LibraryCall(
        "convolution",
        ("cudnn ",),
        "the cuDNN convolution (cudnnConvolutionForward or cudnnBackendExecute)",
        "cuDNN documentation; same-op evidence in a trace of PyTorch on A100 (aten::cudnn_convolution)",
    ),
)


def find_call(roles: Sequence[str]) -> LibraryCall | None:
    """The call whose roles are these, the most telling first; None when the table knows none.

    A call with several roles must be met in this order; one with a single role needs all roles to be of its kind. A
    memset before them resets the library's workspace.
    """
    for call in LIBRARY_CALLS:
        if len(call.roles) == 1:
            if all(role.startswith(call.roles[0]) for role in roles):
                return call
        elif _follow(call.roles, roles):
            return call
    is_reset = len(roles) > _AT_LEAST and roles[0].startswith("runtime memset")
    return find_call(roles[1:]) if is_reset else None


def _follow(wanted: Sequence[str], roles: Sequence[str]) -> bool:
    """Whether the roles are the wanted ones in order, with nothing else but repetitions between."""
    at = 0
    for role in roles:
        if at < len(wanted) and role.startswith(wanted[at]):
            at += 1
        elif not (at and role.startswith(wanted[at - 1])):
            return False
    return at == len(wanted)
