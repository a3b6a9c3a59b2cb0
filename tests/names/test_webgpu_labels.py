"""Labels of a WebGPU engine: both syntaxes of the layer, and roles of several words."""

import pytest

from inferometer.names import decode


@pytest.mark.parametrize(
    ("label", "layer", "role"),
    [
        ("attention", None, None),
        ("fused_ffn:L12", 12, None),
        ("matmul:lm_head", None, "lm_head"),
        ("linear:lm_head", None, "lm_head"),
        ("rms_norm:final_norm", None, "final_norm"),
        ("matmul:q_proj:L3", 3, "q_proj"),
        ("matmul_rmsnorm_fused:L9.ffn_down", 9, "ffn_down"),
        ("gemv:wq:L1", 1, "wq"),
        ("matmul:attn:q_proj:L3", 3, "attn:q_proj"),
        ("matmul:L3.attn.q_proj", 3, "attn.q_proj"),
        ("matmul:q proj:L3", 3, "q proj"),
        ("matmul:layer_3.q_proj", 3, "q_proj"),
        ("matmul:q_proj:l3", 3, "q_proj"),
    ],
)
def test_a_label_tells_its_layer_and_role(label: str, layer: int | None, role: str | None) -> None:
    known = decode(label)
    assert (known.library, known.layer, known.role) == ("webgpu", layer, role)


@pytest.mark.parametrize("name", ["a::b:L3", "foo:bar", "matmul:a b", "q_proj:", ":L3"])
def test_what_is_no_label_is_not_taken_for_one(name: str) -> None:
    assert decode(name).library != "webgpu"
