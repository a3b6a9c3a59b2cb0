"""What kernels of vLLM, SGLang, FlashInfer and AITER read and write, with arguments as they register them: by hand."""

from typing import Any

import pytest
from tests.operators.framework.test_serving import call_of, work_of

BF16, FP8, RAW, I64, I32, F32 = "c10::BFloat16", "c10::Float8_e4m3fn", "unsigned char", "long int", "int", "float"
T, H, D, HEADS, KEY_HEADS, TABLE = 6, 64, 8, 4, 2, 100


def bf16(*dims: int) -> Any:
    return dims, BF16


def of(dtype: str, *dims: int) -> Any:
    return dims, dtype


X, WEIGHT = bf16(T, H), bf16(H)
Q, K = bf16(T, HEADS, D), bf16(T, KEY_HEADS, D)
COS_SIN, POSITIONS = of(F32, TABLE, D), of(I64, T)
TURNED = T * (HEADS + KEY_HEADS) * D
CHOICE = of(F32, T, 2), of(I32, T, 2)
LOGITS = of(F32, T, 16)
PROBABILITIES = of(F32, T, 1000)
MOVED: dict[str, tuple[Any, int, int]] = {
    "gemma's norm": (call_of("sgl_kernel::gemma_rmsnorm", X, X, WEIGHT, 1e-6, False), 2 * T * H + 2 * H, 2 * T * H),
    "a norm of FlashInfer": (call_of("flashinfer::rmsnorm", X, X, WEIGHT, 1e-6, False), 2 * T * H + 2 * H, 2 * T * H),
    "a sum and a norm of FlashInfer": (
        call_of("flashinfer::fused_add_rmsnorm", X, X, WEIGHT, 1e-6), 4 * T * H + 2 * H, 4 * T * H,
    ),
    "a norm without an output": (call_of("aiter::rmsnorm2d_fwd", X, WEIGHT, 1e-6, 0), 2 * T * H + 2 * H, 2 * T * H),
    "a gate of FlashInfer": (call_of("flashinfer::silu_and_mul", X, bf16(T, 2 * H), False), 4 * T * H, 2 * T * H),
    "gpt-oss's gate": (call_of("_C::swigluoai_and_mul", X, bf16(T, 2 * H), 1.702, 7.0), 4 * T * H, 2 * T * H),
    "an activation": (call_of("_C::gelu_fast", X, X), 2 * T * H, 2 * T * H),
    "rotary by ids": (
        call_of("sgl_kernel::apply_rope_pos_ids_cos_sin_cache", Q, K, Q, K, COS_SIN, POSITIONS, False),
        2 * TURNED + T * D * 4 + T * 8, 2 * TURNED,
    ),
    "rotary of half of each head": (
        call_of("flashinfer::apply_rope_pos_ids_cos_sin_cache", Q, K, Q, K, of(F32, TABLE, D // 2), POSITIONS, False),
        TURNED + T * D * 2 + T * 8, TURNED,
    ),
    "rotary that fills caches of 8 bits": (
        call_of("sgl_kernel::apply_rope_pos_ids_cos_sin_cache", Q, K, Q, K, COS_SIN, POSITIONS, False, False, 0,
                K, of(FP8, TABLE, KEY_HEADS, D), of(FP8, TABLE, KEY_HEADS, D), POSITIONS),
        2 * TURNED + T * D * 4 + T * 8 + 2 * T * KEY_HEADS * D + T * 8, 2 * TURNED + 2 * T * KEY_HEADS * D,
    ),
    "norms and rotary of q and k in one": (
        call_of("_C::fused_qk_norm_rope", bf16(T, (HEADS + 2 * KEY_HEADS) * D), HEADS, KEY_HEADS, KEY_HEADS, D, 1e-6,
                bf16(D), bf16(D), COS_SIN, True, POSITIONS),
        2 * TURNED + 2 * 2 * D + T * D * 4 + T * 8, 2 * TURNED,
    ),
    "rotary of AITER": (
        call_of("aiter::rope_cached_positions_2c_fwd_impl", bf16(T, 1, HEADS, D), bf16(T, 1, KEY_HEADS, D),
                bf16(T, 1, HEADS, D), bf16(T, 1, KEY_HEADS, D), *[bf16(TABLE, 1, 1, D // 2)] * 2, of(I64, T, 1), 0),
        2 * TURNED + 2 * T * D // 2 * 2 + T * 8, 2 * TURNED,
    ),
    "latents into a cache": (
        call_of("_C_cache_ops::concat_and_cache_mla", bf16(T, 512), bf16(T, 64), of(FP8, 9, 16, 576), of(I64, T - 1)),
        2 * (T - 1) * 576 + 8 * (T - 1), (T - 1) * 576,
    ),
    "keys and values into pages": (
        call_of("flashinfer::append_paged_kv_cache", K, K, of(I32, T), of(I32, T), *[bf16(9, 16, KEY_HEADS, D)] * 2),
        2 * 2 * T * KEY_HEADS * D + 2 * 4 * T, 2 * 2 * T * KEY_HEADS * D,
    ),
    "choice of experts": (call_of("sgl_kernel::topk_softmax", *CHOICE, LOGITS, True), T * 16 * 4, T * 2 * 8),
    "choice by groups": (
        call_of("sgl_kernel::moe_fused_gate", LOGITS, of(F32, 16), 4, 2, 2, 0, 1.0, False), T * 64 + 64, T * 2 * 8,
    ),
    "choice by groups, of AITER": (
        call_of("aiter::biased_grouped_topk", LOGITS, of(F32, 16), *CHOICE, 4, 2, True, 1.0), T * 64 + 64, T * 2 * 8,
    ),
    "tokens sorted by expert": (
        call_of("aiter::moe_sorting_fwd", CHOICE[1], CHOICE[0], of(I32, 99), of(F32, 99)), T * 2 * 8, T * 2 * 8,
    ),
    "the sum over experts": (call_of("sgl_kernel::moe_sum_reduce", bf16(T, 2, H), X, 1.0), 4 * T * H, 2 * T * H),
    "a token for each row": (
        call_of("sgl_kernel::top_k_top_p_sampling_from_probs", PROBABILITIES, of(I32, T)), 4 * T * 1000, 4 * T,
    ),
    "probabilities of the likeliest": (
        call_of("flashinfer::top_k_renorm_probs", PROBABILITIES, None, 40), 4 * T * 1000, 4 * T * 1000,
    ),
    "8 bits by groups": (
        call_of("sgl_kernel::sgl_per_token_group_quant_8bit", X, of(FP8, T, H), of(F32, T, H // 16), 16),
        2 * T * H, T * H + 4 * T * H // 16,
    ),
    "8 bits with a scale that is given": (
        call_of("sgl_kernel::sgl_per_tensor_quant_fp8", X, of(FP8, T, H), of(F32, 1), "True"), 2 * T * H + 4, T * H,
    ),
    "8 bits with a scale that is found": (
        call_of("sgl_kernel::sgl_per_tensor_quant_fp8", X, of(FP8, T, H), of(F32, 1), "False"), 2 * T * H, T * H + 4,
    ),
    "integers of 8 bits": (
        call_of("_C::dynamic_scaled_int8_quant", of("signed char", T, H), X, of(F32, T, 1)), 2 * T * H, T * H + 4 * T,
    ),
    "4 bits": (
        call_of("_C::scaled_fp4_quant", of(RAW, T, H // 2), X, of(RAW, T, H // 16), of(F32, 1)),
        2 * T * H + 4, T * H // 2 + T * H // 16,
    ),
    "a norm, then 8 bits": (
        call_of("_C::fused_add_rms_norm_static_fp8_quant", of(FP8, T, H), X, X, WEIGHT, of(F32, 1), 1e-6),
        4 * T * H + 2 * H + 4, T * H + 2 * T * H,
    ),
    "a norm, then 8 bits with scales that are found": (
        call_of("_C::rms_norm_dynamic_per_token_quant", of(FP8, T, H), X, WEIGHT, of(F32, T, 1), 1e-6, None, X),
        4 * T * H + 2 * H, T * H + 4 * T + 2 * T * H,
    ),
    "a gate, then 8 bits": (
        call_of("_C::silu_and_mul_quant", of(FP8, T, H), bf16(T, 2 * H), of(F32, 1)), 4 * T * H + 4, T * H,
    ),
    "a weight of 4 bits made of 16": (
        call_of("sgl_kernel::awq_dequantize", of(I32, H, 16), bf16(2, 128), of(I32, 2, 16)),
        4 * H * 16 + 2 * 2 * 128 + 4 * 2 * 16, 2 * H * 128,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MOVED)
def test_each_moves_what_its_arguments_say(case: str) -> None:
    call, read, written = MOVED[case]

    work = work_of(call)

    assert (work.read_bytes, work.written_bytes) == (read, written)


M, N, DEPTH = 6, 48, 128
A8, B8, SCALES = of(FP8, M, DEPTH), of(FP8, DEPTH, N), (of(F32, M, 1), of(F32, 1, N))
PRODUCTS: dict[str, tuple[Any, str, int, int]] = {
    "CUTLASS of 8 bits": (
        call_of("_C::cutlass_scaled_mm", bf16(M, N), A8, B8, *SCALES, bf16(N)), "fp8",
        M * DEPTH + DEPTH * N + 4 * (M + N) + 2 * N, 2 * M * N,
    ),
    "CUTLASS of integers with zeros": (
        call_of("_C::cutlass_scaled_mm_azp", bf16(M, N), *(of("signed char", *s) for s in ((M, DEPTH), (DEPTH, N))),
                *SCALES, of(I32, 1, N), of(I32, M, 1), None), "int8",
        M * DEPTH + DEPTH * N + 4 * (M + N) + 4 * (M + N), 2 * M * N,
    ),
    "SGLang's of 8 bits": (
        call_of("sgl_kernel::fp8_scaled_mm", A8, B8, *SCALES, 15, None), "fp8",
        M * DEPTH + DEPTH * N + 4 * (M + N), 2 * M * N,
    ),
    "SGLang's of integers, in float32": (
        call_of("sgl_kernel::int8_scaled_mm", of("signed char", M, DEPTH), of("signed char", DEPTH, N), *SCALES, 6),
        "int8", M * DEPTH + DEPTH * N + 4 * (M + N), 4 * M * N,
    ),
    "CUTLASS of 4 bits": (
        call_of("_C::cutlass_scaled_fp4_mm", bf16(M, N), of(RAW, M, DEPTH // 2), of(RAW, N, DEPTH // 2),
                of(RAW, M, DEPTH // 16), of(RAW, N, DEPTH // 16), of(F32, 1)), "fp4",
        (M + N) * (DEPTH // 2 + DEPTH // 16) + 4, 2 * M * N,
    ),
    "Marlin": (
        call_of("_C::marlin_gemm", bf16(M, DEPTH), None, of(I32, DEPTH // 16, 2 * N), None, bf16(DEPTH // 64, N), None,
                None, None, None, None, of(I32, 99), 7, M, N, DEPTH, "True"), "bf16",
        2 * M * DEPTH + DEPTH * N // 2 + 2 * N * DEPTH // 64, 2 * M * N,
    ),
    "GPTQ": (
        call_of("_C::gptq_gemm", bf16(M, DEPTH), of(I32, DEPTH // 8, N), of(I32, 2, N // 8), bf16(DEPTH // 64, N),
                of(I32, DEPTH), "True", 4), "bf16",
        2 * M * DEPTH + DEPTH * N // 2 + 2 * N * DEPTH // 64, 2 * M * N,
    ),
    "AWQ": (
        call_of("_C::awq_gemm", bf16(M, DEPTH), of(I32, DEPTH, N // 8), bf16(DEPTH // 64, N), of(I32, 2, N // 8), 8),
        "bf16", 2 * M * DEPTH + DEPTH * N // 2 + 2 * N * DEPTH // 64, 2 * M * N,
    ),
    "ROCm's for few rows": (
        call_of("_rocm_C::wvSplitK", bf16(N, DEPTH), bf16(M, DEPTH), 304), "bf16", 2 * (M + N) * DEPTH, 2 * M * N,
    ),
    "AITER's of 8 bits": (
        call_of("aiter::gemm_a8w8", of("signed char", M, DEPTH), of("signed char", N, DEPTH), of(F32, M, 1),
                of(F32, 1, N), None, 15), "int8", (M + N) * DEPTH + 4 * (M + N), 2 * M * N,
    ),
    "vLLM's of blocks": (
        call_of("vllm::apply_w8a8_block_fp8_linear", bf16(M, DEPTH), of(FP8, N, DEPTH), "[128, 128]", of(F32, 1, 1)),
        "fp8", 2 * M * DEPTH + N * DEPTH + 4, 2 * M * N,
    ),
    "DeepSeek's router": (
        call_of("sgl_kernel::dsv3_router_gemm", of(F32, M, N), bf16(M, DEPTH), bf16(N, DEPTH)), "bf16",
        2 * (M + N) * DEPTH, 4 * M * N,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PRODUCTS)
def test_products_of_few_bits(case: str) -> None:
    call, dtype, read, written = PRODUCTS[case]

    work = work_of(call)

    assert (work.dtype, work.matrix_flops) == (dtype, 2 * M * N * DEPTH)
    assert (work.read_bytes, work.written_bytes) == (read, written)


def test_one_product_of_experts_reads_those_that_have_tokens() -> None:
    experts, chosen = 4, 2  # six tokens that choose two of four: all are chosen by some
    choice = of(I32, T, chosen)
    first = call_of(
        "sglang_profiler::fused_moe_triton_kernels_invoke_fused_moe_kernel_12", X, bf16(experts, 96, H), None,
        bf16(T, chosen, 96), None, None, None, of(F32, T, chosen), choice,
    )  # fmt: skip
    second = call_of(
        "sglang_profiler::fused_moe_triton_kernels_invoke_fused_moe_kernel_13", of(FP8, T * chosen, 48),
        of(FP8, experts, H, 48), None, bf16(T, chosen, H), of(F32, 1), of(F32, experts, 1, 1), None,
        of(F32, T, chosen), choice,
    )  # fmt: skip

    up, down = work_of(first), work_of(second)

    assert (up.dtype, down.dtype) == ("bf16", "fp8")
    assert up.matrix_flops == 2 * T * chosen * 96 * H
    assert down.matrix_flops == 2 * T * chosen * 48 * H
    assert up.read_bytes == 2 * T * H + 2 * experts * 96 * H + 4 * T * chosen
    assert down.read_bytes == T * chosen * 48 + experts * H * 48 + 4 * experts + 4 * T * chosen
    assert (up.written_bytes, down.written_bytes) == (2 * T * chosen * 96, 2 * T * chosen * H)
