"""vLLM's attention: Triton kernels and FlashAttention, as its attention backends call them.

Interfaces of vLLM 0.33.0, see `vllm`. Not run on a GPU yet. What a backend's metadata builder works out once for all
layers of a step, lengths on the host and tables of pages, is made once a batch here too, and no graph of such a call
can be captured (`once_a_batch`); where an upper bound of a length gives the same launch, the bound serves, nothing
waits for the device, and graphs can.

`unified_attention` is the kernel without split keys, as engines use it for prompts; for single tokens they give it
buffers to split keys with, which the published shapes, all prompts, don't need.
"""

from functools import cache
from typing import TYPE_CHECKING

from inferometer.backends.backend import Kernel
from inferometer.backends.vendor import Loader, counted, longest, once_a_batch, ones, part, require

if TYPE_CHECKING:
    from torch import Tensor

_KEYS_A_SPLIT = 512  # of latent attention: `_MIN_WORK_PER_SPLIT` in vllm/v1/attention/backends/mla/triton_mla.py


def _unified_attention() -> Kernel:
    """Bounds of the lengths serve for the lengths: only whether a query is longer than one changes the kernel."""
    import torch

    attend = part("vllm.v1.attention.ops.triton_unified_attention", "unified_attention")

    def kernel(
        q_THqd: "Tensor",
        k_cache: "Tensor",
        v_cache: "Tensor",
        cu_seqlens_q: "Tensor",
        seqused_k: "Tensor",
        block_table: "Tensor",
    ) -> "Tensor":
        T, n = q_THqd.shape[0], seqused_k.shape[0]
        out_THqd = torch.empty_like(q_THqd)
        attend(
            q=q_THqd,
            k=k_cache,
            v=v_cache,
            out=out_THqd,
            cu_seqlens_q=cu_seqlens_q,
            max_seqlen_q=1 if n == T else T,
            seqused_k=seqused_k,
            max_seqlen_k=block_table.shape[1] * k_cache.shape[1],
            softmax_scale=q_THqd.shape[2] ** -0.5,
            causal=True,
            window_size=(-1, -1),
            block_table=block_table,
            softcap=0.0,
            q_descale=None,
            k_descale=None,
            v_descale=None,
        )
        return out_THqd

    return kernel


def _attention_forward() -> Kernel:
    """FlashAttention of the version that vLLM chooses for the GPU and the head size."""
    utils = "vllm.v1.attention.backends.fa_utils"
    attend, choose = part(utils, "flash_attn_varlen_func"), part(utils, "get_flash_attn_version")
    version_for = cache(lambda size: choose(head_size=size))
    lengths = once_a_batch(lambda _, *starts: [longest(each) for each in starts])

    def kernel(
        q_THd: "Tensor", k_SHd: "Tensor", v_SHd: "Tensor", cu_seqlens_q: "Tensor", cu_seqlens_k: "Tensor"
    ) -> "Tensor":
        size = q_THd.shape[2]
        version = version_for(size)
        most_q, most_k = lengths(cu_seqlens_q, cu_seqlens_k)
        out_THd: Tensor = attend(
            q_THd,
            k_SHd,
            v_SHd,
            cu_seqlens_q=cu_seqlens_q,
            cu_seqlens_k=cu_seqlens_k,
            max_seqlen_q=most_q,
            max_seqlen_k=most_k,
            dropout_p=0.0,
            softmax_scale=size**-0.5,
            causal=False,
            **({} if version is None else {"fa_version": version}),
        )
        return out_THd

    return kernel


def _paged_attention_decode() -> Kernel:
    """The layout that vLLM's caches have on ROCm; bounds of the lengths serve for the lengths."""
    import torch

    require(bool(torch.version.hip), "vllm has caches of this layout on ROCm only")
    attend = part("vllm.v1.attention.ops.chunked_prefill_paged_decode", "chunked_prefill_paged_decode")

    def kernel(
        query_BHqd: "Tensor", k_cache: "Tensor", v_cache: "Tensor", block_tables: "Tensor", seq_lens_B: "Tensor"
    ) -> "Tensor":
        out_BHqd = torch.empty_like(query_BHqd)
        scale = ones(query_BHqd.device)
        attend(
            query=query_BHqd,
            key=None,
            value=None,
            output=out_BHqd,
            kv_cache_dtype="auto",
            key_cache=k_cache,
            value_cache=v_cache,
            block_table=block_tables,
            query_start_loc=counted(query_BHqd.shape[0] + 1, query_BHqd.device),
            seq_lens=seq_lens_B,
            max_seq_len=block_tables.shape[1] * v_cache.shape[3],
            max_query_len=1,
            k_scale=scale,
            v_scale=scale,
            sm_scale=query_BHqd.shape[2] ** -0.5,
        )
        return out_BHqd

    return kernel


def _mla_decode_attention() -> Kernel:
    """Triton, with pages of one row: the contract's sequences lie one after another, aligned to no page."""
    import torch

    attend = part("vllm.v1.attention.ops.triton_decode_attention", "decode_attention_fwd")
    most_splits = 2 * part("vllm.platforms", "current_platform").num_compute_units()
    pages = once_a_batch(_pages_of_rows)

    def kernel(q_BnD: "Tensor", kv_cache: "Tensor", seq_lens_B: "Tensor", *, kv_lora_rank: int) -> "Tensor":
        B, n, D = q_BnD.shape
        table, most = pages(seq_lens_B)
        splits = min(1 << max(0, most // _KEYS_A_SPLIT - 1).bit_length(), most_splits)
        out_BnR, lse_Bn = q_BnD.new_empty(B, n, kv_lora_rank), q_BnD.new_empty(B, n)
        partial = q_BnD.new_empty(B, n, splits, kv_lora_rank + 1, dtype=torch.float32)
        rows, scale = kv_cache.unsqueeze(1), ones(q_BnD.device)
        attend(
            q_BnD,
            rows,
            rows[..., :kv_lora_rank],
            out_BnR,
            lse_Bn,
            table,
            seq_lens_B,
            partial,
            splits,
            D**-0.5,
            1,
            k_scale=scale,
            v_scale=scale,
            is_mla=True,
        )
        return out_BnR

    return kernel


def _pages_of_rows(_: object, seq_lens_B: "Tensor") -> "tuple[Tensor, int]":
    """int32 [B, most keys]: the rows of each sequence, which follow those of the one before; and most keys."""
    import torch

    most = int(seq_lens_B.max())
    start_B = seq_lens_B.cumsum(0, dtype=torch.int32) - seq_lens_B
    return start_B[:, None] + torch.arange(most, dtype=torch.int32, device=seq_lens_B.device), most


LOADERS: dict[str, Loader] = {
    "attention_forward": _attention_forward,
    "mla_decode_attention": _mla_decode_attention,
    "paged_attention_decode": _paged_attention_decode,
    "unified_attention": _unified_attention,
}
