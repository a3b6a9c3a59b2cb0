"""aiter's adapters against a stand-in: signatures as in its repository in 2026, calls as in vLLM 0.33.0."""

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
    stand_in,
    write_slots,
)

torch = pytest.importorskip("torch", reason="torch isn't installed")

LARGEST = {torch.float8_e4m3fnuz: 240.0, torch.float8_e4m3fn: 448.0}  # aiter/ops/quant.py, get_dtype_max


def rms_norm(input: Any, weight: Any, epsilon: float, use_model_sensitive_rmsnorm: int = 0) -> Any:
    assert weight.dtype == input.dtype  # aiter/ops/rmsnorm.py, _check
    return rms_normed(input, weight, epsilon)


def rmsnorm2d_fwd_with_add(
    out: Any, input: Any, residual_in: Any, residual_out: Any, weight: Any, epsilon: float, gemma_norm: bool = False
) -> None:
    assert residual_in.is_contiguous()  # aiter/ops/rmsnorm.py
    residual_out.copy_(residual_in + input)
    out.copy_(rms_normed(residual_out, weight, epsilon))


def rmsnorm2d_fwd_with_add_dynamicquant(
    out: Any, input: Any, residual_in: Any, residual_out: Any, yscale: Any, weight: Any, epsilon: float
) -> None:
    assert yscale.dtype == torch.float32
    residual_out.copy_(residual_in + input)
    normed = rms_normed(residual_out, weight, epsilon)
    quantise_rows(out, normed, yscale, LARGEST[out.dtype], 1e-30)


def layernorm2d_fwd(input: Any, weight: Any, bias: Any, epsilon: float = 1e-5, x_bias: Any = None) -> Any:
    assert input.dim() == 2
    return torch.nn.functional.layer_norm(
        input.float(), input.shape[-1:], weight.float(), bias.float(), epsilon
    ).to(input.dtype)  # fmt: skip


def silu_and_mul(out: Any, input: Any) -> None:
    out.copy_(gated(input))


def dynamic_per_token_scaled_quant(
    out: Any, input: Any, scales: Any, scale_ub: Any = None, shuffle_scale: bool = False
) -> None:
    assert scales.dtype == torch.float32
    quantise_rows(out, input, scales, LARGEST[out.dtype], 1e-30)


def per_group_quant_hip(
    x: Any, scale: Any = None, quant_dtype: Any = torch.int8, group_size: int = 128, transpose_scale: bool = False
) -> tuple[Any, Any]:
    assert group_size in (32, 64, 128)
    y, scales = torch.empty(x.shape, dtype=quant_dtype), torch.empty(x.shape[0], x.shape[1] // group_size)
    rows = x.view(-1, group_size)
    quantise_rows(y.view(-1, group_size), rows, scales.view(-1), LARGEST[quant_dtype], 1e-30)
    return y, scales


def topk_softmax(
    topk_weights: Any, topk_indices: Any, token_expert_indices: Any, gating_output: Any, need_renorm: bool
) -> None:
    assert token_expert_indices.shape == topk_indices.shape
    assert not need_renorm
    choose_experts(topk_weights, topk_indices, gating_output)


def moe_sum(input: Any, output: Any) -> None:
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
    assert slot_mapping.dtype == torch.int64
    write_slots(key, value, key_cache, value_cache, slot_mapping)


def flash_attn_varlen_func(
    q: Any,
    k: Any,
    v: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    max_seqlen_q: int,
    max_seqlen_k: int,
    min_seqlen_q: int = 0,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    logits_soft_cap: float = 0.0,
    causal: bool = False,
) -> Any:
    assert not causal
    assert softmax_scale is not None
    assert max_seqlen_q == int(cu_seqlens_q.diff().max())
    assert max_seqlen_k == int(cu_seqlens_k.diff().max())
    return attended_packed(q, k, v, cu_seqlens_q, cu_seqlens_k, softmax_scale)


def paged_attention_rocm(
    out: Any,
    exp_sums: Any,
    max_logits: Any,
    tmp_out: Any,
    query: Any,
    key_cache: Any,
    value_cache: Any,
    num_kv_heads: int,
    scale: float,
    block_tables: Any,
    context_lens: Any,
    block_size: int,
    max_context_len: int,
    alibi_slopes: Any,
    kv_cache_dtype: str,
    k_scale: Any,
    v_scale: Any,
    fp8_out_scale: Any = None,
    partition_size: int = 256,
    mtp: int = 1,
    q_scale: Any = None,
) -> Any:
    parts = -(-max_context_len // partition_size)
    assert tmp_out.shape == (*query.shape[:2], parts, query.shape[2])
    assert exp_sums.shape == max_logits.shape == tmp_out.shape[:3]
    assert exp_sums.dtype == torch.float32
    assert max_context_len >= int(context_lens.max())
    assert (num_kv_heads, block_size) == (key_cache.shape[1], key_cache.shape[3])
    for n, keys in enumerate(context_lens.tolist()):
        pages = block_tables[n].long()
        k = key_cache[pages].permute(0, 3, 1, 2, 4).flatten(3).flatten(0, 1)[:keys]
        v = value_cache[pages].permute(0, 3, 1, 2).flatten(0, 1)[:keys]
        out[n] = attended(query[n : n + 1], k, v, scale, causal=False)[0].to(out.dtype) if keys else 0
    return out


def mla_decode_fwd(
    q: Any,
    kv_buffer: Any,
    o: Any,
    qo_indptr: Any,
    kv_indptr: Any,
    kv_indices: Any,
    kv_last_page_lens: Any,
    max_seqlen_q: int,
    *,
    sm_scale: float | None = None,
    logit_cap: float = 0.0,
) -> None:
    assert max_seqlen_q == 1
    assert sm_scale is not None
    assert kv_last_page_lens.tolist() == [1] * len(q)
    for each in (qo_indptr, kv_indptr, kv_indices, kv_last_page_lens):
        assert each.dtype == torch.int32
    for n in range(len(q)):
        row = kv_buffer[kv_indices[kv_indptr[n] : kv_indptr[n + 1]].long(), 0]
        own = q[qo_indptr[n] : qo_indptr[n + 1]]
        o[n] = attended(own, row, row[..., : o.shape[2]], sm_scale, causal=False)[0]


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = (
        rms_norm, rmsnorm2d_fwd_with_add, rmsnorm2d_fwd_with_add_dynamicquant, layernorm2d_fwd, silu_and_mul,
        dynamic_per_token_scaled_quant, topk_softmax, moe_sum, reshape_and_cache_flash, flash_attn_varlen_func,
        paged_attention_rocm,
    )  # fmt: skip
    dtypes = SimpleNamespace(fp8=torch.float8_e4m3fnuz)
    stand_in(monkeypatch, "aiter", dtypes=dtypes, **{each.__name__: each for each in parts})
    stand_in(monkeypatch, "aiter.ops.quant", per_group_quant_hip=per_group_quant_hip)
    stand_in(monkeypatch, "aiter.mla", mla_decode_fwd=mla_decode_fwd)


@pytest.mark.parametrize(
    "name",
    [
        "rms_norm", "fused_add_rms_norm", "layer_norm", "silu_and_mul", "reshape_and_cache", "attention_forward",
        "paged_attention_decode",
    ],
)  # fmt: skip
def test_tiny_shapes_are_right(name: str) -> None:
    assert_tiny("aiter", name)


def test_fp8_is_the_gpus_with_its_whole_range() -> None:
    small = "240 as the largest value of fp8_e4m3fnuz, expected 224"
    assert_right("aiter", "fp8_dynamic_per_token_quant", {"token_count": 5, "hidden_size": 129})
    assert_right("aiter", "fused_rmsnorm_quant", {"token_count": 5, "hidden_size": 129})
    for name in ("fp8_dynamic_per_token_quant", "fused_rmsnorm_quant"):
        args = {"token_count": 5, "hidden_size": 129}
        assert_refused(name, {**args, "fp8_max": 224.0}, small)
        assert_refused(
            name, {**args, "fp8_dtype": "fp8_e4m3fn"}, "quantises to float8_e4m3fnuz here, expected fp8_e4m3fn"
        )
    group = {"token_count": 5, "hidden_size": 256, "group_size": 64, "fp8_dtype": "fp8_e4m3fnuz"}
    assert_right("aiter", "per_token_group_quant_fp8", {**group, "fp8_max": 240.0})
    assert_refused("per_token_group_quant_fp8", group, small)
    assert_refused("per_token_group_quant_fp8", {**group, "group_size": 16}, "32, 64 and 128 columns, expected 16")


def test_groups_of_experts_are_refused() -> None:
    assert_tiny("aiter", "moe_topk_gating_softmax", None, None, "no groups", "no groups")


def test_a_factor_is_refused() -> None:
    assert_tiny("aiter", "moe_sum_reduce", None, "no factor, expected 2.5", None)


def test_latent_attention_has_one_row_and_two_numbers_of_heads() -> None:
    args = {"batch_size": 3, "ctx_len": 17, "ctx_lens": [3, 17, 1], "kv_lora_rank": 512, "qk_rope_head_dim": 64}
    assert_right("aiter", "mla_decode_attention", {**args, "nhead": 16})
    assert_refused("mla_decode_attention", {**args, "nhead": 5}, "has 16 or 128 heads, expected 5")
    assert_refused(
        "mla_decode_attention", {**args, "nhead": 16, "kv_lora_rank": 256}, r"rows of \(512, 64\), found \(256, 64\)"
    )


def assert_refused(name: str, args: dict[str, Any], words: str) -> None:
    from inferometer.errors import Unavailable

    with pytest.raises(Unavailable, match=words):
        assert_right("aiter", name, args)
