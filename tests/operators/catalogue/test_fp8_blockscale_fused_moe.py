"""The type of the result, and what it can't hold, of `fp8_blockscale_fused_moe`."""

import pytest

from inferometer.operators.catalogue.fp8_blockscale_fused_moe import OPERATOR

torch = pytest.importorskip("torch", reason="torch isn't installed")
ARGS = {"token_count": 3, "hidden_size": 32, "intermediate_size": 16, "num_experts": 2, "top_k": 1,
        "scale_block_n": 16, "scale_block_k": 16}  # fmt: skip


@pytest.mark.parametrize("fp8_dtype", ["fp8_e4m3fnuz", "fp8_e4m3fn"])
def test_the_result_has_the_type_of_the_input_and_its_scale(fp8_dtype: str) -> None:
    tensors = OPERATOR.inputs(**{**ARGS, "token_count": 200}, fp8_dtype=fp8_dtype, seed=1)
    out = OPERATOR.answer(tensors, ARGS)["out"]
    assert out.dtype == tensors["hidden_states"].dtype
    assert 0.5 < out.float().square().mean().sqrt() < 4


def test_what_the_type_cannot_hold_is_not_a_number() -> None:
    tensors = OPERATOR.inputs(**ARGS, seed=1)
    tensors["fc2_scale"] = tensors["fc2_scale"] * 1e6
    assert OPERATOR.answer(tensors, ARGS)["out"].float().isnan().any()
