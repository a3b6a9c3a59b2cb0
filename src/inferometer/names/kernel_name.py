"""What the name of a kernel says: one frozen struct. Null means that the name doesn't say; nothing is guessed.

The words are those of the fields' types below. A dtype may be a pair: `a*b` multiplies an activation by a weight of
another type (`a×b` in a short name), `from>to` is a cast. M and N of a tile stand in the name's own order.
"""

from typing import Any, Literal

import msgspec

Library = Literal[
    "cublas", "cublaslt", "cutlass", "cudnn", "flash_attn2", "flash_attn3", "flashinfer", "vllm", "sgl_kernel",
    "tensorrt_llm", "pytorch", "cub", "triton", "inductor", "triton_kernels", "nccl", "rccl", "hipblaslt", "rocblas",
    "ck", "aiter", "rocprim", "miopen", "deep_gemm", "deep_ep", "fla", "fbgemm", "apex", "webgpu", "runtime", "other",
]  # fmt: skip
Family = Literal[
    "gemm", "gemm_epilogue", "grouped_gemm", "conv", "attention", "attention_prefill", "attention_decode",
    "attention_combine", "attention_metadata", "linear_attention", "norm", "rope", "activation", "elementwise", "copy",
    "reduction", "softmax", "sampling", "gather_scatter", "kv_cache", "quantize", "moe_routing", "collective", "memory",
    "scan_sort", "random", "optimizer", "other",
]  # fmt: skip
Mark = Literal["D", "V", "I"]

LONGEST_SHORT_NAME = 64


class Evidence(msgspec.Struct, frozen=True, gc=False):
    """The rule that answered, and how well it is founded.

    D: documented, or in the library's public source. V: verified on recorded data. I: inferred, to be distrusted first.
    """

    rule: str
    mark: Mark


class KernelName(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The facts in a kernel's name.

    `library` and `family` are `other` where nothing is known. `split_k` is the number of parts, or `yes` where the name
    only shows that there are several. `cluster` is printed as in the name (`2x1`). `coop` is how two warpgroups share
    a tile; `vector` the elements of one load; `instruction` the shape of the matrix instruction (`16x8x16`).
    `flags` and `fused` are words in the order of the library; `layer` and `role` come from labels that name them.
    """

    library: Library = "other"
    family: Family = "other"
    dtype: str | None = None
    tile_m: int | None = None
    tile_n: int | None = None
    tile_k: int | None = None
    stages: int | None = None
    split_k: int | str | None = None
    arch: str | None = None
    short_name: str = ""
    cluster: str | None = None
    layout: str | None = None
    instruction: str | None = None
    vector: int | None = None
    coop: str | None = None
    head_dim: int | None = None
    flags: tuple[str, ...] = ()
    fused: tuple[str, ...] = ()
    layer: int | None = None
    role: str | None = None
    evidence: Evidence = Evidence("none", "I")

    @property
    def is_known(self) -> bool:
        """Whether the name shows at least the library or the family."""
        return self.library != "other" or self.family != "other"

    def as_json(self) -> dict[str, Any]:
        """Plain data under the fields' names, every field there."""
        return {field: msgspec.to_builtins(getattr(self, field)) for field in self.__struct_fields__}
