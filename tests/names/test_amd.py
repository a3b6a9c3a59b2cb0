"""What AMD's names tell next to library and family: types, tiles, chips, the shape of heads; and where they are silent."""

# ruff: noqa: E501  names of kernels are as long as they are

import pytest

from inferometer.names import decode

GRIDWISE = (
    "void ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemm_xdl_cshuffle_v3<ck::tensor_layout::gemm::RowMajor,"
    " ck::tensor_layout::gemm::ColumnMajor, ck::tensor_layout::gemm::RowMajor, %s, float, float, float, Pass, Pass, Pass,"
    " (ck::tensor_operation::device::GemmSpecialization)7, %s>, true>(P)"
)
PROBLEM = "void ck_tile::kentry<1, ck_tile::%sKernel<ck_tile::Pipeline<ck_tile::%sProblem<%s> > > >(P)"


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("fmoe_bf16_pertokenInt8_g1u1_silu_1tg_32x320", {"dtype": "int8", "tile_m": 32, "tile_n": 320}),
        ("fmoe_int4fp8_g1u1_subGU_256_gelu", {"library": "aiter", "dtype": None, "tile_n": None}),
        ("fmha_bwd_hd64_bf16_causal_a32_rtz_pssk_group",
         {"family": "attention", "dtype": "bf16", "head_dim": 64, "flags": ("causal", "varlen")}),
        ("mla_pfl_bf16_a16w16_causal_subQ16_mqa16", {"family": "attention_prefill", "flags": ("causal",)}),
        ("mla_a8w8_qh16_qseqlen4_gqaratio16", {"family": "attention", "dtype": None}),
        ("pa_bf16_pertokenFp8_gqa8_2tg_4w_hp", {"family": "attention_decode", "dtype": "bf16", "tile_m": None}),
        ("f4gemm_bf16_per1x32Fp4_BpreShuffle_64x384", {"dtype": "mxfp4", "tile_m": 64, "tile_n": 384}),
        ("f8_block_scale_mi350_x96", {"dtype": "fp8_e4m3", "arch": "gfx950"}),
        ("hgemm_bf16_128x128x64x2_SPK4_W2x2", {"dtype": "bf16", "tile_k": 64, "stages": 2}),
        ("mfma_moe1_silu_mul_afp8_wfp4_bf16_t64x256x256_pm1_v32",
         {"library": "aiter", "family": "grouped_gemm", "dtype": "fp8_e4m3*mxfp4", "tile_m": 64}),
        ("gemm1_a4w4_port_bm64_bn256_bk128_atomic", {"family": "grouped_gemm", "tile_n": 256, "tile_k": 128}),
        ("bf16gemm_fp32bf16_tn_48x64_splitk", {"library": "aiter", "split_k": "yes", "tile_n": 64}),
        ("pa_decode_ps_reduce_kernel", {"library": "aiter", "family": "attention_combine"}),
        ("void gqa_d128_kernel<opus_gqa_traits<32, 64> >(P)", {"library": "aiter", "family": "attention"}),
        ("void aiter::mxfp4_moe::gemm1::kernel<16, 32>(P)", {"family": "grouped_gemm"}),
        ("void aiter::mxfp4_moe::moe_sort_scales::impl<16>(P)", {"family": "moe_routing"}),
        ("_ZN7ck_tile6kentryILi1ENS_14Layernorm2dFwdINS_9Pip", {"library": "ck", "family": "norm"}),
        (GRIDWISE % ("_Float16, _Float16", "256, 256, 128, 32, 8"), {"dtype": "fp16", "tile_m": 256, "tile_k": 32}),
        (GRIDWISE % ("ck::f8_fnuz_t, ck::pk_i4_t", "256, 16, 128, 256, 16"), {"dtype": None, "tile_m": 16}),
        (GRIDWISE % ("unsigned char, unsigned char", "64, 16, 32"), {"dtype": None, "tile_m": None}),
        (PROBLEM % ("FmhaFwdSplitKVCombine", "Combine", "float, float, ck_tile::bf16_t"),
         {"family": "attention_combine", "dtype": "bf16"}),
        (PROBLEM % ("MoeSorting", "MoeSorting", "int, float, 4"), {"family": "moe_routing", "dtype": None}),
        ("naive_conv_ab_packed_wrw_nhwc_half_double_half", {"library": "miopen", "dtype": "fp16"}),
        ("batched_transpose_32x32_half", {"library": "miopen", "family": "copy", "dtype": None}),
        ("miopenSp3AsmConv_v30_3_1_gfx9_fp32_f3x2_stride1", {"dtype": "fp32", "arch": "gfx9"}),
        ("Cijk_Ailk_Bjlk_S_MX_B_Bias_HA_S_SAV_UserArgs_MT32x32x128_ISA950", {"dtype": "tf32", "arch": "gfx950"}),
        ("Custom_Cijk_Alik_Bljk_F8B8BS_BH_SAB_NTD_UserArgs_shortname0_gfx950", {"arch": "gfx950", "tile_m": None}),
        ("Cijk_AlikC_BjlkC_CB_MT32x32x8_GSU1_ISA90a", {"dtype": "complex64", "layout": "TT", "split_k": 1}),
        ("mscclKernel_Sum_rccl_bfloat16_LL128_false", {"library": "rccl", "dtype": "bf16", "flags": ("Sum", "LL128")}),
        ("void rocblas_scal_kernel<float, float*, 256>(int)", {"library": "rocblas", "family": "gemm_epilogue"}),
    ],
)  # fmt: skip
def test_fields_are_read(name: str, facts: dict[str, object]) -> None:
    known = decode(name)
    assert {field: getattr(known, field) for field in facts} == facts


@pytest.mark.parametrize("name", ["fmoe_fp8_g1u1_subGU_192", "topksoftmax_4x128x8", "bf16gemm_outf32_tn_96x64_pf3"])
def test_assembly_is_known_with_and_without_its_namespace(name: str) -> None:
    assert decode(f"_ZN5aiter{len(name)}{name}E.kd") == decode(name)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("gluon_mla_prefill_gfx950.kd", "attention_prefill"),
        ("_mla_decode_gluon", "attention_decode"),
        ("kernel_dispatch_token", "moe_routing"),
        ("_SigmoidGateAdd_kernel", "activation"),
        ("_gemm_a8w8_kernel_HAS_BIAS_0_BLOCK_SIZE_M_16_EMIT_QUANT_1", "gemm"),
        ("persistent_all_reduce_two_shot", "collective"),
        ("gluon_mxfp4_moe_stage1_kernel", "grouped_gemm"),
        ("_mxfp4_decode_head_kernel", "other"),
        ("_skinny_gemm_reduce_kernel", "gemm_epilogue"),
    ],
)
def test_plain_identifiers_in_the_style_of_triton_are_tritons(name: str, family: str) -> None:
    known = decode(name)
    assert (known.library, known.family) == ("triton", family)


@pytest.mark.parametrize(
    ("name", "library"), [("kernel_soft_max", "other"), ("kernel_mul_mv_q4_K_f32", "other"), ("DotKernel", "other")]
)
def test_plain_identifiers_of_others_are_not_tritons(name: str, library: str) -> None:
    assert decode(name).library == library
