"""AMD's aiter: kernels for Instinct GPUs, which it compiles when they are first called.

Interfaces as aiter's repository (github.com/ROCm/aiter) has them in 2026, under `aiter/ops` and in `aiter/mla.py`, and
as vLLM 0.33.0 calls them in `vllm/_aiter_ops.py`: aiter has no numbered release that both go by. Not run on a GPU yet:
tried against stand-ins of the same signatures.

What is in the time besides the kernel, where it isn't what an engine does for each layer:

- `attention_forward`, `mla_decode_attention`: lengths on the host and tables of pages, in a batch's first call;
  no graph of such a call can be captured (`once_a_batch`).

Left out: `fused_moe` and `fp8_blockscale_fused_moe` (weights in a shuffled layout), `block_scaled_mm` (answers in bf16;
the contract's tolerance is of float32), `moe_align_block_size` and `moe_count_and_sort` (own layouts), the delta
rule's three (states lie V x K), and what only its Triton folder has, whose places move from version to version.
"""

from typing import TYPE_CHECKING, Any

from inferometer.backends.backend import Backend, Kernel
from inferometer.backends.vendor import (
    Loader,
    counted,
    load_from,
    longest,
    missing,
    no_gpu,
    once_a_batch,
    ones,
    part,
    require,
    require_largest,
)
from inferometer.backends.vendor_kernels import choose_into, gate_into, norm_by_answer, sum_into, write_to_cache

if TYPE_CHECKING:
    from torch import Tensor

_LIBRARY = "aiter"
_PARTITION = 256  # keys of a part of a sequence, in `paged_attention_rocm`
_LATENT, _POSITIONS, _HEADS = 512, 64, (16, 128)  # that `mla_decode_fwd` has in every version
_GROUPS = (32, 64, 128)  # columns of a group that `per_group_quant_hip` has


def _unavailable(device: str) -> str | None:
    install = "built from source, github.com/ROCm/aiter"
    return missing("aiter", "aiter", install, folder="ops") or no_gpu("aiter", device, "AMD")


def _rms_norm() -> Kernel:
    return norm_by_answer(part("aiter", "rms_norm"))


def _fused_add_rms_norm() -> Kernel:
    """Out of place, as engines call it."""
    import torch

    norm = part("aiter", "rmsnorm2d_fwd_with_add")

    def kernel(
        x_TH: "Tensor", residual_TH: "Tensor", weight_H: "Tensor", *, eps: float = 1e-6
    ) -> "tuple[Tensor, Tensor]":
        out_TH, added_TH = torch.empty_like(x_TH), torch.empty_like(residual_TH)
        norm(out_TH, x_TH, residual_TH, added_TH, weight_H, eps)
        return out_TH, added_TH

    return kernel


def _fused_rmsnorm_quant() -> Kernel:
    import torch

    norm, own = part("aiter", "rmsnorm2d_fwd_with_add_dynamicquant"), part("aiter", "dtypes.fp8")

    def kernel(
        x_TH: "Tensor",
        residual_TH: "Tensor",
        weight_H: "Tensor",
        *,
        eps: float = 1e-5,
        fp8_dtype: str = "fp8_e4m3fnuz",
        fp8_max: float | None = None,
    ) -> "tuple[Tensor, Tensor, Tensor]":
        _require_fp8(own, fp8_dtype, fp8_max)
        q_TH = torch.empty_like(x_TH, dtype=own)
        scale_T1 = torch.empty(x_TH.shape[0], 1, dtype=torch.float32, device=x_TH.device)
        added_TH = torch.empty_like(residual_TH)
        norm(q_TH, x_TH, residual_TH, added_TH, scale_T1, weight_H, eps)
        return q_TH, scale_T1, added_TH

    return kernel


def _layer_norm() -> Kernel:
    norm = part("aiter", "layernorm2d_fwd")

    def kernel(x: "Tensor", weight_H: "Tensor", bias_H: "Tensor", *, eps: float = 1e-5) -> "Tensor":
        out: Tensor = norm(x.reshape(-1, x.shape[-1]), weight_H, bias_H, eps)
        return out.reshape(x.shape)

    return kernel


def _silu_and_mul() -> Kernel:
    return gate_into(part("aiter", "silu_and_mul"))


def _fp8_dynamic_per_token_quant() -> Kernel:
    import torch

    quantise, own = part("aiter", "dynamic_per_token_scaled_quant"), part("aiter", "dtypes.fp8")

    def kernel(
        x_TH: "Tensor", *, fp8_dtype: str = "fp8_e4m3fnuz", fp8_max: float | None = None
    ) -> "tuple[Tensor, Tensor]":
        _require_fp8(own, fp8_dtype, fp8_max)
        q_TH = torch.empty_like(x_TH, dtype=own)
        scale_T1 = torch.empty(x_TH.shape[0], 1, dtype=torch.float32, device=x_TH.device)
        quantise(q_TH, x_TH, scale_T1)
        return q_TH, scale_T1.squeeze(-1)

    return kernel


def _per_token_group_quant_fp8() -> Kernel:
    """The largest value is the type's: 240 of fnuz, where the contract's default is 224."""
    quantise, own = part("aiter.ops.quant", "per_group_quant_hip"), part("aiter", "dtypes.fp8")

    def kernel(
        x_TH: "Tensor", *, group_size: int, fp8_dtype: str = "fp8_e4m3fn", fp8_max: float | None = None
    ) -> "tuple[Tensor, Tensor]":
        require(group_size in _GROUPS, f"aiter has groups of 32, 64 and 128 columns, expected {group_size}")
        default = 224.0 if fp8_dtype == "fp8_e4m3fnuz" else None
        _require_fp8(own, fp8_dtype, default if fp8_max is None else fp8_max)
        q_TH, scale_TG = quantise(x_TH, quant_dtype=own, group_size=group_size)
        return q_TH, scale_TG

    return kernel


def _require_fp8(own: Any, name: str, largest: float | None) -> None:
    """Refuse a dtype, by its short name, that isn't the GPU's, and a largest value that isn't the type's."""
    from inferometer.operators.catalogue.draws import largest_of, torch_dtype

    short = str(own).removeprefix("torch.")
    require(torch_dtype(name) == own, f"aiter quantises to {short} here, expected {name}")
    require_largest(_LIBRARY, name, largest, largest_of(name), largest_of(name))


def _moe_topk_gating_softmax() -> Kernel:
    return choose_into(part("aiter", "topk_softmax"), _LIBRARY)


def _moe_sum_reduce() -> Kernel:
    return sum_into(part("aiter", "moe_sum"), _LIBRARY)


def _reshape_and_cache() -> Kernel:
    return write_to_cache(part("aiter", "reshape_and_cache_flash"))


def _attention_forward() -> Kernel:
    attend = part("aiter", "flash_attn_varlen_func")
    lengths = once_a_batch(lambda _, *starts: [longest(each) for each in starts])

    def kernel(
        q_THd: "Tensor", k_SHd: "Tensor", v_SHd: "Tensor", cu_seqlens_q: "Tensor", cu_seqlens_k: "Tensor"
    ) -> "Tensor":
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
            softmax_scale=q_THd.shape[2] ** -0.5,
            causal=False,
        )
        return out_THd

    return kernel


def _paged_attention_decode() -> Kernel:
    """A bound of the lengths, from the width of the block table, serves for the longest."""
    import torch

    attend = part("aiter", "paged_attention_rocm")

    def kernel(
        query_BHqd: "Tensor", k_cache: "Tensor", v_cache: "Tensor", block_tables: "Tensor", seq_lens_B: "Tensor"
    ) -> "Tensor":
        B, Hq, d = query_BHqd.shape
        page = v_cache.shape[3]
        most = block_tables.shape[1] * page
        parts = -(-most // _PARTITION)
        sums = torch.empty(B, Hq, parts, dtype=torch.float32, device=query_BHqd.device)
        out_BHqd, scale = torch.empty_like(query_BHqd), ones(query_BHqd.device)
        attend(
            out_BHqd,
            sums,
            torch.empty_like(sums),
            query_BHqd.new_empty(B, Hq, parts, d),
            query_BHqd,
            k_cache,
            v_cache,
            v_cache.shape[1],
            d**-0.5,
            block_tables,
            seq_lens_B,
            page,
            most,
            None,
            "auto",
            scale,
            scale,
            None,
            _PARTITION,
        )
        return out_BHqd

    return kernel


def _mla_decode_attention() -> Kernel:
    """With pages of one row: the contract's sequences lie one after another, aligned to no page."""
    attend = part("aiter.mla", "mla_decode_fwd")
    pages = once_a_batch(_pages_of_rows)

    def kernel(q_BnD: "Tensor", kv_cache: "Tensor", seq_lens_B: "Tensor", *, kv_lora_rank: int) -> "Tensor":
        B, n, D = q_BnD.shape
        sizes, wanted = (kv_lora_rank, D - kv_lora_rank), (_LATENT, _POSITIONS)
        require(sizes == wanted, f"aiter's latent attention wants rows of {wanted}, found {sizes}")
        require(n in _HEADS, f"aiter's latent attention has 16 or 128 heads, expected {n}")
        starts, rows, last = pages(seq_lens_B, kv_cache.shape[0])
        out_BnR = q_BnD.new_empty(B, n, kv_lora_rank)
        q_starts = counted(B + 1, q_BnD.device)
        attend(
            q_BnD, kv_cache.view(-1, 1, 1, D), out_BnR, q_starts, starts, rows, last, 1, sm_scale=D**-0.5
        )  # fmt: skip
        return out_BnR

    return kernel


def _pages_of_rows(_: object, seq_lens_B: "Tensor", rows: int) -> "tuple[Tensor, Tensor, Tensor]":
    """Where each sequence's pages begin, the pages, and tokens on each last page: int32, pages of one row."""
    import torch

    starts = torch.nn.functional.pad(seq_lens_B.cumsum(0, dtype=torch.int32), (1, 0))
    return starts, torch.arange(rows, dtype=torch.int32, device=seq_lens_B.device), torch.ones_like(seq_lens_B)


_LOADERS: dict[str, Loader] = {
    "attention_forward": _attention_forward,
    "fp8_dynamic_per_token_quant": _fp8_dynamic_per_token_quant,
    "fused_add_rms_norm": _fused_add_rms_norm,
    "fused_rmsnorm_quant": _fused_rmsnorm_quant,
    "layer_norm": _layer_norm,
    "mla_decode_attention": _mla_decode_attention,
    "moe_sum_reduce": _moe_sum_reduce,
    "moe_topk_gating_softmax": _moe_topk_gating_softmax,
    "paged_attention_decode": _paged_attention_decode,
    "per_token_group_quant_fp8": _per_token_group_quant_fp8,
    "reshape_and_cache": _reshape_and_cache,
    "rms_norm": _rms_norm,
    "silu_and_mul": _silu_and_mul,
}


def _load(name: str) -> Kernel:
    return load_from(_LOADERS, name)


BACKEND = Backend(
    name="aiter",
    summary="AMD's aiter, called as vLLM's layers call it.",
    operators=tuple(_LOADERS),
    unavailable=_unavailable,
    load=_load,
    packages=("torch", "triton", "amd-aiter"),
)
