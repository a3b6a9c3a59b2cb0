"""What each naming family's names tell, row by row of the families' tables; and what no name makes the decoder do."""

# ruff: noqa: E501, ISC004  names of kernels are as long as they are

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.names.test_communication import COMMUNICATION, COMPUTE

from inferometer.names import decode
from inferometer.names.communication import find_collective
from inferometer.names.decoding import decode_frame
from inferometer.names.kernel_name import LONGEST_SHORT_NAME
from inferometer.names.short_names import short

FA3 = (
    "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2,"
    " cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >, cute::tuple<cute::C<128>, cute::C<96>, cute::C<64> >, 64,"
    " cutlass::half_t, float, cutlass::arch::Sm90, %s>, flash::CollectiveEpilogueFwd<int> > > >(P)"
)
TWELVE = "true, false, true, true, true, false, false, true, true, true, true, false"


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("nvjet_tst_128x112_64x7_1x2_h_bz_splitK_TNT",
         {"tile_m": 128, "tile_n": 112, "tile_k": 64, "stages": 7, "cluster": "1x2", "split_k": "yes", "layout": "TNT"}),
        ("nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNN", {"coop": "coopB", "flags": ("v", "bz"), "layout": "TNN"}),
        ("nvjet_tss_128x128_64x6_2x1_v_badd_NTN", {"dtype": "bf16", "flags": ("v", "badd")}),
        ("nvjet_tst_128x256_64x6_2x1_2cta_h_bz_TNT", {"arch": None, "flags": ("h", "bz", "2cta")}),
        ("nvjet_sm103_qqtst_128x256_128x6_2x1_2cta_h_bz_TNT", {"arch": "sm103", "dtype": "fp8_e4m3"}),
        ("nvjet_tst_128x64_64x8_1x2_h_bz_bias_TNT", {"fused": ("bias",)}),
        ("nvjet_sm100_ootst_128x256_256x4_2x1_2cta_h_bz_Avec32UE8M0_Bvec32UE8M0_TNT", {"dtype": "mxfp4"}),
        ("nvjet_sm100_ootst_128x256_256x4_2x1_2cta_h_bz_Avec16UE4M3_Bvec16UE4M3_TNT", {"dtype": "nvfp4"}),
        ("nvjet_sm100_qrtst_128x128_128x6_2x1_2cta_v_bz_reluauxbias_TNT",
         {"dtype": "fp8_e4m3*fp8_e5m2", "fused": ("bias", "relu")}),
        ("nvjet_tst_128x64_64x8", {"tile_n": 64, "stages": 8, "layout": None}),
        ("nvjet_", {"library": "cublas", "family": "gemm", "tile_m": None}),
        ("ampere_bf16_s16816gemm_bf16_64x64_sliced1x2_ldg8_f2f_stages_64x6_tn",
         {"split_k": None, "flags": ("sliced1x2",), "instruction": "16x8x16", "layout": "tn", "tile_k": 64, "stages": 6}),
        ("cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_bf16_bf16_128x128x64_2x1x1_0_tnn_align8_warpspecialized_cooperative_bias_f32_relu",
         {"library": "cutlass", "stages": None, "cluster": "2x1x1", "flags": ("cooperative",), "fused": ("bias", "relu")}),
        ("cutlass3x_sm103_bstensorop_s128x192x96gemm_block_scaled_ue4m3xe2m1_ue4m3xe2m1_f32_bf16_bf16_128x192x768_0_tnn_align32_o_vs16_1sm",
         {"dtype": "nvfp4", "tile_k": 768, "stages": None, "arch": "sm103"}),
        ("cutlass3x_sm100_tensorop_s128x256x16implicit_gemm_fprop_bf16_bf16_f32_bf16_bf16_f32_128x256x64_dyn_cga_ndhwc_ndhwc_ndhwc_align8_1sm",
         {"family": "conv", "dtype": "bf16", "tile_n": 256}),
        ("cutlass_80_tensorop_s1688bf16gemm_64x64_32x4_nn_align1", {"dtype": None, "tile_k": 32}),
        ("ampere_s16816gemm_bf16_128x128_ldg8_relu_stages_32x5_nn", {"dtype": "bf16", "tile_k": 32}),
        ("sm80_xmma_sparse_gemm_i8i8_i8i32_f32_tn_n_tilesize128x128x128_stage3_warpsize2x2x1_sptensor16x8x64",
         {"family": "gemm", "dtype": "int8"}),
        ("void deep_gemm::sm100_fp8_gemm_1d1d_impl<(cute::UMMA::Major)0, (cute::UMMA::Major)0, 0u, 512u, 128u, 128u, 176u, 128u, 256u, 128u,"
         " 128u, 32u, 1u, 0u, 128u, 128u, 1u, true, (deep_gemm::GemmType)2, false, cutlass::bfloat16_t>(int*)",
         {"tile_m": 128, "tile_n": 176, "tile_k": 128, "stages": 1, "family": "grouped_gemm"}),
        ("void legacy::sm90::prefill::sparse_fwd::sparse_attn_fwd_small_heads_kernel<512, 0, 16>(P)",
         {"family": "attention_prefill", "arch": "sm90", "flags": ("sparse",)}),
        ("kernel_cutlass_flash_fwd_sm100_tensorptrbf16gmem", {"library": "cutlass", "family": "attention"}),
        (FA3 % TWELVE, {"library": "flash_attn3", "head_dim": 64, "tile_n": 96, "split_k": "yes",
                        "flags": ("causal", "softcap", "varlen", "paged", "packgqa", "split")}),
        (FA3 % f"{TWELVE}, cutlass::half_t", {"flags": ("causal", "softcap", "varlen", "paged", "packgqa", "split")}),
        (FA3 % "true, false, true, true", {"flags": ("causal",), "split_k": None}),
        ("void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, cutlass::half_t>,"
         " false, false, false, true, true, false, false, true>(P)", {"split_k": None, "flags": ("append",)}),
        ("fmhaSm100aKernel_QkvBfloat16OBfloat16H128PagedKvSlidingOrChunkedCausalP32VarSeqQ128Kv128PersistentContext",
         {"family": "attention_prefill", "head_dim": 128, "flags": ("sliding", "paged", "varlen")}),
        ("bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s5_et128x16_cga1x1x1_TN_transOut_swiGlu_dynBatch_sm100f",
         {"family": "grouped_gemm", "dtype": "mxfp8*mxfp4", "fused": ("swiglu",), "cluster": "1x1x1"}),
        ("gemm_Bfloat16_E4m3E4m3_Fp32_t128x64x128_s7_et128x64_sm100a", {"family": "gemm", "dtype": "fp8_e4m3"}),
        ("Cijk_Ailk_Bjlk_HHS_BH_GG_MT64x32x16_ISA90a", {"family": "grouped_gemm", "layout": "NT", "arch": "gfx90a"}),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x32x256_GSU0_ISA942", {"split_k": None, "library": "hipblaslt"}),
        ("Cijk_Alik_Bljk_F8B8BS_BH_Bias_UserArgs_MT64x32", {"dtype": "fp8_e4m3*fp8_e5m2", "tile_k": None}),
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x128x1_swiglu",
         {"library": "triton_kernels", "dtype": "bf16*mxfp4", "fused": ("swiglu",),
          "short_name": "moe matmul bf16×mxfp4 16x128x128 swiglu"}),
        ("matmul:ffn_up:L3", {"library": "webgpu", "layer": 3, "role": "ffn_up"}),
        ("matmul_rmsnorm_fused:L9.ffn_down", {"layer": 9, "role": "ffn_down", "fused": ("rms_norm",)}),
        ("matmul:lm_head", {"layer": None, "role": "lm_head"}),
        ("ncclDevKernel_AllReduce_Sum_bf16_TREE_LL128(P)",
         {"library": "nccl", "dtype": "bf16", "flags": ("AllReduce", "TREE", "LL128")}),
        ("ncclDevKernel_Generic_4(P) [clone .kd]", {"library": "rccl"}),
        ("mfma_moe2_afp8_wfp4_bf16_t32x128x256_ku1", {"library": "aiter", "family": "grouped_gemm", "tile_m": 32}),
        ("__amd_rocclr_fillBufferAligned.kd", {"library": "runtime", "family": "memory"}),
        ("void vllm::reshape_and_cache_kernel<unsigned short, unsigned char, (vllm::Fp8KVCacheDataType)1>(P)",
         {"family": "kv_cache", "dtype": None}),
    ],
)  # fmt: skip
def test_fields_are_read(name: str, facts: dict[str, object]) -> None:
    known = decode(name)
    assert {field: getattr(known, field) for field in facts} == facts


@pytest.mark.parametrize(
    ("name", "library", "family"),
    [  # errors of other tools
        ("void vllm::rms_norm_kernel<c10::Half>(c10::Half*)", "vllm", "norm"),
        ("nvjet_hsh_128x64_64x8_2x4_h_bz_TNN", "cublas", "gemm"),
        (FA3 % TWELVE, "flash_attn3", "attention"),
        ("void cutlass::device_kernel<flash::FlashAttnFwdCombine<cute::tuple<cute::C<8>, cute::C<128> >, 5, 256, 1, false,"
         " true, cutlass::bfloat16_t, float, cutlass::arch::Sm90> >(P)", "flash_attn3", "attention_combine"),
        ("void flash::prepare_varlen_num_blocks_kernel<8, true>(int, cutlass::FastDivmod)", "flash_attn3",
         "attention_metadata"),
        ("void flashinfer::BatchPrefillWithPagedKVCacheKernel<T, P>(P)", "flashinfer", "attention"),
        ("void vllm::cross_device_reduce_2stage<half, 8>(vllm::RankData*)", "vllm", "collective"),
        ("void deep_ep::intranode::dispatch<8, 768>(int4*)", "deep_ep", "collective"),
        ("ncclDevKernel_AllGather_RING_LL(P)", "nccl", "collective"),
        ("ampere_fp16_s16816gemm_fp16_64x64_ldg8_f2f_stages_64x5_tn", "cublas", "gemm"),
        ("void moe::dev::finalize::finalizeKernel<moe::dev::finalize::Combine<int> >(P)", "tensorrt_llm", "moe_routing"),
        ("triton_poi_fused_add_addmm_relu_3", "inductor", "activation"),
        ("triton_poi_fused_cat_scaled_dot_product_attention_2", "inductor", "elementwise"),
        ("void wvSplitK_hf_sml_<__half, 64>(int)", "vllm", "gemm"),
        ("void paged_attention_ll4mi_QKV_mfma16_kernel<0, half, half, (vllm::Fp8KVCacheDataType)0, 1, 128, 256, false, 4,"
         " 1, ck_tile::ComposedAttention<0u, false> >(half*)", "aiter", "attention_decode"),
        ("completely_unknown", "other", "other"),
        ("", "other", "other"),
    ],
)  # fmt: skip
def test_library_and_family_come_from_the_names_own_function(name: str, library: str, family: str) -> None:
    assert (decode(name).library, decode(name).family) == (library, family)


@pytest.mark.parametrize(
    ("name", "short_name"),
    [
        ("nvjet_tst_128x112_64x7_1x2_h_bz_splitK_TNT", "nvjet gemm bf16 128x112x64 s7 cl1x2 splitK TNT"),
        (FA3 % TWELVE, "flash_attn fwd sm90 fp16 d64 causal softcap varlen paged packgqa"),
        ("void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(P)", "add + rms_norm bf16 v8"),
        ("matmul:ffn_up:L0", "matmul ffn_up layer 0"),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_UserArgs_MT256x32x64_ISA942", "tensile gemm bf16 TN 256x32x64 bias gfx942"),
    ],
)
def test_short_names_say_what_a_reader_looks_for(name: str, short_name: str) -> None:
    assert decode(name).short_name == short_name


def test_short_names_fit_into_a_table() -> None:
    assert len(short("word " * 40)) <= LONGEST_SHORT_NAME
    assert len(short("w" * 400)) <= LONGEST_SHORT_NAME


@pytest.mark.parametrize(("name", "collective"), COMMUNICATION)
def test_every_kernel_that_communicates_is_a_collective(name: str, collective: str) -> None:
    assert decode(name).family == "collective"


@pytest.mark.parametrize("name", COMPUTE)
def test_no_kernel_that_computes_is_a_collective(name: str) -> None:
    assert find_collective(name) is None
    assert decode(name).family != "collective"


def test_what_no_demangler_knows_is_read_as_far_as_it_is_plain() -> None:
    name = (
        "_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_ES3_S5_EEEEvPS3_PS4_i"
    )
    known = decode(name)
    assert (known.library, known.family, known.dtype) == ("sgl_kernel", "activation", "bf16")
    assert decode("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64E").family == "norm"


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8>(cutl...",
         {"library": "cutlass", "family": "gemm", "tile_n": 16, "stages": 2, "arch": "sm80"}),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*, vllm::Rank…",
         {"library": "vllm", "family": "collective", "dtype": "bf16"}),
        ("Cijk_Alik_Bljk_BBS_BH_MT32x16...", {"family": "gemm", "tile_m": 32, "tile_n": None}),
        ("oneccl_allreduce_pcie<half...>", {"family": "collective", "dtype": "fp16"}),
        ("fused_recurrent_kda_fwd_kernel....kd", {"library": "fla", "family": "linear_attention"}),
        ("void k_bin_bcast<...", {"library": "other", "family": "elementwise"}),
        ("kernel_cutlass_kernel_vllmmodelscute_dsltailallreduce_rmsnorm_reduce_scatter_ear...",
         {"library": "vllm", "family": "collective"}),
    ],
)  # fmt: skip
def test_names_that_a_table_cut_tell_what_is_left_of_them(name: str, facts: dict[str, object]) -> None:
    known = decode(name)
    assert {field: getattr(known, field) for field in facts} == facts


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("cunn_SoftMaxForwardGmem", ("pytorch", "softmax")),
        ("flash_fwd_splitkv_combine_kernel", ("flash_attn2", "attention_combine")),
        ("act_and_mul_kernel", ("triton", "activation")),  # too plain a name to be one library's
    ],
)
def test_base_names_of_one_library_tell_it(name: str, facts: tuple[str, str]) -> None:
    known = decode(name)
    assert (known.library, known.family) == facts


def test_a_frame_has_a_row_for_each_distinct_name() -> None:
    names = pl.Series("kernel", ["matmul:q_proj:L2", None, "nvjet_tst_128x64_64x8_1x2_h_bz_splitK_TNT"] * 3)
    frame = decode_frame(names)
    assert frame.select("library", "tile_m", "split_k", "layer").rows() == [
        ("webgpu", None, None, 2),
        ("cublas", 128, "yes", None),
    ]
    assert frame["kernel"].to_list() == ["matmul:q_proj:L2", "nvjet_tst_128x64_64x8_1x2_h_bz_splitK_TNT"]
    assert decode_frame(pl.Series("kernel", [], pl.String)).height == 0


BEGINNINGS = ("", "void at::native::", "nvjet_tst_", "_ZN2at", "Cijk_Alik_Bljk_", "triton_poi_fused_", "void cutlass::"
              "device_kernel<flash::FlashAttnFwdSm90<", "fmhaSm100aKernel_Q", "bmm_", "sm90_xmma_", "ncclDevKernel_",
              "void deep_gemm::sm90_fp8_gemm<", "void at::native::vectorized_elementwise_kernel<", "matmul:", "Memcpy ",
              "void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<(MaskMode)0,")  # fmt: skip


@examples(400)
@given(st.sampled_from(BEGINNINGS), st.text(st.characters() | st.sampled_from("<>(){}:,_x1 *&"), max_size=80))
def test_no_text_crashes_the_decoder(beginning: str, text: str) -> None:
    known = decode(beginning + text)
    assert len(known.short_name) <= LONGEST_SHORT_NAME
    assert decode(beginning + text) == known


@pytest.mark.parametrize("size", [50_000, 1_000_000])
@pytest.mark.parametrize(
    "piece", ["<", "a<b>", "at::native::", "nvjet_", "\0", "\u202e", "9", "_ZN9", "Cijk_Alik_Bljk_MT9"]
)
def test_huge_names_are_unknown_not_fatal(piece: str, size: int) -> None:
    assert len(decode(piece * (size // len(piece))).short_name) <= LONGEST_SHORT_NAME


def test_the_package_leads_to_the_decoder() -> None:
    import subprocess
    import sys

    program = "import inferometer; print(inferometer.names.decode('rope').family)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "rope\n"
