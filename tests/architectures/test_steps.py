"""The calls of a step: against published parameter counts, numbers worked out by hand, and what must grow with what."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.architectures import (
    Model,
    OperatorCall,
    bundled_models,
    count_parameters,
    find_model,
    read_model,
    step_calls,
)
from inferometer.architectures.calls import expected_experts, visible_pairs, visible_positions
from inferometer.architectures.known import BundledModel

BUNDLED = pytest.mark.parametrize("bundled", bundled_models(), ids=lambda bundled: bundled.name)


def bundled(name: str) -> Model:
    model = find_model(name)
    assert model is not None
    return model


def sums(calls: tuple[OperatorCall, ...], number: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for call in calls:
        found[call.role] += getattr(call, number)
    return found


def one(calls: tuple[OperatorCall, ...], role: str, layer: int | None = 0) -> OperatorCall:
    (call,) = [call for call in calls if call.role == role and call.layer == layer]
    return call


def parameters_by_formula(config: dict[str, Any]) -> int:
    """All parameters from the fields of a configuration, layer kind by layer kind; shares nothing with our code."""
    kind, D, F = config["model_type"], config["hidden_size"], config["intermediate_size"]
    L, H, V = config["num_hidden_layers"], config["num_attention_heads"], config["vocab_size"]
    if kind == "deepseek_v3":
        q, r, n, e, v = (
            config[f] for f in ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
        )
        mixer = D * q + q + q * H * (n + e) + D * (r + e) + r + r * H * (n + v) + H * v * D
        E, W, dense = config["n_routed_experts"], config["moe_intermediate_size"], config["first_k_dense_replace"]
        experts = D * E + E + 3 * D * W * (E + config["n_shared_experts"])
        return L * (mixer + 2 * D) + dense * 3 * D * F + (L - dense) * experts + D + 2 * V * D
    K, hd = config["num_key_value_heads"], config.get("head_dim", D // H)
    layer = D * hd * (2 * H + 2 * K) + 2 * D
    layer += hd * (H + 2 * K) if kind == "qwen2" else 0
    layer += 2 * hd if kind in ("qwen3", "qwen3_moe", "gemma3_text") else 0
    layer += 2 * D if kind.startswith("gemma") else 0
    if kind == "mixtral":
        layer += config["num_local_experts"] * (3 * D * F + D)
    elif kind == "qwen3_moe":
        layer += config["num_experts"] * (3 * D * config["moe_intermediate_size"] + D)
    else:
        layer += 3 * D * F
    tied = config.get("tie_word_embeddings", kind.startswith("gemma"))
    return L * layer + D + V * D * (1 if tied else 2)


@BUNDLED
def test_the_calls_weights_add_up_to_the_published_parameters(bundled: BundledModel) -> None:
    assert count_parameters(bundled.model) == bundled.parameters == parameters_by_formula(bundled.config)


def test_gemma_3_1b_reads_two_gigabytes_of_weights_a_token() -> None:
    calls = step_calls(bundled("gemma-3-1b"), tokens=1, context=9)
    weights = sums(calls, "weight_bytes")
    assert weights["ffn_down"] == 414_056_448
    assert weights["ffn_gate"] + weights["ffn_up"] == 828_112_896
    assert weights["lm_head"] == 603_979_776
    assert (weights["q_proj"], weights["o_proj"]) == (61_341_696, 61_341_696)
    assert (weights["k_proj"], weights["v_proj"]) == (15_335_424, 15_335_424)
    assert sum(call.weight_bytes for call in calls if call.op == "matmul") == 1_999_503_360


def test_gemma_3_has_norms_around_both_halves_and_over_heads() -> None:
    calls = step_calls(bundled("gemma-3-1b"), tokens=1, context=9)
    norms = Counter(call.role for call in calls if call.op == "rms_norm")
    roles = ("input_norm", "q_norm", "k_norm", "post_attention_norm", "pre_ffn_norm", "post_ffn_norm")
    assert norms == {**dict.fromkeys(roles, 26), "final_norm": 1}
    assert norms.total() - norms["post_ffn_norm"] == 131  # what is left where that one is fused into ffn_down
    layer = [call.role for call in calls if call.layer == 7]
    assert layer == [
        *("input_norm", "q_proj", "k_proj", "v_proj", "q_norm", "k_norm", "q_rope", "k_rope", "kv_write", "attention"),
        *("o_proj", "post_attention_norm", "attention_residual", "pre_ffn_norm", "ffn_gate", "ffn_up"),
        *("ffn_activation", "ffn_down", "post_ffn_norm", "ffn_residual"),
    ]
    outside = [call.role for call in calls if call.layer is None]
    assert outside == ["embedding", "embedding_scale", "final_norm", "lm_head", "sampling"]


def test_attention_of_a_decode_step_reads_every_cached_position_once() -> None:
    model = bundled("gemma-3-1b")
    calls = [call for call in step_calls(model, tokens=1, context=258) if call.op == "attention"]
    queries = 26 * 4 * 256 * 2
    assert sum(call.read_bytes for call in calls) == 259 * 26_624 + queries
    assert sum(call.flops for call in calls) == 26 * 4 * 259 * 4 * 256
    assert sum(call.written_bytes for call in calls) == queries


def test_a_sliding_layer_stops_growing_at_its_window() -> None:
    calls = step_calls(bundled("gemma-3-1b"), tokens=1, context=2000)
    kv = {call.layer: call.shape["kv"] for call in calls if call.op == "attention"}
    assert [layer for layer, positions in kv.items() if positions == 2001] == [5, 11, 17, 23]
    assert set(kv.values()) == {512, 2001}
    gemma2 = step_calls(bundled("gemma-2-2b"), tokens=1, context=9000)
    assert [call.shape["kv"] for call in gemma2 if call.op == "attention"][:4] == [4096, 9001, 4096, 9001]


def test_gemma_2_caps_scores_and_logits() -> None:
    calls = step_calls(bundled("gemma-2-2b"), tokens=1, context=0)
    assert one(calls, "attention").flops == 8 * (4 * 256 + 3)
    assert one(calls, "logit_softcap", None).flops == 3 * 256_000
    assert "logit_softcap" not in sums(step_calls(bundled("gemma-3-1b"), tokens=1, context=0), "flops")


def test_a_matmul_of_a_prefill_is_worked_out_by_hand() -> None:
    calls = step_calls(bundled("Llama-3.1-8B"), tokens=7, context=100, batch=3)
    down = one(calls, "ffn_down", 31)
    assert down == OperatorCall(
        "matmul",
        "ffn_down",
        31,
        {"M": 21, "N": 4096, "K": 14336},
        flops=2 * 21 * 4096 * 14336,
        weight_bytes=2 * 4096 * 14336,
        read_bytes=2 * 21 * 14336,
        written_bytes=2 * 21 * 4096,
    )
    attention = one(calls, "attention", 31)
    pairs = sum(100 + token for token in range(1, 8))
    assert attention.flops == 3 * 32 * pairs * 4 * 128
    assert attention.read_bytes == 2 * (21 * 32 * 128 + 3 * 107 * 2 * 8 * 128)
    assert one(calls, "lm_head", None).shape["M"] == 3
    every = step_calls(bundled("Llama-3.1-8B"), tokens=7, context=100, batch=3, logits="all")
    assert one(every, "lm_head", None).shape["M"] == 21


def test_elementwise_parts_are_worked_out_by_hand() -> None:
    calls = step_calls(bundled("Llama-3.2-1B"), tokens=2, context=5)
    norm = one(calls, "input_norm")
    assert (norm.flops, norm.weight_bytes, norm.read_bytes) == (2 * (4 * 2048 + 3), 4096, 8192)
    assert (one(calls, "q_rope").flops, one(calls, "k_rope").flops) == (3 * 2 * 32 * 64, 3 * 2 * 8 * 64)
    assert one(calls, "ffn_activation").flops == 2 * 8192 * 5
    assert one(calls, "kv_write").written_bytes == 2 * 2 * 8 * 64 * 2
    gathered = one(calls, "embedding", None)
    assert (gathered.weight_bytes, gathered.read_bytes, gathered.written_bytes) == (2 * 2048 * 2, 8, 2 * 2048 * 2)


def test_qwen_2_has_biases_where_qwen_3_has_norms() -> None:
    qwen2, qwen3 = (step_calls(bundled(name), tokens=1, context=0) for name in ("Qwen2.5-0.5B", "Qwen3-0.6B"))
    assert one(qwen2, "q_proj").weight_bytes == 2 * (896 * 896 + 896)
    assert one(qwen2, "q_proj").flops == 2 * 896 * 896 + 896
    assert one(qwen2, "o_proj").weight_bytes == 2 * 896 * 896
    assert "q_norm" not in sums(qwen2, "flops")
    assert one(qwen3, "q_norm").shape == {"rows": 16, "width": 128}


def test_one_token_reads_the_parameters_that_publishers_call_active() -> None:
    # Every parameter but the rows of the embedding table that the token has no use for.
    for name, active in (("Qwen3-30B-A3B", 3_353_032_704), ("Mixtral-8x7B", 12_879_925_248)):
        model = bundled(name)
        calls = step_calls(model, tokens=1, context=0, weight_bytes=1, activation_bytes=1)
        assert sum(call.weight_bytes for call in calls) + (model.vocab - 1) * model.hidden == active
    model = bundled("DeepSeek-V3")
    calls = step_calls(model, tokens=1, context=0, weight_bytes=1, activation_bytes=1)
    assert round(sum(call.weight_bytes for call in calls) / 1e9, 1) == 36.6  # without the table, as published


def test_experts_are_touched_as_often_as_even_routing_would() -> None:
    assert expected_experts(1, 128, 8) == 8
    assert expected_experts(2, 8, 2) == 4  # 8 (1 - (6/8)^2) = 3.5
    assert expected_experts(64, 128, 8) == 126  # 128 (1 - (120/128)^64) = 125.9
    assert expected_experts(100_000, 256, 8) == 256
    assert expected_experts(3, 4, 4) == 4
    up = one(step_calls(bundled("Mixtral-8x7B"), tokens=2, context=0), "expert_up")
    assert up.shape == {"M": 4, "N": 14336, "K": 4096, "experts": 8, "touched": 4}
    assert up.weight_bytes == 4 * 14336 * 4096 * 2
    assert up.flops == 2 * 4 * 14336 * 4096


def test_latent_attention_is_absorbed_in_decode_and_expanded_in_prefill() -> None:
    model = bundled("DeepSeek-V3")
    decode = step_calls(model, tokens=1, context=999, batch=2)
    attention = one(decode, "attention")
    assert (attention.shape["absorbed"], attention.shape["kv_heads"], attention.shape["kv"]) == (1, 1, 1000)
    assert attention.flops == 2 * 1000 * 128 * 2 * (576 + 512)
    assert attention.read_bytes == 2 * (2 * 128 * 576 + 2 * 1000 * 576)
    assert one(decode, "q_absorb").flops == 2 * 2 * 128 * 128 * 512
    prefill = step_calls(model, tokens=50, context=950, batch=2)
    attention = one(prefill, "attention")
    assert (attention.shape["absorbed"], attention.shape["kv_heads"]) == (0, 128)
    assert attention.flops == 2 * visible_pairs(50, 950, None) * 128 * 2 * (192 + 128)
    assert one(prefill, "kv_b_proj").shape == {"M": 2000, "N": 128 * 256, "K": 512}
    assert sums(decode, "weight_bytes")["q_absorb"] * 2 == sums(prefill, "weight_bytes")["kv_b_proj"]
    assert "ffn_up" in sums(decode[:70], "flops")
    assert {call.layer for call in decode if call.role == "ffn_up"} == {0, 1, 2}
    assert {call.layer for call in decode if call.role == "shared_expert_up"} == set(range(3, 61))


def test_a_prefill_of_deepseek_v3_has_the_work_of_an_independent_recount() -> None:
    calls = step_calls(bundled("DeepSeek-V3"), tokens=8192, context=0, logits="all")
    matrices = [call.flops for call in calls if call.op in ("matmul", "grouped_matmul", "attention")]
    assert sum(matrices) == 767_753_388_556_288  # a public audit of the checkpoint, expanded form, exactly causal


def test_sizes_of_elements_may_be_parts_of_bytes() -> None:
    calls = step_calls(bundled("gemma-3-1b"), tokens=1, context=9, weight_bytes=0.5625, kv_bytes=1)
    assert one(calls, "ffn_down").weight_bytes == 6912 * 1152 * 9 // 16
    assert one(calls, "input_norm").weight_bytes == 1152 * 2  # vectors stay as the activations are
    assert one(calls, "attention").read_bytes == 1024 * 2 + 10 * 512
    thirds = step_calls(bundled("gemma-3-1b"), tokens=1, context=9, weight_bytes=0.1)
    assert one(thirds, "k_proj").weight_bytes == 29_492  # of 29,491.2


@pytest.mark.parametrize(
    "wrong",
    [
        {"tokens": 0},
        {"context": -1},
        {"batch": 0},
        {"weight_bytes": 0},
        {"kv_bytes": -1},
        {"activation_bytes": float("nan")},
        {"weight_bytes": float("inf")},
        {"logits": "some"},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}: expected"):
        step_calls(bundled("gemma-3-1b"), **{"tokens": 1, "context": 0, **wrong})


@given(st.integers(1, 40), st.integers(0, 40), st.none() | st.integers(1, 20))
def test_visible_positions_are_those_of_a_mask(tokens: int, context: int, window: int | None) -> None:
    seen = [
        {key for key in range(query + 1) if window is None or query - key < window}
        for query in range(context, context + tokens)
    ]
    assert visible_pairs(tokens, context, window) == sum(map(len, seen))
    assert visible_positions(tokens, context, window) == len(set().union(*seen))


SMALL = {
    name: read_model(text)
    for name, text in {
        "gemma3": '{"model_type": "gemma3_text", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 7, '
        '"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24, "vocab_size": 300, "sliding_window": 5}',
        "qwen2_moe": '{"model_type": "qwen2_moe", "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 3, '
        '"num_attention_heads": 2, "vocab_size": 90, "num_experts": 12, "num_experts_per_tok": 3, '
        '"moe_intermediate_size": 8, "shared_expert_intermediate_size": 20, "mlp_only_layers": [1]}',
        "deepseek_v2": '{"model_type": "deepseek_v2", "hidden_size": 48, "intermediate_size": 64, "vocab_size": 77, '
        '"num_hidden_layers": 3, "num_attention_heads": 3, "q_lora_rank": null, "kv_lora_rank": 16, '
        '"qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8, "n_routed_experts": 6, "n_shared_experts": 2, '
        '"num_experts_per_tok": 2, "moe_intermediate_size": 12, "first_k_dense_replace": 1}',
    }.items()
}
STEPS = {"tokens": st.integers(2, 30), "context": st.integers(0, 50), "batch": st.integers(1, 4)}


def totals(calls: tuple[OperatorCall, ...]) -> tuple[int, int, int, int]:
    return (
        sum(call.flops for call in calls),
        sum(call.weight_bytes for call in calls),
        sum(call.read_bytes for call in calls),
        sum(call.written_bytes for call in calls),
    )


@pytest.mark.parametrize("family", SMALL)
@given(**STEPS)
def test_numbers_are_whole_and_grow_with_tokens_and_context(family: str, tokens: int, context: int, batch: int) -> None:
    model = SMALL[family]
    calls = step_calls(model, tokens=tokens, context=context, batch=batch)
    for call in calls:
        numbers = (call.flops, call.weight_bytes, call.read_bytes, call.written_bytes, *call.shape.values())
        assert all(type(number) is int and number >= 0 for number in numbers), call
        assert call.read_bytes > 0
        assert call.written_bytes > 0
    now = totals(calls)
    more_tokens = totals(step_calls(model, tokens=tokens + 1, context=context, batch=batch))
    more_context = totals(step_calls(model, tokens=tokens, context=context + 1, batch=batch))
    assert all(a <= b for a, b in zip(now, more_tokens, strict=True))
    assert all(a <= b for a, b in zip(now, more_context, strict=True))
    assert now[0] < more_tokens[0]
    assert now[2] < more_context[2]  # one layer at least sees all positions
    assert now[1] == more_context[1]


@pytest.mark.parametrize("family", SMALL)
@given(**STEPS)
def test_a_batch_does_the_work_of_its_sequences_with_weights_read_once(
    family: str, tokens: int, context: int, batch: int
) -> None:
    model = SMALL[family]
    single = step_calls(model, tokens=tokens, context=context)
    several = step_calls(model, tokens=tokens, context=context, batch=batch)
    assert sum(call.flops for call in several) == batch * sum(call.flops for call in single)
    for one_sequence, all_sequences in zip(single, several, strict=True):
        assert one_sequence.role == all_sequences.role
        if one_sequence.op in ("matmul", "rms_norm"):
            assert one_sequence.weight_bytes == all_sequences.weight_bytes


@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 30))
def test_a_prefill_in_two_parts_attends_as_one(first: int, second: int, context: int) -> None:
    model = SMALL["gemma3"]

    def attended(tokens: int, context: int) -> int:
        return sum(call.flops for call in step_calls(model, tokens=tokens, context=context) if call.op == "attention")

    assert attended(first, context) + attended(second, context + first) == attended(first + second, context)


@given(st.integers(1, 300), st.integers(1, 64), st.integers(1, 64))
def test_experts_touched_lie_between_those_of_one_token_and_all(rows: int, experts: int, each: int) -> None:
    each = min(each, experts)
    touched = expected_experts(rows, experts, each)
    assert each <= touched <= min(experts, rows * each)
    assert touched <= expected_experts(rows + 1, experts, each)
