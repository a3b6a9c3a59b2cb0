"""Names of XLA: each form with a name that a looser rule would take for it, and the halves of collectives."""

import pytest

from inferometer.names import decode
from inferometer.names.communication import done_halves, find_collective


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("loop_add_fusion.7", "elementwise"),
        ("loop_dynamic_slice_multiply_subtract_fusion", "elementwise"),  # the arithmetic costs more than the slice
        ("loop_dynamic_update_slice_fusion_1", "copy"),
        ("loop_broadcast_fusion_2", "copy"),
        ("loop_select_fusion_12_remat2", "elementwise"),
        ("loop_tanh_fusion", "activation"),
        ("input_reduce_fusion", "reduction"),
        ("input_reduce_window_fusion", "other"),  # a pooling, or a scan: no plain reduction
        ("input_scatter_fusion_3.kd", "gather_scatter"),
        ("loop_gather_fusion", "gather_scatter"),
        ("fusion.12", "other"),
        ("layernorm_fusion", "norm"),  # nobody's operation: somebody's own kernel
        ("wrapped_transpose", "copy"),
        ("wrapped_reduce_precision", "elementwise"),
        ("gemm_fusion_dot.3", "gemm"),
        ("cublas-lt-matmul.2", "gemm"),
        ("cudnn-conv-bw-filter.5", "conv"),
        ("cudnn-fmha.1", "attention"),
        ("copy-start.1", "copy"),
        ("copy-done.1", "copy"),
        ("dot.4", "gemm"),
        ("ragged-dot.1", "grouped_gemm"),
        ("rng-bit-generator", "random"),
        ("select-and-scatter.5", "other"),
        ("reduce.3", "reduction"),
        ("triangular-solve.1.0", "other"),
        ("select", "other"),  # without a number anybody's word
        ("reduce_scatter.2", "collective"),
    ],
)
def test_families_of_xla(name: str, family: str) -> None:
    assert decode(name).family == family


@pytest.mark.parametrize(
    ("name", "collective"),
    [
        ("send.2", "send_recv"),
        ("recv-done", "send_recv"),
        ("async-collective-done.1", "other"),
        ("all-to-all-start", "all_to_all"),
        ("copy-start.1", None),
        ("async-start", None),
        ("send_scores", None),
    ],
)
def test_collectives_of_xla_and_their_halves(name: str, collective: str | None) -> None:
    assert find_collective(name) == collective
    assert (decode(name).family == "collective") == (collective is not None)


def test_the_second_half_of_a_collective_is_known_where_the_first_is_there() -> None:
    names = ["all-reduce-start.1", "all-reduce-done", "all-gather-done.2", "copy-start", "copy-done", "ncclKernel-done"]
    assert done_halves(names) == {"all-reduce-done"}


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("__myl_FcCast_myl2_7", "gemm"),
        ("__myl_MovMulResMeaAddSqrDivMulCas_myl0_4", "other"),  # has a mean: a norm, or not
        ("__myl_MulAddConc_myl3_12", "elementwise"),
        ("__myl_TranMove_myl1_0", "copy"),
        ("__myl_SiluMul", "activation"),
        ("__myl_MaxSubExpSumDiv_myl0_1", "softmax"),
    ],
)
def test_families_of_myelin(name: str, family: str) -> None:
    assert decode(name).family == family
