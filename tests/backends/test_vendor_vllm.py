"""vLLM's adapters against a stand-in of 0.33.0: its signatures and demands, read in its source distribution."""

from math import ceil
from types import SimpleNamespace
from typing import Any

import pytest
from tests.backends.standins import (
    assert_right,
    assert_tiny,
    attended,
    attended_packed,
    choose_experts,
    gated,
    quantise_rows,
    rms_normed,
    rotate_in_place,
    stand_in,
    write_slots,
)

from inferometer.backends import require_backend
from inferometer.errors import Unavailable

torch = pytest.importorskip("torch", reason="torch isn't installed")

FP8 = SimpleNamespace(dtype=torch.float8_e4m3fn)  # of the platform
SPLITS: list[int] = []  # of latent attention


def largest() -> float:
    """csrc/quantization/utils.cuh, quant_type_max."""
    return 448.0 if FP8.dtype == torch.float8_e4m3fn else 224.0


def rms_norm(out: Any, input: Any, weight: Any, epsilon: float) -> None:
    assert out.is_contiguous()  # csrc/layernorm_kernels.cu
    assert input.stride(-1) == 1
    out.copy_(rms_normed(input, weight, epsilon))


def fused_add_rms_norm(input: Any, residual: Any, weight: Any, epsilon: float) -> None:
    assert input.dtype == residual.dtype == weight.dtype  # csrc/layernorm_kernels.cu
    residual += input
    input.copy_(rms_normed(residual, weight, epsilon))


def rms_norm_dynamic_per_token_quant(
    input: Any, weight: Any, epsilon: float, quant_dtype: Any, scale_ub: Any = None, residual: Any = None
) -> tuple[Any, Any]:
    assert quant_dtype == FP8.dtype  # csrc/quantization/fused_kernels/fused_layernorm_dynamic_per_token_quant.cu
    assert weight.dtype == input.dtype == residual.dtype
    assert residual.is_contiguous()
    residual.copy_(input.float() + residual.float())
    output = torch.empty(input.shape, dtype=quant_dtype)
    scales = torch.empty(input.numel() // input.shape[-1], 1)
    least = 1 / (largest() * 512)  # csrc/quantization/utils.cuh, min_scaling_factor
    quantise_rows(output, rms_normed(residual, weight, epsilon), scales, largest(), least)
    return output, scales


def scaled_fp8_quant(
    input: Any,
    scale: Any = None,
    num_token_padding: int | None = None,
    scale_ub: Any = None,
    use_per_token_if_dynamic: bool = False,
    output: Any = None,
    group_shape: Any = None,
) -> tuple[Any, Any]:
    assert input.ndim == 2
    assert use_per_token_if_dynamic
    output, scales = torch.empty(input.shape, dtype=FP8.dtype), torch.empty(input.shape[0], 1)
    quantise_rows(output, input, scales, largest(), 1 / (largest() * 512))
    return output, scales


def per_token_group_quant_fp8(
    x: Any,
    group_size: int,
    eps: float = 1e-10,
    dtype: Any = None,
    column_major_scales: bool = False,
    tma_aligned_scales: bool = False,
    out_q: Any = None,
    use_ue8m0: bool | None = None,
) -> tuple[Any, Any]:
    assert x.shape[-1] % group_size == 0
    assert dtype == FP8.dtype
    assert use_ue8m0 is False
    q, scales = torch.empty(x.shape, dtype=dtype), torch.empty(x.shape[0], x.shape[1] // group_size)
    quantise_rows(q.view(-1, group_size), x.reshape(-1, group_size), scales.view(-1), largest(), eps / largest())
    return q, scales


def silu_and_mul(result: Any, input: Any) -> None:
    result.copy_(gated(input))


def topk_softmax(
    topk_weights: Any,
    topk_ids: Any,
    token_expert_indices: Any,
    gating_output: Any,
    renormalize: bool = False,
    e_score_correction_bias: Any = None,
    is_padding: Any = None,
) -> None:
    assert token_expert_indices.dtype == torch.int32  # csrc/moe/topk_softmax_kernels.cu
    assert token_expert_indices.shape == topk_ids.shape
    assert not renormalize
    choose_experts(topk_weights, topk_ids, gating_output)


def moe_sum(input: Any, output: Any, topk_ids: Any = None, expert_map: Any = None) -> None:
    assert output.is_contiguous()  # csrc/moe/moe_align_sum_kernels.cu
    output.copy_(input.float().sum(1))


def reshape_and_cache_flash(
    key: Any,
    value: Any,
    key_cache: Any,
    value_cache: Any,
    slot_mapping: Any,
    kv_cache_dtype: str,
    k_scale: Any,
    v_scale: Any,
) -> None:
    assert kv_cache_dtype == "auto"
    assert slot_mapping.dtype == torch.int64  # csrc/cache_kernels.cu reads int64
    assert k_scale.shape == v_scale.shape == (1,)
    write_slots(key, value, key_cache, value_cache, slot_mapping)


def triton_mrope(
    q: Any,
    k: Any,
    cos: Any,
    sin: Any,
    mrope_section: list[int],
    head_size: int,
    rotary_dim: int,
    mrope_interleaved: bool,
    is_neox_style: bool,
) -> tuple[Any, Any]:
    assert q.dim() == k.dim() == 2
    half = rotary_dim // 2
    i = torch.arange(half)
    if mrope_interleaved:  # the masks of `_triton_mrope_forward`
        axis = torch.where((i % 3 == 1) & (i <= 3 * mrope_section[1]), 1, 0)
        axis = torch.where((i % 3 == 2) & (i <= 3 * mrope_section[2]), 2, axis)
    else:
        axis = (i >= mrope_section[0]).long() + (i >= mrope_section[0] + mrope_section[1])
    cos, sin = (table[axis, :, i].T[:, None] for table in (cos, sin))
    for x in (q, k):
        heads = x.view(x.shape[0], -1, head_size)
        pairs = [slice(0, half), slice(half, rotary_dim)] if is_neox_style else [slice(0, rotary_dim, 2)] * 2
        if not is_neox_style:
            pairs[1] = slice(1, rotary_dim, 2)
        one, other = (heads[..., part].float() for part in pairs)
        heads[..., pairs[0]], heads[..., pairs[1]] = one * cos - other * sin, other * cos + one * sin
    return q, k


def fused_experts(
    hidden_states: Any, w1: Any, w2: Any, topk_weights: Any, topk_ids: Any, activation: Any = "silu"
) -> Any:
    assert hidden_states.is_contiguous()  # fused_moe.py, fused_experts_impl
    assert topk_weights.shape == topk_ids.shape
    assert hidden_states.shape[1] == w1.shape[2]
    out = torch.zeros(hidden_states.shape)
    for token, (weights, ids) in enumerate(zip(topk_weights, topk_ids.tolist(), strict=True)):
        for weight, expert in zip(weights, ids, strict=True):
            inner = gated(w1[expert].float() @ hidden_states[token].float()).to(hidden_states.dtype)
            out[token] += weight * (w2[expert].float() @ inner.float())
    return out.to(hidden_states.dtype)


def w8a8_triton_block_scaled_mm(
    A: Any, B: Any, As: Any, Bs: Any, block_size: list[int], output_dtype: Any = torch.float16
) -> Any:
    n, k = block_size
    assert A.is_contiguous()  # fp8_utils.py
    assert ceil(A.shape[1] / k) == As.shape[1] == Bs.shape[1]
    assert ceil(B.shape[0] / n) == Bs.shape[0]
    b = B.float() * Bs.repeat_interleave(n, 0)[: len(B)].repeat_interleave(k, 1)
    return ((A.float() * As.repeat_interleave(k, 1)) @ b.T).to(output_dtype)


def rmsnorm_fn(
    x: Any,
    weight: Any,
    bias: Any,
    z: Any = None,
    eps: float = 1e-6,
    group_size: int | None = None,
    norm_before_gate: bool = True,
    activation: str = "swish",
) -> Any:
    assert bias is None
    gate = torch.sigmoid(z.float()) * (1 if activation == "sigmoid" else z.float())
    if norm_before_gate:
        return (rms_normed(x.float(), weight, eps) * gate).to(x.dtype)
    return rms_normed(x.float() * gate, weight, eps).to(x.dtype)


def l2norm_fwd(x: Any, eps: float = 1e-6, output_dtype: Any = None) -> Any:
    return (x.float() / (x.float().square().sum(-1, keepdim=True) + eps).sqrt()).to(x.dtype)


def unified_attention(
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    cu_seqlens_q: Any,
    max_seqlen_q: int,
    seqused_k: Any,
    max_seqlen_k: int,
    softmax_scale: float,
    causal: bool,
    window_size: tuple[int, int],
    block_table: Any,
    softcap: float,
    q_descale: Any,
    k_descale: Any,
    v_descale: Any,
    seq_threshold_3D: Any = None,
) -> None:
    assert causal
    assert window_size == (-1, -1)
    assert not softcap
    assert max_seqlen_q >= int(cu_seqlens_q.diff().max())
    assert max_seqlen_k >= int(seqused_k.max())
    for n, keys in enumerate(seqused_k.tolist()):
        pages = block_table[n, : ceil(keys / k.shape[1])].long()
        rows = slice(cu_seqlens_q[n], cu_seqlens_q[n + 1])
        own = [cache[pages].flatten(0, 1)[:keys] for cache in (k, v)]
        out[rows] = attended(q[rows], own[0], own[1], softmax_scale, causal=True).to(out.dtype)


def flash_attn_varlen_func(
    q: Any,
    k: Any,
    v: Any,
    max_seqlen_q: int,
    cu_seqlens_q: Any,
    max_seqlen_k: int,
    cu_seqlens_k: Any = None,
    seqused_k: Any = None,
    q_v: Any = None,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    *,
    fa_version: int = 2,
) -> Any:
    assert fa_version == 3
    assert not causal
    assert softmax_scale is not None
    assert max_seqlen_q == int(cu_seqlens_q.diff().max())
    assert max_seqlen_k == int(cu_seqlens_k.diff().max())
    return attended_packed(q, k, v, cu_seqlens_q, cu_seqlens_k, softmax_scale)


def get_flash_attn_version(requires_alibi: bool = False, head_size: int | None = None) -> int | None:
    assert head_size
    return 3


def chunked_prefill_paged_decode(
    query: Any,
    key: Any,
    value: Any,
    output: Any,
    kv_cache_dtype: str,
    key_cache: Any,
    value_cache: Any,
    block_table: Any,
    query_start_loc: Any,
    seq_lens: Any,
    max_seq_len: int,
    max_query_len: int,
    k_scale: Any,
    v_scale: Any,
    alibi_slopes: Any = None,
    sliding_window: Any = None,
    sm_scale: float | None = None,
) -> None:
    assert max_query_len == 1
    assert max_seq_len >= int(seq_lens.max())
    assert query_start_loc.tolist() == list(range(len(seq_lens) + 1))
    assert sm_scale is not None
    for n, keys in enumerate(seq_lens.tolist()):
        pages = block_table[n].long()
        k = key_cache[pages].permute(0, 3, 1, 2, 4).flatten(3).flatten(0, 1)[:keys]
        v = value_cache[pages].permute(0, 3, 1, 2).flatten(0, 1)[:keys]
        found = attended(query[n : n + 1], k, v, sm_scale, causal=False)[0] if keys else torch.zeros(output[n].shape)
        output[n] = found.to(output.dtype)


def decode_attention_fwd(
    q: Any,
    k_buffer: Any,
    v_buffer: Any,
    o: Any,
    lse: Any,
    req_to_token: Any,
    b_seq_len: Any,
    attn_logits: Any,
    num_kv_splits: int,
    sm_scale: float,
    page_size: int = 1,
    logit_cap: float = 0.0,
    k_scale: Any = None,
    v_scale: Any = None,
    is_mla: bool = False,
) -> None:
    assert num_kv_splits == attn_logits.shape[2]
    assert attn_logits.shape[3] == v_buffer.shape[3] + 1  # the last is the log of the sum
    assert attn_logits.dtype == torch.float32
    assert req_to_token.dtype == torch.int32
    assert k_buffer.shape[1:3] == (page_size, 1)
    assert is_mla
    SPLITS.append(num_kv_splits)
    for n, keys in enumerate(b_seq_len.tolist()):
        pages = req_to_token[n, :keys].long()
        o[n] = attended(q[n : n + 1], k_buffer[pages, 0], v_buffer[pages, 0], sm_scale, causal=False)[0]


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FP8, "dtype", torch.float8_e4m3fn)
    SPLITS.clear()
    ops = (
        rms_norm, fused_add_rms_norm, rms_norm_dynamic_per_token_quant, scaled_fp8_quant, topk_softmax, moe_sum,
        reshape_and_cache_flash,
    )  # fmt: skip
    stand_in(monkeypatch, "vllm._custom_ops", rotary_embedding=rotate_in_place, **{each.__name__: each for each in ops})
    monkeypatch.setattr(torch.ops, "_C", SimpleNamespace(silu_and_mul=silu_and_mul), raising=False)
    platform = SimpleNamespace(fp8_dtype=lambda: FP8.dtype, num_compute_units=lambda device_id=0: 2)
    stand_in(monkeypatch, "vllm.platforms", current_platform=platform)
    layers, attention = "vllm.model_executor.layers", "vllm.v1.attention"
    fla = "vllm.third_party.flash_linear_attention.ops"
    modules: dict[str, tuple[Any, ...]] = {
        f"{layers}.quantization.utils.fp8_utils": (per_token_group_quant_fp8, w8a8_triton_block_scaled_mm),
        f"{layers}.rotary_embedding.mrope": (triton_mrope,),
        f"{layers}.fused_moe.fused_moe": (fused_experts,),
        f"{fla}.layernorm_guard": (rmsnorm_fn,),
        f"{fla}.l2norm": (l2norm_fwd,),
        f"{attention}.ops.triton_unified_attention": (unified_attention,),
        f"{attention}.ops.triton_decode_attention": (decode_attention_fwd,),
        f"{attention}.ops.chunked_prefill_paged_decode": (chunked_prefill_paged_decode,),
        f"{attention}.backends.fa_utils": (flash_attn_varlen_func, get_flash_attn_version),
    }
    for module, parts in modules.items():
        stand_in(monkeypatch, module, **{each.__name__: each for each in parts})


@pytest.mark.parametrize(
    "name",
    [
        "rms_norm", "fused_add_rms_norm", "silu_and_mul", "mrope", "reshape_and_cache", "fused_moe", "gated_rms_norm",
        "l2_norm", "unified_attention", "attention_forward", "mla_decode_attention",
    ],
)  # fmt: skip
def test_tiny_shapes_are_right(name: str) -> None:
    assert_tiny("vllm", name)


def test_heads_that_are_no_multiple_are_refused_a_rotation() -> None:
    assert_tiny("vllm", "fused_qkv_rope", None, "a multiple of 2 query heads, found 3", None)


def test_groups_of_experts_are_refused() -> None:
    assert_tiny("vllm", "moe_topk_gating_softmax", None, None, "no groups", "no groups")


def test_a_factor_is_refused() -> None:
    assert_tiny("vllm", "moe_sum_reduce", None, "no factor, expected 2.5", None)


def test_groups_that_are_no_power_of_two_are_refused() -> None:
    assert_tiny("vllm", "block_scaled_mm", None, "found 24 and 32", None, None)


def test_other_fp8_types_than_the_platforms_are_refused() -> None:
    other = "quantises to float8_e4m3fn here, expected fp8_e4m3fnuz"
    assert_tiny("vllm", "per_token_group_quant_fp8", None, other, None, "448 as the largest value of .*, expected 240")
    assert_tiny("vllm", "fused_rmsnorm_quant", other, None, other, other)
    per_token = {"token_count": 5, "hidden_size": 256}
    for fp8 in ({}, {"fp8_dtype": "fp8_e4m3fnuz"}):
        with pytest.raises(Unavailable, match=other):
            assert_right("vllm", "fp8_dynamic_per_token_quant", {**per_token, **fp8})
    assert_right("vllm", "fp8_dynamic_per_token_quant", {**per_token, "fp8_dtype": "fp8_e4m3fn"})


def test_a_group_of_zeros_has_the_contracts_scale() -> None:
    """vLLM asks for the least magnitude, 448 times the least scale."""
    kernel = require_backend("vllm").load("per_token_group_quant_fp8")
    _, scales = kernel(torch.zeros(1, 64, dtype=torch.bfloat16), group_size=64, fp8_dtype="fp8_e4m3fn")
    assert scales.item() == pytest.approx(1e-10, rel=1e-6)


def test_amds_fp8_goes_up_to_224(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FP8, "dtype", torch.float8_e4m3fnuz)
    too_large = "224 as the largest value of fp8_e4m3fnuz, expected 240"
    other = "expected fp8_e4m3fn$"
    assert_tiny("vllm", "fp8_dynamic_per_token_quant", too_large, other, None, other)
    assert_tiny("vllm", "per_token_group_quant_fp8", other, None, other, other)
    assert_tiny("vllm", "fused_rmsnorm_quant", too_large, other, None, too_large)


def test_caches_of_rocms_layout_need_rocm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "hip", None)
    with pytest.raises(Unavailable, match="on ROCm only"):
        require_backend("vllm").load("paged_attention_decode")
    monkeypatch.setattr(torch.version, "hip", "6.4")
    assert_tiny("vllm", "paged_attention_decode")


@pytest.mark.parametrize(("keys", "splits"), [(511, 1), (1100, 2), (1536, 4), (9000, 4)])
def test_latent_attention_splits_keys_as_vllm_does(keys: int, splits: int) -> None:
    """A power of two, of 512 keys each at least, and at most two a compute unit; the stand-in has 2 of them."""
    args = {"batch_size": 1, "ctx_len": keys, "nhead": 2, "kv_lora_rank": 16, "qk_rope_head_dim": 8}
    assert_right("vllm", "mla_decode_attention", args)
    assert [splits] == SPLITS


def test_what_a_version_lacks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.delattr(sys.modules["vllm._custom_ops"], "moe_sum")
    with pytest.raises(Unavailable, match=r"vllm\._custom_ops has no moe_sum in the version of vllm"):
        require_backend("vllm").load("moe_sum_reduce")
    monkeypatch.setattr(torch.ops, "_C", SimpleNamespace())
    with pytest.raises(Unavailable, match=r"has no ops\._C\.silu_and_mul"):
        require_backend("vllm").load("silu_and_mul")
