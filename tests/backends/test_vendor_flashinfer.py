"""FlashInfer's adapters against a stand-in of flashinfer-python 0.7.2.post1: its signatures, read in the wheel."""

from typing import Any

import pytest
from tests.backends.standins import (
    assert_right,
    assert_tiny,
    attended,
    attended_packed,
    gated,
    rms_normed,
    stand_in,
)

torch = pytest.importorskip("torch", reason="torch isn't installed")

PLANS: list[str] = []  # which wrapper planned, in order


def rmsnorm(input: Any, weight: Any, eps: float = 1e-6, out: Any = None, enable_pdl: bool | None = None) -> Any:
    assert input.dim() in (2, 3)  # csrc/norm.cu
    assert input.stride(-1) == 1
    out = torch.empty_like(input) if out is None else out
    out.copy_(rms_normed(input, weight, eps))
    return out


def fused_add_rmsnorm(
    input: Any, residual: Any, weight: Any, eps: float = 1e-6, enable_pdl: bool | None = None
) -> None:
    residual += input
    input.copy_(rms_normed(residual, weight, eps))


def silu_and_mul(input: Any, out: Any = None, enable_pdl: bool | None = None) -> Any:
    assert input.shape[-1] % 2 == 0  # activation.py, _check_act_and_mul_input
    return gated(input)


def apply_rope_pos_ids(
    q: Any,
    k: Any,
    pos_ids: Any,
    rotary_dim: int | None = None,
    interleave: bool = False,
    rope_scale: float = 1,
    rope_theta: float = 1e4,
) -> tuple[Any, Any]:
    assert q.shape[2] in (64, 128, 256, 512)  # include/flashinfer/utils.cuh, DISPATCH_HEAD_DIM
    assert q.shape[0] == k.shape[0] == pos_ids.shape[0]
    assert not interleave
    half = (rotary_dim or q.shape[2]) // 2
    angle = pos_ids.double()[:, None] / rope_scale * rope_theta ** (-torch.arange(half).double() / half)
    return _turned(q, angle, half), _turned(k, angle, half)


def _turned(x: Any, angle: Any, half: int) -> Any:
    out = torch.empty_like(x)
    one, other = x[..., :half].double(), x[..., half : 2 * half].double()
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    out.copy_(torch.cat([one * cos - other * sin, other * cos + one * sin, x[..., 2 * half :].double()], -1))
    return out


def top_k_mask_logits(logits: Any, top_k: Any) -> Any:
    assert 0 < top_k < logits.shape[1]  # as its documentation says
    return logits.masked_fill(logits < logits.topk(top_k, -1).values[:, -1:], float("-inf"))


class RaggedWrapper:
    def __init__(self, float_workspace_buffer: Any, kv_layout: str = "NHD", use_cuda_graph: bool = False) -> None:
        assert float_workspace_buffer.dtype == torch.uint8
        assert kv_layout == "NHD"
        PLANS.append("made")

    def plan(
        self,
        qo_indptr: Any,
        kv_indptr: Any,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim_qk: int,
        head_dim_vo: int | None = None,
        custom_mask: Any = None,
        packed_custom_mask: Any = None,
        causal: bool = False,
        *,
        q_data_type: Any = "float16",
    ) -> None:
        assert not causal
        PLANS.append("ragged")
        self.starts, self.shape, self.dtype = (qo_indptr, kv_indptr), (num_qo_heads, head_dim_qk), q_data_type

    def run(self, q: Any, k: Any, v: Any) -> Any:
        assert tuple(q.shape[1:]) == self.shape
        assert q.dtype == self.dtype
        return attended_packed(q, k, v, *self.starts, self.shape[1] ** -0.5)


class PagedWrapper(RaggedWrapper):
    def plan(  # type: ignore[override]  # as there, they only look alike
        self,
        qo_indptr: Any,
        paged_kv_indptr: Any,
        paged_kv_indices: Any,
        paged_kv_last_page_len: Any,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim_qk: int,
        page_size: int,
        head_dim_vo: int | None = None,
        custom_mask: Any = None,
        packed_custom_mask: Any = None,
        causal: bool = False,
        *,
        q_data_type: Any = "float16",
    ) -> None:
        PLANS.append("paged")
        for each in (qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len):
            assert each.dtype == torch.int32
        assert len(paged_kv_indices) == paged_kv_indptr[-1]
        self.q_starts, self.causal, self.page = qo_indptr, causal, page_size
        self.pages = (paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len)
        self.heads = (num_qo_heads, num_kv_heads)

    def run(self, q: Any, paged_kv_cache: Any) -> Any:  # type: ignore[override]
        k_cache, v_cache = paged_kv_cache
        assert (q.shape[1], k_cache.shape[2], k_cache.shape[1]) == (*self.heads, self.page)
        starts, indices, last = self.pages
        out = torch.empty_like(q)
        for n in range(len(last)):
            pages = indices[starts[n] : starts[n + 1]].long()
            keys = (len(pages) - 1) * self.page + int(last[n])
            rows = slice(self.q_starts[n], self.q_starts[n + 1])
            k, v = (cache[pages].flatten(0, 1)[:keys] for cache in (k_cache, v_cache))
            out[rows] = attended(q[rows], k, v, q.shape[2] ** -0.5, self.causal).to(q.dtype)
        return out


class LatentWrapper:
    def __init__(self, float_workspace_buffer: Any, use_cuda_graph: bool = False) -> None:
        assert float_workspace_buffer.dtype == torch.uint8

    def plan(
        self,
        qo_indptr: Any = None,
        kv_indptr: Any = None,
        kv_indices: Any = None,
        kv_len_arr: Any = None,
        num_heads: int | None = None,
        head_dim_ckv: int | None = None,
        head_dim_kpe: int | None = None,
        page_size: int | None = None,
        causal: bool | None = None,
        sm_scale: float | None = None,
        q_data_type: Any = None,
        kv_data_type: Any = None,
    ) -> None:
        PLANS.append("latent")
        assert (head_dim_ckv, head_dim_kpe, page_size) == (512, 64, 1)
        assert qo_indptr.tolist() == list(range(len(kv_len_arr) + 1))
        for each in (qo_indptr, kv_indptr, kv_indices, kv_len_arr):
            assert each.dtype == torch.int32
        assert sm_scale is not None
        self.starts, self.indices, self.lengths, self.scale = kv_indptr, kv_indices, kv_len_arr, sm_scale

    def run(
        self, q_nope: Any = None, q_pe: Any = None, ckv_cache: Any = None, kpe_cache: Any = None, out: Any = None
    ) -> Any:
        out = torch.empty(q_nope.shape, dtype=q_nope.dtype)
        row = torch.cat([ckv_cache, kpe_cache], -1)
        for n, keys in enumerate(self.lengths.tolist()):
            k = row[self.indices[self.starts[n] : self.starts[n + 1]].long()]
            assert len(k) == keys
            q = torch.cat([q_nope[n], q_pe[n]], -1)[None]
            out[n] = attended(q, k, k[..., :512], self.scale, causal=False)[0]
        return out


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    PLANS.clear()
    stand_in(
        monkeypatch,
        "flashinfer",
        BatchPrefillWithRaggedKVCacheWrapper=RaggedWrapper,
        BatchPrefillWithPagedKVCacheWrapper=PagedWrapper,
    )
    stand_in(monkeypatch, "flashinfer.norm", rmsnorm=rmsnorm, fused_add_rmsnorm=fused_add_rmsnorm)
    stand_in(monkeypatch, "flashinfer.activation", silu_and_mul=silu_and_mul)
    stand_in(monkeypatch, "flashinfer.rope", apply_rope_pos_ids=apply_rope_pos_ids)
    stand_in(monkeypatch, "flashinfer.sampling", top_k_mask_logits=top_k_mask_logits)
    stand_in(monkeypatch, "flashinfer.mla", BatchMLAPagedAttentionWrapper=LatentWrapper)


@pytest.mark.parametrize("name", ["rms_norm", "fused_add_rms_norm", "fused_qk_rmsnorm", "silu_and_mul"])
def test_tiny_shapes_are_right(name: str) -> None:
    assert_tiny("flashinfer", name)


def test_heads_that_it_has_no_rotation_for_are_refused() -> None:
    assert_tiny("flashinfer", "fused_qkv_rope", None, "heads of 64, 128, 256, 512 columns, expected 24", "expected 72")


@pytest.mark.parametrize("with_bias", [False, True])
def test_rotation_turns_some_columns_by_any_base(with_bias: bool) -> None:
    args = {"total_tokens": 9, "num_heads": 3, "num_kv_heads": 2, "head_dim": 64, "rope_dim": 32, "rope_base": 1e6}
    assert_right("flashinfer", "fused_qkv_rope", {**args, "with_bias": with_bias})


def test_k_as_wide_as_the_row_is_refused() -> None:
    assert_tiny("flashinfer", "topk_filter", None, "a k below the row's width 40, found 50", None, None)


def test_attention_without_a_mask() -> None:
    assert_tiny("flashinfer", "attention_forward", "expected 72", "expected 16", "expected 80")
    args = {"num_heads": 2, "head_dim": 64, "seq_lens": [1, 33, 9], "key_lens": [5, 7, 40]}
    assert_right("flashinfer", "attention_forward", args)


def test_attention_over_pages() -> None:
    assert_tiny("flashinfer", "unified_attention", "expected 16", "expected 72", "expected 8")
    shape = {"num_query_heads": 4, "num_kv_heads": 2, "head_size": 64, "block_size": 16}
    assert_right("flashinfer", "unified_attention", {**shape, "seq_lens": [1, 63, 32]})
    assert_right("flashinfer", "unified_attention", {**shape, "seq_lens": [40, 17, 9], "query_lens": [1, 17, 5]})


def test_latent_attention_has_one_row() -> None:
    words = r"rows of \(512, 64\), found"
    assert_tiny("flashinfer", "mla_decode_attention", words, words, words)
    args = {"batch_size": 3, "ctx_len": 17, "ctx_lens": [3, 17, 1], "nhead": 4}
    assert_right("flashinfer", "mla_decode_attention", {**args, "kv_lora_rank": 512, "qk_rope_head_dim": 64})


def test_a_batch_is_planned_once_until_its_lengths_are_written() -> None:
    from inferometer.backends import require_backend
    from inferometer.operators import operators

    operator = operators()["attention_forward"]
    kernel = require_backend("flashinfer").load("attention_forward")
    tensors = operator.inputs(num_heads=1, head_dim=64, seq_lens=[3, 5], seed=1)
    kernel(*tensors.values())
    kernel(*tensors.values())
    assert PLANS == ["made", "ragged"]
    tensors["cu_seqlens_q"].copy_(torch.tensor([0, 4, 8], dtype=torch.int32))
    tensors["cu_seqlens_k"].copy_(torch.tensor([0, 4, 8], dtype=torch.int32))
    found = kernel(*tensors.values())
    assert PLANS == ["made", "ragged"] * 2
    torch.testing.assert_close(found, operator.answer(tensors, {})["out"], rtol=2e-2, atol=2e-2)
    fresh = {name: tensor.clone() for name, tensor in tensors.items()}
    torch.testing.assert_close(kernel(*fresh.values()), found)
    assert PLANS == ["made", "ragged", "made", "ragged", "ragged"], "a third batch is planned with the first one's"
