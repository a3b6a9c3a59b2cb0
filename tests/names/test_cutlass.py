"""CUTLASS's templates: a row for each branch of the grammar.

Names are put together as CUTLASS's headers nest their templates; `KERNEL`, `collective` and `threadblock` hold what
the branches share.
"""

from typing import Any

import pytest

from inferometer.names import decode

KERNEL = "void cutlass::device_kernel<%s>(P)"
TILE = "cute::tuple<cute::C<128>, cute::C<256>, cute::C<64> >"


def collective(
    a: str = "cutlass::half_t",
    b: str = "cutlass::half_t",
    *,
    shape: str = "cute::tuple<int, int, int, int>",
    mma: str = "CollectiveMma",
    mainloop: str = "cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized<4,"
    " cute::tuple<cute::C<2>, cute::C<1>, cute::C<1> >, cutlass::gemm::KernelTmaWarpSpecialized>",
    tile: str = TILE,
) -> str:
    """A product of CUTLASS 3 (`gemm/kernel/gemm_universal.hpp`)."""
    parts = f"{mainloop}, {tile}, {a}, cute::tuple<long, cute::C<1> >, {b}, cute::tuple<long, cute::C<1> >"
    return KERNEL % f"cutlass::gemm::kernel::GemmUniversal<{shape}, cutlass::gemm::collective::{mma}<{parts}>, void>"


def threadblock(
    element: str = "cutlass::half_t",
    *,
    kernel: str = "cutlass::gemm::kernel::Gemm",
    mma: str = "cutlass::gemm::threadblock::MmaMultistage",
    after: str = "cutlass::gemm::threadblock::MmaPolicy<int>, 3",
) -> str:
    """A product of CUTLASS 2 (`gemm/threadblock/mma_multistage.h`): the stages follow the policy."""
    parts = f"cutlass::gemm::GemmShape<128, 64, 32>, It<int, {element}>, float, {after}, 0"
    return f"void cutlass::Kernel<{kernel}<{mma}<{parts}>, int> >(P)"


def facts(name: str) -> dict[str, Any]:
    """What is known of a name, but for the rule that found it."""
    found = decode(name)
    fields = {field: getattr(found, field) for field in found.__struct_fields__ if field != "evidence"}
    return {field: value for field, value in fields.items() if value not in (None, ())}


def rule(name: str) -> tuple[str, str]:
    evidence = decode(name).evidence
    assert evidence is not None
    return evidence.rule, evidence.mark


def test_a_product_of_cutlass_3_tells_tile_types_stages_and_architecture() -> None:
    assert facts(collective()) == {
        "library": "cutlass", "family": "gemm", "dtype": "fp16", "tile_m": 128, "tile_n": 256, "tile_k": 64,
        "stages": 4, "arch": "sm90", "short_name": "cutlass gemm sm90 fp16 128x256x64 s4",
    }  # fmt: skip
    assert rule(collective()) == ("CUTLASS template", "D")


def test_a_product_of_cutlass_2_tells_tile_type_and_stages() -> None:
    assert facts(threadblock()) == {
        "library": "cutlass", "family": "gemm", "dtype": "fp16", "tile_m": 128, "tile_n": 64, "tile_k": 32, "stages": 3,
        "short_name": "cutlass gemm fp16 128x64x32 s3",
    }  # fmt: skip


@pytest.mark.parametrize(
    "launcher",
    ["cutlass::Kernel", "cutlass::Kernel2", "cutlass::device_kernel", "cutlass::device_kernel_unordered",
     "hytlass::device_kernel", "cutlass_cudnn::Kernel"],
)  # fmt: skip
def test_every_launcher_is_looked_into(launcher: str) -> None:
    assert facts(collective().replace("cutlass::device_kernel", launcher, 1))["tile_n"] == 256


def test_a_launcher_of_another_library_is_none_of_cutlass() -> None:
    assert decode("void mine::Kernel<cutlass::gemm::GemmShape<64, 64, 32> >(P)").library == "other"


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("%s", "cutlass"),
        ("void cutlass::Kernel<%s>(P)", "cutlass"),
        ("void cutlass_cudnn::Kernel<%s>(P)", "cudnn"),
    ],
)
def test_a_generated_name_is_read_bare_and_in_a_launcher_whose_namespace_tells_the_library(
    name: str, library: str
) -> None:
    found = decode(name % "cutlass_80_tensorop_s16816gemm_64x32_16x6_nn")
    assert (found.library, found.family, found.tile_n) == (library, "gemm", 32)


@pytest.mark.parametrize("depth", [0, 1, 2, 4])
def test_guards_of_the_architecture_are_taken_off(depth: int) -> None:
    guard = "vllm::enable_sm90_or_later<"
    inner = "cutlass::transform::kernel::Compress<float>"
    assert facts(KERNEL % (guard * depth + inner + ">" * depth))["short_name"] == "cutlass Compress"
    assert facts(KERNEL % "cutlass::transform::kernel::Compress_enable_<float>")["short_name"] == (
        "cutlass Compress_enable_"
    )


def test_five_guards_are_too_many() -> None:
    guards = "vllm::enable_sm90_or_later<" * 5
    assert facts(KERNEL % f"{guards}cutlass::Compress<float>{'>' * 5}")["short_name"] == "cutlass enable_sm90_or_later"


@pytest.mark.parametrize(
    ("inner", "library"),
    [
        ("flash::FlashAttnFwdSm90<int>", "flash_attn3"),
        ("mine::flash::FlashAttnFwdSm90<int>", "other"),  # known to none, but not CUTLASS's own
        ("flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<int> >", "flash_attn3"),
        ("enable_sm90_or_later<flash::FlashAttnFwdSm90<int> >", "flash_attn3"),
        ("flash::enable_sm90_or_later<cutlass::fmha::kernel::Fmha<int> >", "cutlass"),
        ("cutlass::fmha::kernel::Fmha<flash::Mask>", "cutlass"),
    ],
)
def test_a_launcher_around_flash_attention_is_that_library_s(inner: str, library: str) -> None:
    assert decode(KERNEL % inner).library == library


@pytest.mark.parametrize(
    "shape",
    ["GroupProblemShape<int>", "MoEProblemShape<int>", "cutlass::gemm::ArrayProblemShape<int>"],
)
def test_a_shape_of_groups_makes_a_grouped_product(shape: str) -> None:
    found = facts(collective(shape=shape))
    assert (found["family"], found["short_name"]) == ("grouped_gemm", "cutlass grouped gemm sm90 fp16 128x256x64 s4")


@pytest.mark.parametrize("kernel", ["GemmGrouped", "MoeFCGemm", "GroupedGemm"])
def test_kernels_of_groups_are_grouped_products(kernel: str) -> None:
    assert facts(threadblock(kernel=f"cutlass::gemm::kernel::{kernel}"))["family"] == "grouped_gemm"


@pytest.mark.parametrize(
    ("schedule", "family", "flags"),
    [
        ("KernelTmaWarpSpecialized", "gemm", ()),
        ("KernelTmaWarpSpecializedPingpong", "gemm", ("pingpong",)),
        ("KernelTmaWarpSpecializedCooperative", "gemm", ("cooperative",)),
        ("KernelPtrArrayTmaWarpSpecializedPingpong", "grouped_gemm", ("pingpong",)),
        ("KernelPingpong", "gemm", ("pingpong",)),
    ],
)
def test_a_schedule_tells_who_shares_a_tile_and_whether_pointers_are_an_array(
    schedule: str, family: str, flags: tuple[str, ...]
) -> None:
    mainloop = f"cutlass::gemm::MainloopSm90<4, cute::tuple<cute::C<1> >, cutlass::gemm::{schedule}>"
    found = decode(collective(mainloop=mainloop))
    assert (found.family, found.flags) == (family, flags)
    assert found.short_name.endswith(" ".join(["s4", *flags]))


@pytest.mark.parametrize(
    ("mainloop", "stages"),
    [
        ("cutlass::gemm::MainloopSm90TmaGmma<12, int>", 12),
        ("cutlass::gemm::Mainloop<3>", 3),
        ("cutlass::gemm::MainloopSm100<cutlass::gemm::collective::StageCount<17>, int>", 17),
        ("cutlass::gemm::MainloopSm100<StageCountAuto<9>, int>", 9),
        ("cutlass::gemm::MainloopSm100<int, int>", None),
        ("cutlass::gemm::MainloopSm90TmaGmma<123456, int>", 1234),
        ("int", None),
    ],
)
def test_the_first_argument_of_a_main_loop_is_its_stages(mainloop: str, stages: int | None) -> None:
    assert decode(collective(mainloop=mainloop)).stages == stages


HALF, BF16, FP32, INT8 = "cutlass::half_t", "cutlass::bfloat16_t", "float", "signed char"
E4M3, E5M2, INT4 = "cutlass::float_e4m3_t", "cutlass::float_e5m2_t", "cutlass::integer_subbyte<4, true>"
INT2, INT1 = "cutlass::integer_subbyte<2, true>", "cutlass::integer_subbyte<1, false>"
MXFP4, NVFP4 = "cutlass::mx_float4_t<cutlass::float_e2m1_t>", "cutlass::nv_float4_t<cutlass::float_e2m1_t>"


@pytest.mark.parametrize(
    ("a", "b", "dtype"),
    [
        (HALF, HALF, "fp16"),
        (E4M3, E5M2, "fp8_e4m3*fp8_e5m2"),
        (BF16, FP32, "bf16*fp32"),  # both wide: in the order of the name
        (E4M3, BF16, "bf16*fp8_e4m3"),  # the narrower one is the weight, wherever it stands
        (BF16, E4M3, "bf16*fp8_e4m3"),
        (INT8, HALF, "fp16*int8"),
        (E4M3, FP32, "fp32*fp8_e4m3"),
        (INT4, E4M3, "fp8_e4m3*int4"),
        (E4M3, INT4, "fp8_e4m3*int4"),
        (INT2, E4M3, "fp8_e4m3*int2"),
        (INT1, E4M3, "fp8_e4m3*int1"),
        (MXFP4, E4M3, "fp8_e4m3*mxfp4"),
        (NVFP4, E4M3, "fp8_e4m3*nvfp4"),
        (MXFP4, BF16, "bf16*mxfp4"),
        (INT4, INT2, "int4*int2"),
        (INT4, INT4, "int4"),
        (f"cute::tuple<{INT4}, float, float>", BF16, "bf16*int4"),  # with the types of its scales
        (f"cute::tuple<{HALF}, float>", HALF, "fp16"),
        ("Unknown", HALF, None),
        (f"Unknown<cute::tuple<{HALF}> >", HALF, None),
        ("cutlass::integer_subbyte<128, true>", HALF, None),
        (f"Holds<{'x' * 60}, {INT4}>", HALF, None),
    ],
)
def test_operands_are_named_activation_first(a: str, b: str, dtype: str | None) -> None:
    assert decode(collective(a, b)).dtype == dtype


def test_too_few_arguments_of_a_collective_tell_no_type() -> None:
    name = (
        f"cutlass::gemm::kernel::GemmUniversal<int, cutlass::gemm::collective::CollectiveMma<int, {TILE}, {HALF}, int>>"
    )
    assert facts(KERNEL % name) == {
        "library": "cutlass", "family": "gemm", "tile_m": 128, "tile_n": 256, "tile_k": 64,
        "short_name": "cutlass gemm 128x256x64",
    }  # fmt: skip
    five = name.replace(f"{HALF}, int", f"{HALF}, int, {HALF}")
    assert decode(KERNEL % five).dtype == "fp16"
    assert decode(KERNEL % name.replace(f"<int, {TILE}, {HALF}, int>", "<>")).dtype is None


@pytest.mark.parametrize(
    ("layout", "dtype"),
    [
        (
            f"machete::PrepackedLayoutBTemplate<{HALF}, cutlass::vllm_biased_integer_subbyte<8, 128, 0>, {HALF}>",
            "fp16*int8",
        ),
        (f"machete::PrepackedLayoutBTemplate<{BF16}, cutlass::integer_subbyte<4, 1> >", "bf16*int4"),
        (f"machete::PrepackedLayoutBTemplate<{BF16}>", None),
        ("int", None),
    ],
)
def test_machete_names_its_types_in_the_layout_of_its_weight(layout: str, dtype: str | None) -> None:
    inner = (
        f"cutlass::gemm::kernel::GemmUniversal<int, machete::MacheteCollectiveMma<int, {layout}, {E4M3}, int, {E4M3}> >"
    )
    assert decode(KERNEL % inner).dtype == dtype


@pytest.mark.parametrize(
    ("tile", "size"),
    [
        (TILE, (128, 256, 64)),
        ("cute::tuple<cute::C<2>, cute::C<1>, cute::C<1> >, " + TILE, (128, 256, 64)),  # a cluster stands before it
        ("cute::tuple<cute::C<8>, cute::C<8>, cute::C<8> >", (8, 8, 8)),
        ("cute::tuple<cute::C<64>, cute::C<7>, cute::C<64> >", (None, None, None)),
        ("cute::tuple<cute::C<64>, cute::C<16>, cute::C<32>, cute::C<4> >", (64, 16, 32)),
        ("cute::tuple<cute::C<1234567>, cute::C<1234567>, cute::C<1234567> >", (123456, 123456, 123456)),
        ("cute::tuple<cute::C<128>, cute::C<64>, cute::tuple<cute::C<512>, cute::C<64> > >", (128, 64, None)),
        ("cute::tuple<cute::C<128>, cute::C<64> >", (None, None, None)),
    ],
)
def test_the_first_shape_too_large_for_a_cluster_is_the_tile(tile: str, size: tuple[int | None, ...]) -> None:
    found = decode(collective(tile=tile))
    assert (found.tile_m, found.tile_n, found.tile_k) == size


@pytest.mark.parametrize(
    ("inside", "arch"),
    [
        ("cutlass::arch::Sm90", "sm90"),
        ("cutlass::arch::Sm100", "sm100"),
        ("mine::cutlass_3x_gemm_sm120_int8", "sm120"),
        ("cute::SM90Tma", "sm90"),
        ("cute::SM100Umma", "sm100"),
        ("cute::SM90_TMA_LOAD", None),  # of an instruction, which later architectures have too
        ("cutlass::arch::Sm7", None),
    ],
)
def test_the_architecture_is_the_one_it_is_written_for(inside: str, arch: str | None) -> None:
    assert decode(KERNEL % f"cutlass::gemm::kernel::Gemm<{inside}>").arch == arch


@pytest.mark.parametrize(
    ("kind", "family", "words"),
    [
        ("cutlass::fmha::kernel::Sm100FmhaFwdKernelTmaWarpspecialized", "attention", "fmha sm100"),
        ("cutlass::fmha::kernel::Sm100FmhaBwdKernelTmaWarpSpecialized", "attention", "fmha bwd sm100"),
        ("cutlass::fmha::kernel::Sm100FmhaMlaKernelTmaWarpspecialized", "attention", "fmha mla sm100"),
        ("cutlass::fmha::kernel::Sm100FmhaMlaReductionKernel", "attention_combine", "fmha combine sm100"),
        ("cutlass::fmha::kernel::FmhaCombine", "attention_combine", "fmha combine"),
        ("cutlass::fmha::kernel::MergeState", "attention_combine", "fmha combine"),
        ("cutlass::fmha::kernel::Sorts", "attention", "fmha"),  # by its namespace alone
        ("mine::fmha_forward", "attention", "fmha"),
        ("mine::FMHAKernel", "attention", "fmha"),
        ("mine::DecodeMla", "attention", "fmha mla"),
        ("mine::MLADecode", "attention", "fmha"),
        ("mine::attention_kernel", "attention", "fmha"),
        ("mine::AttentionKernel", "attention", "fmha"),
        ("mine::FlashDecode", "attention", "fmha"),
    ],
)
def test_attention_is_known_by_its_name_or_namespace(kind: str, family: str, words: str) -> None:
    name = KERNEL % f"{kind}<{TILE}, cutlass::bfloat16_t>"
    dtype_and_tile = "bf16 128x256 d64"
    assert facts(name) == {
        "library": "cutlass", "family": family, "dtype": "bf16", "tile_m": 128, "tile_n": 256, "tile_k": 64,
        "head_dim": 64, **({"arch": "sm100"} if "sm100" in words else {}),
        "short_name": f"cutlass {words} {dtype_and_tile}",
    }  # fmt: skip
    assert rule(name) == ("CUTLASS attention template", "I")


def test_attention_without_a_tile_has_no_head_size() -> None:
    assert facts(KERNEL % "mine::FMHAKernel<int>") == {
        "library": "cutlass", "family": "attention", "short_name": "cutlass fmha",
    }  # fmt: skip


def test_other_templates_have_an_architecture_too() -> None:
    assert decode(KERNEL % "mine::SoftmaxKernel<cutlass::arch::Sm90>").arch == "sm90"


def test_a_word_that_only_begins_like_mla_is_no_attention() -> None:
    assert decode(KERNEL % "mine::Mlax<int>").family == "other"


REDUCTION = ("CUTLASS reduction template", "D")


@pytest.mark.parametrize(
    ("inner", "family", "words", "evidence"),
    [
        ("cutlass::reduction::kernel::Sums<int>", "gemm_epilogue", "splitK reduce", REDUCTION),
        ("mine::ReduceSplitK<int>", "gemm_epilogue", "splitK reduce", REDUCTION),
        ("cutlass::conv::kernel::Direct<float>", "conv", "conv fp32", ("CUTLASS template", "D")),
        ("mine::ImplicitGemmConvolution<float>", "conv", "conv fp32", ("CUTLASS template", "D")),
        ("mine::ConvUniversal<float>", "conv", "conv fp32", ("CUTLASS template", "D")),
        ("mine::my_gemm<float>", "gemm", "gemm fp32", ("CUTLASS template", "D")),
        ("mine::Universal<mine::CollectiveConv2<int>, float>", "gemm", "gemm", ("CUTLASS template", "D")),
        ("cutlass::transform::kernel::Sparsifies<mine::CollectiveMma<int>, float>", "other", "Sparsifies fp32",
         ("words of a CUTLASS template", "I")),
        ("mine::SoftmaxKernel<float>", "softmax", "SoftmaxKernel fp32", ("words of a CUTLASS template", "I")),
        ("mine::gemm_fp8_scaled<int>", "gemm", "gemm", ("CUTLASS template", "D")),
        ("mine::cutlass_gemm_fp8_scaled<int>", "gemm", "gemm fp8_e4m3", ("CUTLASS template", "D")),
    ],
)  # fmt: skip
def test_other_templates_are_told_apart_by_namespace_and_name(
    inner: str, family: str, words: str, evidence: tuple[str, str]
) -> None:
    found = decode(KERNEL % inner)
    told = words.removesuffix(" fp32") if family in ("other", "softmax") else words
    assert (found.library, found.family, found.short_name) == ("cutlass", family, f"cutlass {told}")
    assert found.dtype == (words.rpartition(" ")[2] if " fp" in words else None)
    assert rule(KERNEL % inner) == evidence


def test_a_split_of_the_depth_in_parallel_is_told() -> None:
    assert decode(threadblock(kernel="cutlass::gemm::kernel::GemmSplitKParallel")).split_k == "yes"
    assert decode(threadblock()).split_k is None


@pytest.mark.parametrize(
    ("mma", "after", "stages"),
    [
        ("MmaMultistage", "cutlass::gemm::threadblock::MmaPolicy<int>, 5", 5),
        ("MmaPipelined", "cutlass::gemm::threadblock::MmaPolicy<int>, 2", 2),
        ("EllMmaMultistage", "cutlass::gemm::threadblock::MmaPolicy<int>, 4", 4),
        ("MmaMultistage", "cutlass::gemm::threadblock::MmaPolicy<int>, 1234", None),
        ("MmaMultistage", "cutlass::gemm::threadblock::MmaPolicy<int>, float", None),
        ("MmaMultistage", "int, 5", None),
        ("MmaOther", "cutlass::gemm::threadblock::MmaPolicy<int>, 5", None),
        # without a policy the stages stand eleventh, as in the headers
        ("MmaMultistage", "a, b, c, d, e, f, g, 6", 6),
    ],
)
def test_stages_of_cutlass_2_follow_the_policy(mma: str, after: str, stages: int | None) -> None:
    assert decode(threadblock(mma=f"cutlass::gemm::threadblock::{mma}", after=after)).stages == stages


def test_a_policy_that_ends_the_arguments_tells_no_stages() -> None:
    mma = "cutlass::gemm::threadblock::MmaMultistage<cutlass::gemm::GemmShape<8, 8, 8>, a::MmaPolicy<int> >"
    name = f"cutlass::gemm::kernel::Gemm<{mma} >"
    assert facts(KERNEL % name) == {
        "library": "cutlass", "family": "gemm", "tile_m": 8, "tile_n": 8, "tile_k": 8,
        "short_name": "cutlass gemm 8x8x8",
    }  # fmt: skip


def test_numbers_of_absurd_length_are_cut() -> None:
    found = decode(KERNEL % "cutlass::gemm::kernel::Gemm<cutlass::gemm::GemmShape<1234567, 1234567, 1234567> >")
    assert (found.tile_m, found.tile_n, found.tile_k) == (123456, 123456, 123456)


@pytest.mark.parametrize(
    ("element", "dtype"),
    [
        ("cutlass::half_t", "fp16"),
        ("cutlass::bfloat16_t", "bf16"),
        ("cutlass::tfloat32_t", "tf32"),
        ("cutlass::float_e4m3_t", "fp8_e4m3"),
        ("cutlass::float_e5m2_t", "fp8_e5m2"),
        ("double", "fp64"),
        ("signed char", "int8"),
        ("float", "fp32"),
    ],
)
def test_the_first_type_of_cutlass_2_is_that_of_its_operands(element: str, dtype: str) -> None:
    assert decode(threadblock(element)).dtype == dtype


@pytest.mark.parametrize(
    ("weight", "dtype"),
    [
        ("cutlass::integer_subbyte<4, false>", "fp16*int4"),
        ("unsigned char", "fp16*int8"),
        ("int", None),
    ],
)
def test_products_that_dequantise_name_the_weight_second(weight: str, dtype: str | None) -> None:
    name = threadblock(f"cutlass::half_t, {weight}", mma="cutlass::gemm::threadblock::DqMmaMultistage")
    assert decode(name).dtype == dtype
    assert decode(threadblock(f"cutlass::half_t, {weight}")).dtype == "fp16"


def test_helpers_in_the_namespace_are_known_by_their_words() -> None:
    assert facts("void cutlass::reorder_tensor_kernel<cute::tuple<cute::C<16> > >(P)") == {
        "library": "cutlass", "family": "copy", "short_name": "cutlass reorder_tensor_kernel",
    }  # fmt: skip
    assert rule("void cutlass::reorder_tensor_kernel<int>(P)") == ("words in CUTLASS's namespace", "I")
    assert facts("void cutlass::detail::strange<int>(P)") == {
        "library": "cutlass", "family": "other", "short_name": "cutlass strange",
    }  # fmt: skip
    assert decode("void cutlass_cudnn::strange<int>(P)").library == "other"


def test_a_launcher_whose_template_a_table_cut_off_is_other() -> None:
    assert facts("void cutlass::device_kernel(P)") == {
        "library": "cutlass", "family": "other", "short_name": "cutlass",
    }  # fmt: skip


PYTHON = "kernel_cutlass_%s_tensorptr%sgmemalign16o1"


@pytest.mark.parametrize(
    ("words", "library", "family"),
    [
        ("kernel_flashinfernormkernelsrmsnorm", "flashinfer", "norm"),
        ("kernel_vllmkernelsrmsnorm", "vllm", "norm"),
        ("kernel_sgl_kernelrmsnorm", "sgl_kernel", "norm"),
        ("sglangrmsnorm", "sgl_kernel", "norm"),
        ("kernel_tensorrt_llm_torchcute_dsl_kernelsrmsnorm", "tensorrt_llm", "norm"),
        ("tensorrt_llm_torchcute_dsl_kernelsrmsnorm", "tensorrt_llm", "norm"),
        ("kernel_quackrmsnorm", "cutlass", "norm"),
        ("kernel_mine_flashinfer", "cutlass", "other"),
        ("kernel_all_reduce", "cutlass", "collective"),
        ("kernel_AllReduce", "cutlass", "collective"),
        ("kernel_all_gather", "cutlass", "collective"),
        ("kernel_allgather", "cutlass", "collective"),
        ("kernel_all_to_all", "cutlass", "collective"),
        ("kernel_alltoall", "cutlass", "collective"),
        ("kernel_reduce_scatter", "cutlass", "collective"),
        ("kernel_reducescatter", "cutlass", "collective"),
        ("kernel_OneshotLaunch", "cutlass", "collective"),
        ("kernel_minew4a16x", "cutlass", "gemm"),
        ("kernel_MineW4A16X", "cutlass", "gemm"),
        ("kernel_minew16a16x", "cutlass", "gemm"),
        ("kernel_mymoew4a8x", "cutlass", "grouped_gemm"),
        ("kernel_w4a16_rmsnorm", "cutlass", "norm"),
        ("kernel_minewa16x", "cutlass", "other"),
    ],
)
def test_a_name_of_cute_dsl_tells_by_its_words(words: str, library: str, family: str) -> None:
    name = PYTHON % (words, "bf16")
    found = decode(name)
    assert (found.library, found.family, found.dtype) == (library, family, "bf16")
    assert found.short_name == f"cute_dsl {words[:48].lower()}"
    assert rule(name) == ("words of a CuTe DSL name", "I")


@pytest.mark.parametrize(
    ("written", "dtype"),
    [("bf16", "bf16"), ("f16", "fp16"), ("f32", "fp32"), ("tf32", "tf32"), ("f8E4M3FN", "fp8_e4m3"),
     ("f8E5M2", "fp8_e5m2"), ("i32", None)],
)  # fmt: skip
def test_the_first_tensor_of_floats_tells_the_type_of_a_cute_dsl_kernel(written: str, dtype: str | None) -> None:
    assert decode(PYTHON % ("kernel_x", written)).dtype == dtype
    assert decode("kernel_cutlass_kernel_x_tensorptri32gmem_tensorptrf16gmem_tensorptrf32gmem").dtype == "fp16"


@pytest.mark.parametrize("end", ["tensorptrbf16gmem", "object_at_0x", "TiledMMA_x", "None_None"])
def test_arguments_are_no_words_of_a_cute_dsl_kernel(end: str) -> None:
    assert decode(f"kernel_cutlass_mine_{end}_rmsnorm").short_name == "cute_dsl mine"


@pytest.mark.parametrize(
    ("words", "arch"), [("gemm_sm100", "sm100"), ("gemmSm90Kernel", "sm90"), ("gemm_sm1000", None), ("gemm", None)]
)
def test_the_architecture_of_a_cute_dsl_kernel_stands_in_its_words(words: str, arch: str | None) -> None:
    assert decode(f"kernel_cutlass_{words}_tensorptrbf16gmem_sm75").arch == arch


def test_long_words_of_a_cute_dsl_kernel_are_cut_at_48_letters() -> None:
    assert decode(f"kernel_cutlass_{'a' * 60}_None").short_name == f"cute_dsl {'a' * 48}"
