"""sgl-kernel's adapters against a stand-in of sglang-kernel 0.4.10 (sgl-kernel 0.3.21 has the same signatures)."""

from typing import Any

import pytest
from tests.backends.standins import (
    assert_right,
    assert_tiny,
    choose_experts,
    gated,
    quantise_rows,
    rms_normed,
    rotate_in_place,
    stand_in,
)

from inferometer.errors import Unavailable

torch = pytest.importorskip("torch", reason="torch isn't installed")


def rmsnorm(input: Any, weight: Any, eps: float = 1e-6, out: Any = None, enable_pdl: bool | None = None) -> Any:
    assert out is None
    return rms_normed(input, weight, eps)


def fused_add_rmsnorm(
    input: Any, residual: Any, weight: Any, eps: float = 1e-6, enable_pdl: bool | None = None
) -> None:
    residual += input
    input.copy_(rms_normed(residual, weight, eps))


def silu_and_mul(input: Any, out: Any = None) -> Any:
    assert input.shape[-1] * input.dtype.itemsize % 16 == 0  # elementwise.py
    return gated(input)


def sgl_per_token_quant_fp8(input: Any, output_q: Any, output_s: Any) -> None:
    assert input.is_contiguous()  # csrc/gemm/per_token_quant_fp8.cu
    assert input.shape[1] % 4 == 0
    assert output_q.dtype == torch.float8_e4m3fn
    assert output_s.dtype == torch.float32
    quantise_rows(output_q, input, output_s, 448.0)


def sgl_per_token_group_quant_8bit(
    input: Any,
    output_q: Any,
    output_s: Any,
    group_size: int,
    eps: float,
    fp8_min: float,
    fp8_max: float,
    scale_ue8m0: bool = False,
    fuse_silu_and_mul: bool = False,
    masked_m: Any = None,
    enable_v2: bool | None = None,
) -> None:
    assert enable_v2  # None reads SGLang's environment in 0.3
    assert group_size in (16, 32, 64, 128)  # csrc/gemm/per_token_group_quant_8bit_v2.cu
    least = 1e-10 / 448  # LOCAL_ABSMAX_ABS there: `eps`, `fp8_min` and `fp8_max` aren't read
    rows = input.view(-1, group_size)
    quantise_rows(output_q.view(-1, group_size), rows, output_s.view(-1), 448.0, least)


def topk_softmax(
    topk_weights: Any,
    topk_ids: Any,
    gating_output: Any,
    renormalize: bool = False,
    moe_softcapping: float = 0.0,
    correction_bias: Any = None,
) -> None:
    assert not renormalize
    choose_experts(topk_weights, topk_ids, gating_output)


def moe_sum_reduce(input_tensor: Any, output_tensor: Any, routed_scaling_factor: float = 0) -> None:
    assert input_tensor.is_contiguous()  # csrc/moe/moe_sum_reduce.cu
    assert output_tensor.is_contiguous()
    output_tensor.copy_(input_tensor.float().sum(1) * routed_scaling_factor)


def causal_conv1d_fwd(
    x: Any,
    weight: Any,
    bias_: Any,
    conv_states: Any,
    query_start_loc: Any,
    cache_indices: Any,
    has_initial_state: Any,
    silu_activation: bool,
    pad_slot_id: int,
) -> None:
    """In place: `at::Tensor out = x` in csrc/mamba/causal_conv1d.cu."""
    assert weight.shape[1] in (2, 3, 4)
    assert query_start_loc.dtype == cache_indices.dtype == torch.int32
    assert has_initial_state.dtype == torch.bool
    assert query_start_loc.tolist() == [0, x.shape[1]]
    assert conv_states.dtype == x.dtype
    assert cache_indices.tolist() != [pad_slot_id]
    padded = torch.cat([conv_states[int(cache_indices)], x], 1)
    found = torch.nn.functional.conv1d(
        padded.float()[None], weight.float()[:, None], bias_.float(), groups=weight.shape[0]
    )[0]
    conv_states[int(cache_indices)] = padded[:, -conv_states.shape[2] :]
    x.copy_(torch.nn.functional.silu(found) if silu_activation else found)


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = (
        rmsnorm, fused_add_rmsnorm, silu_and_mul, sgl_per_token_quant_fp8, sgl_per_token_group_quant_8bit,
        topk_softmax, moe_sum_reduce, causal_conv1d_fwd,
    )  # fmt: skip
    stand_in(monkeypatch, "sgl_kernel", rotary_embedding=rotate_in_place, **{each.__name__: each for each in parts})


@pytest.mark.parametrize("name", ["rms_norm", "fused_add_rms_norm", "moe_sum_reduce", "causal_conv1d"])
def test_tiny_shapes_are_right(name: str) -> None:
    assert_tiny("sgl-kernel", name)


def test_rows_that_no_load_divides_are_refused() -> None:
    words = "a multiple of 16 bytes, found"
    assert_tiny("sgl-kernel", "silu_and_mul", None, f"{words} 260", f"{words} 4")


def test_heads_that_are_no_multiple_are_refused_a_rotation() -> None:
    assert_tiny("sgl-kernel", "fused_qkv_rope", None, "a multiple of 2 query heads, found 3", None)


def test_groups_of_experts_are_refused() -> None:
    assert_tiny("sgl-kernel", "moe_topk_gating_softmax", None, None, "no groups", "no groups")


def test_other_widths_are_refused() -> None:
    with pytest.raises(Unavailable, match="widths of 2, 3 and 4, expected 5"):
        assert_right("sgl-kernel", "causal_conv1d", {"token_count": 9, "dim": 8, "width": 5})


def test_fp8_is_e4m3fn_up_to_448() -> None:
    other = "quantises to fp8_e4m3fn, expected fp8_e4m3fnuz"
    args = {"token_count": 5, "hidden_size": 256, "fp8_dtype": "fp8_e4m3fn"}
    assert_right("sgl-kernel", "fp8_dynamic_per_token_quant", args)
    for change, words in (
        ({"fp8_dtype": "fp8_e4m3fnuz"}, other),
        ({"fp8_max": 240.0}, "448 as the largest value of fp8_e4m3fn, expected 240"),
        ({"hidden_size": 129}, "a multiple of 4 columns, found 129"),
    ):
        with pytest.raises(Unavailable, match=words):
            assert_right("sgl-kernel", "fp8_dynamic_per_token_quant", {**args, **change})


def test_groups_of_columns_are_those_compiled() -> None:
    other = "expected fp8_e4m3fnuz"
    assert_tiny(
        "sgl-kernel", "per_token_group_quant_fp8", None, other, "expected 129", "448 as the largest .* expected 240"
    )
    args = {"token_count": 3, "hidden_size": 256, "group_size": 64, "zero_groups": 1}
    assert_right("sgl-kernel", "per_token_group_quant_fp8", args)
