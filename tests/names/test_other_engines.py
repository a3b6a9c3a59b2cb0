"""Engines outside the vocabulary of libraries: what their names do, and that nobody else's name is taken for theirs."""

import pytest

from inferometer.names import decode


@pytest.mark.parametrize(
    ("name", "family", "dtype"),
    [
        ("fused_dequantize1_NT_matmul_kernel", "gemm", None),
        ("fused_dequantize_take1_kernel", "gather_scatter", None),
        ("rms_norm2_kernel", "norm", None),
        ("batch_decode_paged_kv_kernel_1", "attention_decode", None),
        ("mul_mat_vec_q4_k_f32_f32", "gemm", None),
        ("kernel_cpy_f32_f16", "copy", "fp32>fp16"),
        ("kernel_rope_neox_f16", "rope", "fp16"),
        ("void mul_mat_q<(ggml_type)2, 64, true>(char const*)", "gemm", None),
        ("steel_gemm_fused_nt_float16_float16_bm64_bn32_bk16_wm2_wn2", "gemm", "fp16"),
        ("rope_single_float32", "rope", "fp32"),
    ],
)
def test_the_operator_is_known_and_no_library_is_claimed(name: str, family: str, dtype: str | None) -> None:
    known = decode(name)
    assert (known.library, known.family, known.dtype) == ("other", family, dtype)


def test_the_tile_of_mlx_is_read() -> None:
    known = decode("steel_gemm_fused_nt_float16_float16_bm64_bn32_bk16_wm2_wn2")
    assert (known.tile_m, known.tile_n, known.tile_k) == (64, 32, 16)


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("dequantize_kernel", "triton"),
        ("fused_silu_multiply_kernel", "triton"),
        ("softmax_kernel", "triton"),
        ("quantize_f32_kernel", "triton"),
        ("_layernorm_bwd_dwdb_triton", "triton"),
        ("_fwd_kernel_splitK", "triton"),
        ("void mul_mat_vec_q<half, 32, 4, block_q4_0, 2>(void const*)", "sgl_kernel"),
        ("naive_conv_packed_fwd_nchw_float_double_float", "miopen"),
    ],
)
def test_names_of_other_libraries_stay_theirs(name: str, library: str) -> None:
    assert decode(name).library == library


def test_a_label_with_a_layer_may_name_any_operator() -> None:
    known = decode("kv_cache_write:L6")
    assert (known.library, known.family, known.layer) == ("webgpu", "kv_cache", 6)
    assert decode("kv_cache_write").library == "other"
