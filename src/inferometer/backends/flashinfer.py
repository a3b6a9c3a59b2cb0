"""FlashInfer's kernels, for NVIDIA's GPUs; it compiles most of them when they are first called.

Interfaces of flashinfer-python 0.7.2.post1, read in its wheel. Not run on a GPU yet: tried against stand-ins of the
same signatures.

What is in the time besides the kernel, where it isn't what an engine does for each layer:

- `fused_qkv_rope`: the sum with the bias, and the copy that makes v dense;
- attention: `plan()`, which waits for the device, and the tables of pages that it takes, in a batch's first call; no
  graph of such a call can be captured (`once_a_batch`).

Left out: `layer_norm` (its weights are float32, the contract's bf16), `fused_moe` (gate and up lie the other way round
in w1), `block_scaled_mm` (answers in bf16; the contract's tolerance is of float32), `gated_delta_rule_update` (states
lie V x K there, the contract has K x V), `fused_rmsnorm_quant` (the scale is given, not found), `reshape_and_cache`
(takes sequences and positions, not slots), `paged_attention_decode` (another layout of the cache).
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from inferometer.backends.backend import Backend, Kernel
from inferometer.backends.vendor import Loader, counted, load_from, missing, no_gpu, once_a_batch, part, require
from inferometer.backends.vendor_kernels import added_norm_in_place, norm_by_answer

if TYPE_CHECKING:
    from torch import Tensor

_ROPE_SIZES = (64, 128, 256, 512)  # heads that its rotation is compiled for: `DISPATCH_HEAD_DIM`
_ATTENTION_SIZES = (64, 128, 256)  # heads that its attention on every generation of GPUs has
_LATENT, _POSITIONS = 512, 64  # columns of a latent row that its latent attention is compiled for
_WORKSPACE = 128 << 20  # bytes: what its documentation advises


def _unavailable(device: str) -> str | None:
    return missing("flashinfer", "flashinfer", "pip install flashinfer-python") or no_gpu(
        "flashinfer", device, "NVIDIA"
    )


def _rms_norm() -> Kernel:
    return norm_by_answer(part("flashinfer.norm", "rmsnorm"))


def _fused_add_rms_norm() -> Kernel:
    return added_norm_in_place(part("flashinfer.norm", "fused_add_rmsnorm"))


def _fused_qk_rmsnorm() -> Kernel:
    """In place, two launches, one for the heads of q and one for those of k: views of the packed rows."""
    norm = part("flashinfer.norm", "rmsnorm")

    def kernel(
        qkv_TS: "Tensor",
        q_weight_d: "Tensor",
        k_weight_d: "Tensor",
        *,
        head_num: int,
        kv_head_num: int,
        eps: float = 1e-6,
    ) -> "Tensor":
        heads = qkv_TS.unflatten(1, (head_num + 2 * kv_head_num, -1))
        q, k = heads[:, :head_num], heads[:, head_num : head_num + kv_head_num]
        norm(q, q_weight_d, eps, out=q)
        norm(k, k_weight_d, eps, out=k)
        return qkv_TS

    return kernel


def _silu_and_mul() -> Kernel:
    activate = part("flashinfer.activation", "silu_and_mul")

    def kernel(x: "Tensor") -> "Tensor":
        out: Tensor = activate(x)
        return out

    return kernel


def _fused_qkv_rope() -> Kernel:
    """Angles are found in the kernel, from the base."""
    rotate = part("flashinfer.rope", "apply_rope_pos_ids")

    def kernel(
        qkv_TN: "Tensor",
        positions_T: "Tensor",
        qkv_bias_N: "Tensor | None" = None,
        *,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rope_dim: int,
        rope_base: float = 10000.0,
    ) -> "tuple[Tensor, Tensor, Tensor]":
        _require_size("rotation", head_dim, _ROPE_SIZES)
        packed = qkv_TN if qkv_bias_N is None else qkv_TN + qkv_bias_N
        q, k, v = packed.unflatten(-1, (-1, head_dim)).split((num_heads, num_kv_heads, num_kv_heads), 1)
        q_THqd, k_THkd = rotate(q, k, positions_T, rotary_dim=rope_dim, interleave=False, rope_theta=rope_base)
        return q_THqd, k_THkd, v.contiguous()

    return kernel


def _topk_filter() -> Kernel:
    mask = part("flashinfer.sampling", "top_k_mask_logits")

    def kernel(logits_TV: "Tensor", *, top_k: int = 50) -> "Tensor":
        V = logits_TV.shape[1]
        require(top_k < V, f"flashinfer's top_k_mask_logits wants a k below the row's width {V}, found {top_k}")
        out_TV: Tensor = mask(logits_TV, top_k)
        return out_TV

    return kernel


def _attention_forward() -> Kernel:
    wrapper = part("flashinfer", "BatchPrefillWithRaggedKVCacheWrapper")

    def plan(old: Any, q_starts: "Tensor", k_starts: "Tensor", heads: int, size: int, dtype: Any) -> Any:
        planned = old or wrapper(_workspace(q_starts.device), "NHD")
        planned.plan(q_starts, k_starts, heads, heads, size, causal=False, q_data_type=dtype)
        return planned

    planned_for = once_a_batch(plan)

    def kernel(
        q_THd: "Tensor", k_SHd: "Tensor", v_SHd: "Tensor", cu_seqlens_q: "Tensor", cu_seqlens_k: "Tensor"
    ) -> "Tensor":
        _, heads, size = q_THd.shape
        _require_size("attention", size, _ATTENTION_SIZES)
        out_THd: Tensor = planned_for(cu_seqlens_q, cu_seqlens_k, heads, size, q_THd.dtype).run(q_THd, k_SHd, v_SHd)
        return out_THd

    return kernel


def _unified_attention() -> Kernel:
    wrapper = part("flashinfer", "BatchPrefillWithPagedKVCacheWrapper")

    def plan(
        old: Any,
        q_starts: "Tensor",
        lengths: "Tensor",
        table: "Tensor",
        heads: tuple[int, int],
        size: int,
        page: int,
        dtype: Any,
    ) -> Any:
        planned = old or wrapper(_workspace(q_starts.device), "NHD")
        pages = _pages(lengths, table, page)
        planned.plan(q_starts, *pages, *heads, size, page, causal=True, q_data_type=dtype)
        return planned

    planned_for = once_a_batch(plan)

    def kernel(
        q_THqd: "Tensor",
        k_cache: "Tensor",
        v_cache: "Tensor",
        cu_seqlens_q: "Tensor",
        seqused_k: "Tensor",
        block_table: "Tensor",
    ) -> "Tensor":
        _, page, kv_heads, size = k_cache.shape
        _require_size("attention", size, _ATTENTION_SIZES)
        heads = (q_THqd.shape[1], kv_heads)
        planned = planned_for(cu_seqlens_q, seqused_k, block_table, heads, size, page, q_THqd.dtype)
        out_THqd: Tensor = planned.run(q_THqd, (k_cache, v_cache))
        return out_THqd

    return kernel


def _mla_decode_attention() -> Kernel:
    """With pages of one row: the contract's sequences lie one after another, aligned to no page."""
    wrapper = part("flashinfer.mla", "BatchMLAPagedAttentionWrapper")

    def plan(old: Any, lengths: "Tensor", rows: int, heads: int, scale: float, dtype: Any) -> Any:
        import torch

        device = lengths.device
        planned = old or wrapper(_workspace(device))
        planned.plan(
            qo_indptr=counted(len(lengths) + 1, device),
            kv_indptr=torch.nn.functional.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0)),
            kv_indices=torch.arange(rows, dtype=torch.int32, device=device),
            kv_len_arr=lengths,
            num_heads=heads,
            head_dim_ckv=_LATENT,
            head_dim_kpe=_POSITIONS,
            page_size=1,
            causal=False,
            sm_scale=scale,
            q_data_type=dtype,
            kv_data_type=dtype,
        )
        return planned

    planned_for = once_a_batch(plan)

    def kernel(q_BnD: "Tensor", kv_cache: "Tensor", seq_lens_B: "Tensor", *, kv_lora_rank: int) -> "Tensor":
        _, n, D = q_BnD.shape
        sizes = (kv_lora_rank, D - kv_lora_rank)
        wanted = (_LATENT, _POSITIONS)
        require(sizes == wanted, f"flashinfer's latent attention wants rows of {wanted}, found {sizes}")
        planned = planned_for(seq_lens_B, kv_cache.shape[0], n, D**-0.5, q_BnD.dtype)
        (q_nope, q_pe), (ckv, kpe) = (each.split(wanted, -1) for each in (q_BnD, kv_cache))
        out_BnR: Tensor = planned.run(q_nope=q_nope, q_pe=q_pe, ckv_cache=ckv, kpe_cache=kpe)
        return out_BnR

    return kernel


def _require_size(what: str, size: int, sizes: tuple[int, ...]) -> None:
    require(size in sizes, f"flashinfer's {what} has heads of {', '.join(map(str, sizes))} columns, expected {size}")


@lru_cache(maxsize=4)
def _workspace(device: Any) -> "Tensor":
    """One for all plans of a device: they run one after another."""
    import torch

    return torch.empty(_WORKSPACE, dtype=torch.uint8, device=device)


def _pages(lengths_n: "Tensor", table: "Tensor", page: int) -> "tuple[Tensor, Tensor, Tensor]":
    """As FlashInfer has a block table: where each sequence's pages begin, the pages, tokens on each last page."""
    import torch

    used_n = (lengths_n + page - 1) // page
    starts = torch.nn.functional.pad(used_n.cumsum(0, dtype=torch.int32), (1, 0))
    place = torch.arange(table.shape[1], device=table.device)
    return starts, table[place < used_n[:, None]], lengths_n - (used_n - 1).clamp(min=0) * page


_LOADERS: dict[str, Loader] = {
    "attention_forward": _attention_forward,
    "fused_add_rms_norm": _fused_add_rms_norm,
    "fused_qk_rmsnorm": _fused_qk_rmsnorm,
    "fused_qkv_rope": _fused_qkv_rope,
    "mla_decode_attention": _mla_decode_attention,
    "rms_norm": _rms_norm,
    "silu_and_mul": _silu_and_mul,
    "topk_filter": _topk_filter,
    "unified_attention": _unified_attention,
}


def _load(name: str) -> Kernel:
    return load_from(_LOADERS, name)


BACKEND = Backend(
    name="flashinfer",
    summary="FlashInfer's kernels, called as engines call them.",
    operators=tuple(_LOADERS),
    unavailable=_unavailable,
    load=_load,
    packages=("torch", "flashinfer-python"),
)
