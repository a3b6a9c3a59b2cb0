"""The names that CUTLASS's generator gives its kernels: a row for each branch of the grammar.

Source of the grammar: CUTLASS's `python/cutlass_library/gemm_operation.py` (`procedural_name`) and the names compiled
into cuBLAS and cuDNN.
"""

from typing import Any

import pytest

from inferometer.names import decode


def facts(name: str) -> dict[str, Any]:
    """What is known of a name, but for the rule that found it."""
    found = decode(name)
    fields = {field: getattr(found, field) for field in found.__struct_fields__ if field != "evidence"}
    return {field: value for field, value in fields.items() if value not in (None, ())}


def test_a_name_of_cutlass_2_tells_unit_instruction_types_tile_stages_and_layout() -> None:
    name = "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_nt_align8"
    assert facts(name) == {
        "library": "cutlass", "family": "gemm", "dtype": "bf16", "tile_m": 256, "tile_n": 128, "tile_k": 32,
        "stages": 3, "arch": "sm80", "layout": "nt", "instruction": "16x8x16", "fused": ("relu",),
        "short_name": "cutlass gemm bf16 tensorop 256x128x32 s3 relu nt",
    }  # fmt: skip
    evidence = decode(name).evidence
    assert (evidence.rule, evidence.mark) == ("CUTLASS procedural name", "D")


def test_a_name_of_cutlass_3_tells_the_cluster_and_the_schedule_too() -> None:
    name = (
        "cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_bf16_bf16_128x128x64_2x1x1_7_tnn_align8_warpspecialized_"
        "pingpong_epi_tma"
    )
    assert facts(name) == {
        "library": "cutlass", "family": "gemm", "dtype": "bf16", "tile_m": 128, "tile_n": 128, "tile_k": 64,
        "stages": 7, "arch": "sm90", "cluster": "2x1x1", "layout": "tnn", "instruction": "64x128x16",
        "flags": ("pingpong",),
        "short_name": "cutlass gemm sm90 bf16 tensorop 128x128x64 s7 pingpong tnn",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("begins", "unit", "arch"),
    [
        ("cutlass_80_simt_", "simt", "sm80"),
        ("cutlass_75_tensorop_", "tensorop", "sm75"),
        ("cutlass_80_wmma_tensorop_", "wmma_tensorop", "sm80"),
        ("cutlass_tensorop_", "tensorop", None),  # as cuDNN names them
    ],
)
def test_units_of_cutlass_2(begins: str, unit: str, arch: str | None) -> None:
    found = decode(f"{begins}sgemm_64x32_16x10_nn_align1")
    assert (found.short_name, found.arch) == (f"cutlass gemm fp32 {unit} 64x32x16 s10 nn", arch)


@pytest.mark.parametrize(
    ("operation", "family"),
    [
        *((name, "gemm") for name in ("gemm", "gemv", "symm", "syrk", "trmm", "hemm", "herk", "syr2k", "her2k")),
        *((name, "conv") for name in ("fprop", "dgrad", "wgrad")),
    ],
)
def test_operations_of_cutlass_2(operation: str, family: str) -> None:
    found = decode(f"cutlass_80_tensorop_d884{operation}_64x64_16x4_nn_align1")
    assert (found.family, found.dtype, found.instruction, found.tile_k) == (family, "fp64", "8x8x4", 16)


@pytest.mark.parametrize(
    ("operation", "family"),
    [
        ("gemm", "gemm"),
        *((name, "conv") for name in ("fprop", "dgrad", "wgrad", "deconv", "strided_dgrad", "grouped_wgrad")),
        *((f"implicit_gemm_{name}", "conv") for name in ("fprop", "strided_dgrad", "grouped_fprop")),
    ],
)
def test_operations_of_cutlass_3(operation: str, family: str) -> None:
    found = decode(
        f"cutlass3x_sm100_tensorop_s128x256x16{operation}_bf16_bf16_f32_bf16_bf16_128x256x64_2x1x1_0_tnn_align8"
    )
    assert (found.family, found.tile_n, found.dtype) == (family, 256, "bf16")
    assert found.short_name.startswith(f"cutlass {family} sm100 bf16 tensorop 128x256x64")


@pytest.mark.parametrize(
    ("middle", "unit", "instruction"),
    [
        ("tensorop_s64x128x16gemm", "tensorop", "64x128x16"),
        ("tensorop_gemm", "tensorop", None),
        ("tensorop_gzgemm", "tensorop", None),
        ("bstensorop_s64x128x16gemm", "bstensorop", "64x128x16"),
        ("sptensorop_s64x128x16spgemm", "sptensorop", "64x128x16"),
        ("sptensorop_s64x128x16_spgemm", "sptensorop", "64x128x16"),
        ("wmma_tensorop_s161616gemm", "wmma_tensorop", "16x16x16"),
        ("tensorop_s16816gemm", "tensorop", "16x8x16"),
        ("simt_sgemm", "simt", None),
        ("simt_s_2xsgemm", None, None),
        ("tensorop_s64x128x16_2xtf32gemm", "tensorop", "64x128x16"),
        ("tensorop_s64x128x16_2xf16_gemm", "tensorop", "64x128x16"),
    ],
)
def test_units_and_instructions_of_cutlass_3(middle: str, unit: str | None, instruction: str | None) -> None:
    name = f"cutlass3x_sm90a_{middle}_f16_f16_f32_f16_f16_64x128x32_1x2x1_10_tnt_align8"
    found = decode(name)
    if unit is None:
        assert found.tile_m is None
    else:
        assert found.short_name == f"cutlass gemm sm90 fp16 {unit} 64x128x32 s10 tnt"
        assert (found.instruction, found.arch) == (instruction, "sm90")


@pytest.mark.parametrize(
    ("tile", "size", "cluster", "stages", "layout"),
    [
        ("128x256x64_2x1x1_5_tnn", (128, 256, 64), "2x1x1", 5, "tnn"),
        ("128x256x64_16x14x12_0_ntn", (128, 256, 64), "16x14x12", None, "ntn"),
        ("128x256x64_dyn_cga_ndhwc", (128, 256, 64), None, None, None),
        ("128x256x64_2x1x1_align8", (128, 256, 64), "2x1x1", None, None),
        ("128x256x64_3_tnn", (128, 256, 64), None, 3, "tnn"),
        ("128x256x64_2x1x1_12_tnn", (128, 256, 64), "2x1x1", 12, "tnn"),
        ("128x256", (None, None, None), None, None, None),
    ],
)
def test_tile_cluster_stages_and_layout_of_cutlass_3(
    tile: str, size: tuple[int | None, ...], cluster: str | None, stages: int | None, layout: str | None
) -> None:
    found = decode(f"cutlass3x_sm100_tensorop_gemm_f16_f16_f32_f16_f16_{tile}_align8")
    assert (found.tile_m, found.tile_n, found.tile_k) == size
    assert (found.cluster, found.stages, found.layout) == (cluster, stages, layout)


@pytest.mark.parametrize(
    ("types", "dtype"),
    [
        ("f16_f16_f32", "fp16"),
        ("bf16_bf16_f32", "bf16"),
        ("tf32_tf32_f32", "tf32"),
        ("f32_f32_f32", "fp32"),
        ("f64_f64_f64", "fp64"),
        ("e4m3_e5m2_f32", "fp8_e4m3*fp8_e5m2"),
        ("bf16_e4m3_f32", "bf16*fp8_e4m3"),
        ("s8_s8_s32", "int8"),
        ("u8_u8_s32", None),  # 8 bits without a sign tell a size, not a type
        ("cf32_cf32_cf32", "complex64"),
        ("ctf32_ctf32_cf32", None),
        ("ue4m3xe2m1_ue4m3xe2m1_f32", "nvfp4"),
        ("ue8m0xe2m1_ue8m0xe2m1_f32", "mxfp4"),
        ("ue8m0xe4m3_ue8m0xe4m3_f32", "mxfp8"),
        ("ue8m0xe5m2_ue8m0xe2m1_f32", "mxfp8*mxfp4"),
        ("ue10m10xe2m1_f16_f16", None),
        ("f16", None),
        ("", None),
    ],
)
def test_types_of_cutlass_3_are_those_of_a_and_b(types: str, dtype: str | None) -> None:
    assert decode(f"cutlass3x_sm100_tensorop_gemm_{types}_128x128x64_1x1x1_0_tnn_align8").dtype == dtype


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        # the letter of the operation
        ("cutlass_80_simt_sgemm_64x64_8x5_nn", "fp32"),
        ("cutlass_80_simt_hgemm_64x64_8x5_nn", "fp16"),
        ("cutlass_80_simt_dgemm_64x64_8x5_nn", "fp64"),
        ("cutlass_80_simt_cgemm_64x64_8x5_nn", "complex64"),
        ("cutlass_80_simt_igemm_64x64_8x5_nn", "int8"),
        ("cutlass_80_simt_gcgemm_64x64_8x5_nn", "complex64"),
        ("cutlass_80_simt_zgemm_64x64_8x5_nn", None),
        ("cutlass_80_simt_gzgemm_64x64_8x5_nn", None),
        ("cutlass_80_simt_qgemm_64x64_8x5_nn", None),
        ("cutlass_80_simt_gemm_64x64_8x5_nn", None),
        # fp32 on tensor cores is multiplied as tf32
        ("cutlass_80_tensorop_s1688gemm_64x64_16x6_nn", "tf32"),
        ("cutlass_80_tensorop_h16816gemm_64x64_16x6_nn", "fp16"),
        # or in another type, which tells nothing of that in memory
        ("cutlass_80_tensorop_s1688bf16gemm_64x64_16x6_nn", None),
        ("cutlass_80_tensorop_s1688f16gemm_64x64_16x6_nn", None),
        # the type named before
        ("cutlass_80_tensorop_f16_s16816gemm_f32_64x64_16x6_nn", "fp16"),
        ("cutlass_80_tensorop_bf16_f16_s16816gemm_64x64_16x6_nn", "bf16"),
        # or after
        *((f"cutlass_80_tensorop_s16816gemm_{word}_64x64_16x6_nn", dtype) for word, dtype in [
            ("bf16", "bf16"), ("f16", "fp16"), ("f32", "fp32"), ("tf32", "tf32"), ("f64", "fp64"), ("e4m3", "fp8_e4m3"),
            ("e5m2", "fp8_e5m2"), ("s8", "int8"), ("s32", "tf32"), ("u8", "tf32"), ("f16_s8", "fp16"),
            ("u8_bf16", "tf32"), ("s32_bf16", "tf32"),
        ]),
        ("cutlass_80_tensorop_sgemm_tf32_64x64_16x6_nn", "tf32"),
        ("cutlass_80_tensorop_s16816gemm_64x64_16x6_nn_f16", "fp16"),
    ],
)  # fmt: skip
def test_types_of_cutlass_2_stand_before_or_after_the_operation_or_in_its_letter(name: str, dtype: str | None) -> None:
    assert decode(name).dtype == dtype


@pytest.mark.parametrize(
    ("middle", "instruction"), [("s1688bf16gemm", "16x8x8"), ("s1688f16gemm", "16x8x8"), ("gemm", None)]
)
def test_a_type_or_no_letter_before_the_operation_of_cutlass_2(middle: str, instruction: str | None) -> None:
    found = decode(f"cutlass_80_tensorop_{middle}_64x32_16x6_nn")
    assert (found.family, found.instruction, found.tile_n) == ("gemm", instruction, 32)


@pytest.mark.parametrize(
    ("name", "short_name"),
    [
        ("cutlass_80_tensorop_s16816gemm", "cutlass gemm tf32 tensorop"),
        ("cutlass3x_sm100_tensorop_gemm", "cutlass gemm sm100 tensorop"),
    ],
)
def test_nothing_need_follow_the_operation(name: str, short_name: str) -> None:
    assert decode(name).short_name == short_name


@pytest.mark.parametrize(
    ("rest", "family", "split_k", "fused"),
    [
        ("_grouped", "grouped_gemm", None, ()),
        ("_ptr_array", "grouped_gemm", None, ()),
        ("_splitK", "gemm", "yes", ()),
        ("_split_k_serial", "gemm", "yes", ()),
        ("_bias_relu", "gemm", None, ("bias", "relu")),
        ("_gelu", "gemm", None, ("gelu",)),
        ("_silu", "gemm", None, ("silu",)),
    ],
)
def test_words_after_the_operation(rest: str, family: str, split_k: str | None, fused: tuple[str, ...]) -> None:
    found = decode(f"cutlass_80_tensorop_f16_s16816gemm{rest}_64x64_32x6_tn_align8")
    assert (found.family, found.split_k, found.fused) == (family, split_k, fused)
    words = {"grouped_gemm": "grouped gemm"}.get(family, family)
    assert found.short_name == " ".join(["cutlass", words, "fp16 tensorop 64x64x32 s6", *fused, "tn"])


def test_a_convolution_with_groups_is_a_convolution() -> None:
    assert decode("cutlass_80_tensorop_f16_s16816fprop_grouped_64x64_32x6_nhwc").family == "conv"


@pytest.mark.parametrize("schedule", ["pingpong", "cooperative"])
def test_schedules_of_cutlass_3(schedule: str) -> None:
    found = decode(
        f"cutlass3x_sm90_tensorop_gemm_f16_f16_f32_f16_f16_64x64x64_1x1x1_0_tnn_align8_warpspecialized_{schedule}"
    )
    assert found.flags == (schedule,)


@pytest.mark.parametrize(
    ("rest", "size", "stages", "layout"),
    [
        ("_256x128_64x12_nn", (256, 128, 64), 12, "nn"),
        ("_256x128_64x0_nt_align1", (256, 128, 64), None, "nt"),
        ("_256x128_nn", (None, None, None), None, "nn"),
        ("_256x128_32x3_nhwc_align8", (256, 128, 32), 3, None),
        ("_256x128_32x3_tnt", (256, 128, 32), 3, None),
    ],
)
def test_tile_stages_and_layout_of_cutlass_2(
    rest: str, size: tuple[int | None, ...], stages: int | None, layout: str | None
) -> None:
    found = decode(f"cutlass_80_tensorop_f16_s16816gemm{rest}")
    assert (found.tile_m, found.tile_n, found.tile_k) == size
    assert (found.stages, found.layout, found.cluster) == (stages, layout, None)


def test_the_same_inside_cudnn_is_cudnn_s() -> None:
    name = "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x64_32x4_nhwc_align8>(P)"
    assert facts(name) == {
        "library": "cudnn", "family": "conv", "dtype": "bf16", "tile_m": 256, "tile_n": 64, "tile_k": 32, "stages": 4,
        "instruction": "16x8x16", "short_name": "cutlass conv bf16 tensorop 256x64x32 s4",
    }  # fmt: skip
