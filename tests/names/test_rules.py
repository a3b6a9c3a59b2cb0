"""Rules that were once missed, one literal row each, next to the name that a looser rule would take for the same."""

import pytest

from inferometer.names import decode
from inferometer.names.communication import find_collective

_ROCPRIM = "void rocprim::detail::trampoline_kernel<rocprim::detail::{}_config_selector<float, int>>"


@pytest.mark.parametrize(
    ("name", "collective"),
    [
        ("all-reduce-start", "all_reduce"),
        ("all-reduce-done.2", "all_reduce"),
        ("all-gather-start.1", "all_gather"),
        ("all-to-all.2", "all_to_all"),
        ("ragged-all-to-all", "all_to_all"),
        ("reduce-scatter.7", "reduce_scatter"),
        ("collective-permute-start.1", "send_recv"),
        ("collective-broadcast.3", "broadcast"),
        ("reduce.3", None),
        ("input_reduce_fusion", None),
        ("permute_collective_stats", None),
    ],
)
def test_operations_of_xla_that_communicate(name: str, collective: str | None) -> None:
    assert find_collective(name) == collective
    assert (decode(name).family == "collective") == (collective is not None)


@pytest.mark.parametrize(
    ("algorithm", "family", "short_name"),
    [
        ("reduce", "reduction", "rocprim reduce"),
        ("reduce_by_key", "reduction", "rocprim reduce by key"),
        ("scan", "scan_sort", "rocprim scan"),
        ("radix_sort_onesweep", "scan_sort", "rocprim radix sort"),
        ("merge_sort_block_sort", "scan_sort", "rocprim merge sort"),
        ("partition", "scan_sort", "rocprim partition"),
        ("select", "scan_sort", "rocprim select"),
        ("histogram", "scan_sort", "rocprim histogram"),
        ("transform", "elementwise", "rocprim transform"),
        ("adjacent_difference", "elementwise", "rocprim adjacent difference"),
    ],
)
def test_a_config_selector_of_rocprim_selects_nothing(algorithm: str, family: str, short_name: str) -> None:
    known = decode(_ROCPRIM.format(algorithm))
    assert (known.library, known.family, known.short_name) == ("rocprim", family, short_name)


@pytest.mark.parametrize(
    ("name", "family", "short_name"),
    [
        ("transform_kernel<rocprim::default_config, float, rocprim::select_op>", "elementwise", "rocprim transform"),
        ("block_sort_kernel<rocprim::default_config, rocprim::reverse_scan>", "scan_sort", "rocprim merge sort"),
        ("device_block_merge_mergepath_kernel<int>", "scan_sort", "rocprim merge sort"),
        ("block_reduce_kernel<rocprim::default_config, rocprim::scan_op>", "reduction", "rocprim reduce"),
        ("non_trivial_kernel<rocprim::default_config>", "scan_sort", "rocprim run length"),
        ("batch_memcpy::blev_memcpy_kernel<rocprim::default_config>", "copy", "rocprim batch memcpy"),
        ("merge_kernel<rocprim::default_config, float*>", "scan_sort", "rocprim merge"),
        ("search_n_kernel<int>", "scan_sort", "rocprim search"),
        ("nth_element_kernel<int>", "scan_sort", "rocprim select"),
        ("made_up_kernel<int>", "other", "rocprim made up kernel"),
    ],
)
def test_a_kernel_of_rocprim_is_its_own_name_before_its_arguments(name: str, family: str, short_name: str) -> None:
    known = decode(f"void rocprim::ROCPRIM_400200_NS::detail::{name}(int)")
    assert (known.library, known.family, known.short_name) == ("rocprim", family, short_name)


_CUTLASS = "::Kernel<cutlass_tensorop_f16_s16816fprop_optimized_f16_64x64_64x3_nhwc_align8>(Params)"


@pytest.mark.parametrize(
    ("name", "library", "family"),
    [
        ("void cutlass_cudnn_infer" + _CUTLASS, "cudnn", "conv"),
        ("void cutlass_cudnn_train" + _CUTLASS, "cudnn", "conv"),
        ("void cutlass_cudnn" + _CUTLASS, "cudnn", "conv"),
        ("void cutlass" + _CUTLASS, "cutlass", "conv"),
        ("triton__0d1d2d", "inductor", "other"),
        ("triton__0d1d2d3d4de5de", "inductor", "other"),
        ("triton_poi_fused_add_0", "inductor", "elementwise"),
        ("copy_2d_kernel", "triton", "copy"),
        ("_attn_fwd_0d1d2d34d5de", "triton", "attention"),
        ("rms_norm_kernel_0d1de", "other", "norm"),
        ("conv_01", "other", "conv"),
        ("groupnorm_kernel_dispatch_128", "triton", "norm"),
        ("moe_dispatch_kernel", "triton", "moe_routing"),
        ("dispatch_tokens_kernel", "triton", "moe_routing"),
        ("onesweep_iteration", "other", "scan_sort"),
        ("onesweep_iteration_kernel", "rocprim", "scan_sort"),
        ("init_lookback_scan_state_kernel.kd", "rocprim", "scan_sort"),
        ("void lookback_scan_kernel<Config, int*>(int*)", "rocprim", "scan_sort"),
        ("sort_kernel", "triton", "scan_sort"),
        ("tvmgen_default_fused_nn_conv2d_add_nn_relu_kernel", "other", "conv"),
        ("tvmgen_default_fused_nn_dense_kernel0", "other", "gemm"),
        ("tvmgen_default_fused_nn_contrib_dense_pack_add", "other", "gemm"),
        ("fused_nn_softmax_kernel1", "other", "softmax"),
        ("default_function_kernel0", "other", "other"),
        ("default_softmax_kernel", "triton", "softmax"),
        ("silu_mul.kd", "other", "activation"),
        ("rms_norm.kd", "other", "norm"),
        ("rms_norm", "webgpu", "norm"),
        ("kernel_batched_gemm_xdlops_bwd_weight", "ck", "conv"),
        ("kernel_grouped_conv_bwd_weight_xdlops_v3", "ck", "conv"),
        ("kernel_gemm_xdl_cshuffle_v3", "ck", "gemm"),
        ("kernel_gemm_fast", "triton", "gemm"),
        ("void ck::kernel_batched_gemm_xdlops_bwd_weight<ck::GridwiseGemm<float>>(int)", "ck", "conv"),
        ("void ck::kernel_gemm_xdlops_v2r3<ck::GridwiseGemm<float>>(int)", "ck", "gemm"),
    ],
)
def test_libraries_and_families(name: str, library: str, family: str) -> None:
    known = decode(name)
    assert (known.library, known.family) == (library, family)


def test_what_triton_2_wrote_behind_a_name_is_no_part_of_it() -> None:
    assert decode("_attn_fwd_0d1d2d34d5de").short_name == decode("_attn_fwd").short_name
    assert decode("step_0").short_name == "step_0"


@pytest.mark.parametrize(
    ("begin", "pumped", "end"),
    [
        ("kernel_0d1", "11", "x"),  # what Triton 2 writes behind a name
        ("kernel_0d1", "1d", "x"),
        ("x", "_0d", "x"),
        ("void rocprim::trampoline_kernel<rocprim::", "a_", "<int>>"),
        ("kernel_", "_xdl", "-"),
        ("all-", "all-", "reduc"),
        ("loop_", "add_", "fusio"),  # XLA
        ("fill_", "aB_", "zero..."),  # a cut name
    ],
)
def test_names_of_any_length_end(begin: str, pumped: str, end: str) -> None:
    """What grows exponentially, or with the square of the length, would not."""
    assert decode(begin + pumped * (40_000 // len(pumped)) + end).short_name
