"""Attention over pages by several libraries' kernels: heads, layouts, windows and lengths, counted by hand."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.operators.framework.test_serving import call_of, work_of

from inferometer.operators.framework.call import Unmodelled
from inferometer.operators.framework.family import model_of
from inferometer.operators.framework.lengths import Context, Lengths

BF16, FP8, RAW, I32 = "c10::BFloat16", "c10::Float8_e4m3fn", "unsigned char", "int"
B, HEADS, KEY_HEADS, D, KEYS = 3, 8, 2, 16, 100
STEP = Lengths(context=Context(queries=B, keys=KEYS, pairs=KEYS))


def bf16(*dims: int) -> Any:
    return dims, BF16


Q, WORKSPACE, PLAN = bf16(B, HEADS, D), ((1024,), RAW), ((15,), "long int")
SPLIT = bf16(9, KEY_HEADS, D // 8, 4, 8), bf16(9, KEY_HEADS, D, 4)
STARTS = ((B + 1,), I32)
TOKENS_FIRST, HEADS_FIRST = [bf16(9, 4, KEY_HEADS, D)] * 2, [bf16(9, KEY_HEADS, 4, D)] * 2
DECODE = "flashinfer::batch_decode_with_kv_cache_dtype_q_bf16_run"
PREFILL = "flashinfer::batch_prefill_with_kv_cache_dtype_q_bf16_paged_run"
RAGGED = "flashinfer::batch_prefill_with_kv_cache_dtype_q_bf16_ragged_run"
PAGES = STARTS, ((25,), I32), ((B,), I32)


def flashinfer(caches: list[Any], layout: int, left: int = -1) -> Any:
    return call_of(DECODE, WORKSPACE, WORKSPACE, PLAN, Q, *caches, *PAGES, Q, None, layout, left, False)


CALLS = {
    "vLLM's first": call_of("_C::paged_attention_v1", Q, Q, *SPLIT, KEY_HEADS, 0.25, ((B, 9), I32), ((B,), I32), 4, 64),
    "vLLM's second": call_of("_C::paged_attention_v2", Q, Q, Q, Q, Q, *SPLIT, KEY_HEADS, 0.25, ((B, 9), I32)),
    "of ROCm": call_of("_rocm_C::paged_attention", Q, Q, Q, Q, Q, *SPLIT, KEY_HEADS, 0.25, ((B, 9), I32)),
    "AITER's": call_of("aiter::pa_fwd_asm", Q, *SPLIT, ((B, 9), I32), ((B,), I32)),
    "FlashInfer's, tokens first": flashinfer(TOKENS_FIRST, 0),
    "FlashInfer's, heads first": flashinfer(HEADS_FIRST, 1),
    "FlashInfer's prefill": call_of(
        PREFILL, WORKSPACE, WORKSPACE, PLAN, Q, *TOKENS_FIRST, STARTS, *PAGES, Q, None, 1, 0, -1
    ),
    "without pages or a plan": call_of(
        "flashinfer::batch_decode_with_paged_kv_cache_run", Q, *[bf16(524288, KEY_HEADS, D)] * 2, *PAGES, Q, 0, -1
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_pairs_and_bytes_are_those_of_the_step(case: str) -> None:
    work = work_of(replace(CALLS[case], lengths=STEP))

    assert work.matrix_flops == 2 * 2 * KEYS * HEADS * D
    assert work.read_bytes == 2 * B * HEADS * D + 2 * 2 * KEYS * KEY_HEADS * D
    assert work.written_bytes == 2 * B * HEADS * D


@pytest.mark.parametrize("case", CALLS)
def test_without_lengths_it_is_unknown(case: str) -> None:
    with pytest.raises(Unmodelled, match="sequences"):
        work_of(CALLS[case])

    found = model_of(CALLS[case].op)
    assert found is not None
    assert found.needs_lengths


def test_a_cache_of_8_bits_is_read_in_8() -> None:
    caches = [((9, 4, KEY_HEADS, D), FP8)] * 2

    work = work_of(replace(flashinfer(caches, 0), lengths=STEP))

    assert work.read_bytes == 2 * B * HEADS * D + 2 * KEYS * KEY_HEADS * D
    assert work.dtype == "bf16"


def test_a_window_of_the_call_holds_for_it() -> None:
    even = Lengths(context=Context(queries=B, keys=90, pairs=90))

    work = work_of(replace(flashinfer(TOKENS_FIRST, 0, left=9), lengths=even))

    assert work.matrix_flops == 2 * 2 * B * 10 * HEADS * D


def test_a_step_with_prefills_does_not_tell_what_its_decodes_see() -> None:
    mixed = Lengths(context=Context(queries=B + 40, keys=KEYS, pairs=700))

    with pytest.raises(Unmodelled, match="several new tokens"):
        work_of(replace(flashinfer(TOKENS_FIRST, 0), lengths=mixed))


def test_a_prefill_that_serves_a_part_of_its_step_is_unknown() -> None:
    mixed = Lengths(context=Context(queries=B + 2, keys=KEYS, pairs=KEYS))

    with pytest.raises(Unmodelled, match="several new tokens"):
        work_of(replace(CALLS["FlashInfer's prefill"], lengths=mixed))


def test_a_cache_in_pages_without_a_layout_is_unknown() -> None:
    call = call_of(DECODE, Q, *TOKENS_FIRST, *PAGES, Q, lengths=STEP)

    with pytest.raises(Unmodelled, match="lies"):
        work_of(call)


@pytest.mark.parametrize(("causal", "pairs"), [(True, 3 * 10), (False, 3 * 16)])
def test_sequences_without_a_cache_have_the_fewest_pairs(causal: bool, pairs: int) -> None:
    q, k = bf16(12, HEADS, D), bf16(12, KEY_HEADS, D)
    call = call_of(RAGGED, WORKSPACE, WORKSPACE, PLAN, q, k, k, STARTS, STARTS, q, None, int(causal), 0, -1)

    work = work_of(call)

    assert work.read_bytes == 2 * 12 * HEADS * D + 2 * 2 * 12 * KEY_HEADS * D
    if causal:
        assert work.matrix_flops == 2 * 2 * pairs * HEADS * D
    assert work.matrix_flops <= 2 * 2 * pairs * HEADS * D
    assert work.assumes


LATENTS = ((9, 64, 1, 576), BF16)
PARTS = bf16(B, HEADS, 512), bf16(B, HEADS, 64)
MLA = {
    "of two parts": call_of("sgl_kernel::cutlass_mla_decode", PARTS[0], *PARTS, ((9, 64, 576), BF16)),
    "FlashMLA": call_of("_flashmla_C::fwd_kvcache_mla", bf16(B, 1, HEADS, 576), LATENTS, 512, ((B,), I32)),
    "AITER's": call_of("aiter::mla_decode_stage1_asm_fwd", bf16(B, HEADS, 576), LATENTS),
}  # fmt: skip


@pytest.mark.parametrize("case", MLA)
def test_latents_are_read_once_for_keys_and_values(case: str) -> None:
    work = work_of(replace(MLA[case], lengths=STEP))

    assert work.matrix_flops == 2 * KEYS * HEADS * (576 + 512)
    assert work.read_bytes == 2 * B * HEADS * 576 + 2 * KEYS * 576
    assert work.written_bytes == 2 * B * HEADS * 512
