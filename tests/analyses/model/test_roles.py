"""Which operator calls of a model a label stands for."""

import pytest

from inferometer.analyses.model.roles import match_roles
from inferometer.architectures import find_model, step_calls


def parts_of(name: str) -> list[tuple[str, str]]:
    model = find_model(name)
    assert model is not None
    return list(dict.fromkeys((call.op, call.role) for call in step_calls(model, tokens=1, context=8)))


LLAMA, GEMMA, MIXTRAL = (parts_of(name) for name in ("Llama-3.2-1B", "gemma-3-1b", "Mixtral-8x7B"))


def roles(classes: list[str], parts: list[tuple[str, str]]) -> dict[str, list[str]]:
    return {name: [role for _, role in found] for name, found in match_roles(classes, parts).parts.items()}


@pytest.mark.parametrize(
    ("label", "wanted"),
    [
        ("matmul:q_proj", ["q_proj"]),
        ("gemv:wq", ["q_proj"]),
        ("matmul:self_attn.k_proj", ["k_proj"]),
        ("matmul:attn_v", ["v_proj"]),
        ("matmul:qkv_proj", ["q_proj", "k_proj", "v_proj"]),
        ("matmul:attn_output", ["o_proj"]),
        ("matmul:mlp.gate_proj", ["ffn_gate"]),
        ("matmul:gate_up_proj", ["ffn_gate", "ffn_up"]),
        ("matmul:w2", ["ffn_down"]),
        ("matmul:down_proj", ["ffn_down"]),
        ("lm_head", ["lm_head"]),
        ("matmul:logits", ["lm_head"]),
        ("gather:embed_tokens", ["embedding"]),
        ("attention", ["attention"]),
        ("attend", ["attention"]),
        ("gemm_add:blk.down", ["ffn_down", "ffn_residual"]),
        ("rope", ["q_rope", "k_rope"]),
        ("rmsnorm", ["input_norm", "pre_ffn_norm", "final_norm"]),
        ("rmsnorm:input_norm", ["input_norm"]),
        ("residual_add", ["attention_residual", "ffn_residual"]),
        ("matmul", []),
        ("warmup", []),
    ],
)
def test_a_label_says_its_role_in_the_engines_own_words(label: str, wanted: list[str]) -> None:
    assert roles([label], LLAMA) == {label: wanted}


def test_a_fused_feed_forward_does_what_no_other_kernel_does() -> None:
    labels = ["fused_ffn", "matmul_rmsnorm_fused:ffn_down", "rmsnorm"]
    found = roles(labels, GEMMA)
    assert found["fused_ffn"] == ["ffn_gate", "ffn_up", "ffn_activation"]
    assert found["matmul_rmsnorm_fused:ffn_down"] == ["ffn_down", "post_ffn_norm", "ffn_residual"]
    assert "post_ffn_norm" not in found["rmsnorm"]
    assert roles(["fused_mlp"], LLAMA)["fused_mlp"] == ["ffn_gate", "ffn_up", "ffn_activation", "ffn_down"]


def test_a_norm_fused_behind_a_product_is_the_next_one_where_none_stands_before_the_residual() -> None:
    assert roles(["matmul_rmsnorm_fused:o_proj"], LLAMA)["matmul_rmsnorm_fused:o_proj"] == [
        "o_proj",
        "attention_residual",
        "pre_ffn_norm",
    ]


def test_experts_have_the_feed_forward_words_where_a_model_has_no_other() -> None:
    assert roles(["matmul:down_proj", "moe:experts.up_proj"], MIXTRAL) == {
        "matmul:down_proj": ["expert_down"],
        "moe:experts.up_proj": ["expert_up"],
    }


def test_every_call_is_claimed_once_at_most_and_none_is_lost() -> None:
    labels = ["matmul:q_proj", "wq", "attention", "attention_2", "rmsnorm", "sample_phase1", "sample_phase2"]
    found = match_roles(labels, GEMMA)
    claimed = [part for parts in found.parts.values() for part in parts]
    assert sorted([*claimed, *found.unclaimed]) == sorted(GEMMA)
    assert (found.parts["wq"], found.parts["sample_phase2"]) == ((), ())


@pytest.mark.parametrize(
    ("label", "parts", "wanted"),
    [
        ("add_rms_norm:pre_ffn_norm", LLAMA, ["attention_residual", "pre_ffn_norm"]),
        ("add_rms_norm:ffn_residual", LLAMA, ["input_norm", "ffn_residual"]),
        ("add_rms_norm:final_norm", LLAMA, ["ffn_residual", "final_norm"]),
        ("norm_add_norm:post_attention_norm", GEMMA, ["post_attention_norm", "attention_residual", "pre_ffn_norm"]),
        ("norm_add_norm:post_ffn_norm", GEMMA, ["input_norm", "post_ffn_norm", "ffn_residual"]),
        ("norm_add_norm:final_norm", GEMMA, ["post_ffn_norm", "ffn_residual", "final_norm"]),
        ("add_rms_norm:pre_ffn_norm", GEMMA, ["attention_residual", "pre_ffn_norm"]),
        ("rms_norm:input_norm", GEMMA, ["input_norm"]),
        ("rope:kv_write", LLAMA, ["q_rope", "k_rope", "kv_write"]),
        ("rope:kv_write", GEMMA, ["q_norm", "k_norm", "q_rope", "k_rope", "kv_write"]),
        ("gate_up:ffn_gate_up", LLAMA, ["ffn_gate", "ffn_up", "ffn_activation"]),
        ("gather:scaled_embedding", GEMMA, ["embedding", "embedding_scale"]),
        ("norm_linear:qkv_proj", LLAMA, ["input_norm", "q_proj", "k_proj", "v_proj"]),
        ("norm_gate_up:ffn_gate_up", LLAMA, ["pre_ffn_norm", "ffn_gate", "ffn_up", "ffn_activation"]),
        ("linear_add:o_proj", LLAMA, ["o_proj", "attention_residual"]),
        ("linear_add:ffn_down", LLAMA, ["ffn_down", "ffn_residual"]),
        ("moe_route:expert_routing", MIXTRAL, ["expert_routing"]),
        ("expert_gate_up", MIXTRAL, ["expert_gate", "expert_up", "expert_activation"]),
        ("expert_down", MIXTRAL, ["expert_down", "expert_combine"]),
    ],
)
def test_a_fused_kernel_does_what_its_operator_says_beside_its_role(
    label: str, parts: list[tuple[str, str]], wanted: list[str]
) -> None:
    assert roles([label], parts) == {label: wanted}


def test_head_norms_are_those_of_the_kernel_that_names_them() -> None:
    found = roles(["rope:kv_write", "rms_norm:q_norm"], GEMMA)
    assert found == {"rope:kv_write": ["k_norm", "q_rope", "k_rope", "kv_write"], "rms_norm:q_norm": ["q_norm"]}


def test_kernels_of_different_layers_may_have_one_role() -> None:
    first, rest, last = "rms_norm:input_norm", "norm_add_norm:post_ffn_norm", "norm_add_norm:final_norm"
    found = match_roles([first, rest, last], GEMMA, {first: [0], rest: range(25), last: [25]})
    shared = {role for _, role in found.shared}
    assert shared == {"input_norm", "post_ffn_norm", "ffn_residual"}
    assert [role for _, role in found.parts[first]] == ["input_norm"]  # of layer 0: the others are of 1 to 25
    both = match_roles(["a:q_proj", "b:q_proj"], LLAMA, {"a:q_proj": [0, 1], "b:q_proj": [1, 2]})
    assert both.parts["b:q_proj"] == ()  # both say layer 1
