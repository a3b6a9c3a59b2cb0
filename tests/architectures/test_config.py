"""Configurations: what is read of them, from where, and what is reported of those that can't be used."""

import json
from pathlib import Path
from typing import Any

import pytest

from inferometer import registry
from inferometer.architectures import count_parameters, read_model, step_calls
from inferometer.architectures.architecture import Architecture
from inferometer.errors import FormatError, InputError, UnknownName

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
}


def config(base: dict[str, Any] = LLAMA, **fields: Any) -> str:
    return json.dumps({**base, **fields})


def test_every_family_says_which_configurations_are_its_own() -> None:
    families: dict[str, Architecture] = registry.collect("inferometer.architectures", "ARCHITECTURE")
    assert set(families) == {
        *("deepseek", "gemma2", "gemma3", "llama", "mixtral", "qwen2", "qwen3", "qwen_moe"),
    }
    types = [kind for family in families.values() for kind in family.model_types]
    assert len(types) == len(set(types))


def test_fields_that_families_leave_out_have_their_meaning() -> None:
    model = read_model(config(num_key_value_heads=None, torch_dtype="bfloat16"))
    assert (model.head_dim, model.kv_heads, model.activation, model.dtype) == (16, 4, "silu", "bfloat16")
    assert not model.tied_embeddings
    assert model.defaulted == ("num_key_value_heads",)
    assert read_model(config(dtype="float16", torch_dtype="bfloat16")).dtype == "float16"
    assert read_model(config()).dtype is None


def test_biases_are_read_where_a_family_has_them() -> None:
    model = read_model(config(attention_bias=True, mlp_bias=True))
    assert (model.qkv_bias, model.o_bias, model.ffn_bias) == (True, True, True)
    plain, biased = (count_parameters(read_model(config(attention_bias=on, mlp_bias=on))) for on in (False, True))
    assert biased - plain == 2 * (64 + 32 + 32 + 64 + 128 + 128 + 64)


def test_the_language_model_of_a_multimodal_configuration_is_read() -> None:
    text = {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34}
    outer = {"model_type": "gemma3", "torch_dtype": "bfloat16", "vision_config": {"hidden_size": 1152}}
    model = read_model(json.dumps({**outer, "text_config": {**text, "sliding_window": 1024}}))
    assert (model.architecture, model.hidden, model.dtype) == ("gemma3_text", 2560, "bfloat16")
    assert (model.heads, model.kv_heads, model.head_dim, model.vocab) == (8, 4, 256, 262_208)
    assert set(model.defaulted) == {"num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size"}
    assert count_parameters(model) == 3_880_263_168  # the language model of Gemma 3 4B
    with pytest.raises(FormatError, match=r"text_config\.hidden_size: expected a whole number from 1, found nothing"):
        read_model(json.dumps({**outer, "text_config": {"model_type": "gemma3_text"}}))


@pytest.mark.parametrize(
    ("fields", "window", "layers"),
    [
        ({"model_type": "llama", "sliding_window": 8}, None, ()),
        ({"model_type": "mistral", "sliding_window": 8}, 8, (0, 1)),
        ({"model_type": "mistral", "sliding_window": None}, None, ()),
        (
            {"model_type": "mistral", "sliding_window": 8, "layer_types": ["full_attention", "sliding_attention"]},
            8,
            (1,),
        ),
        ({"model_type": "qwen2", "sliding_window": 8, "use_sliding_window": False}, None, ()),
        ({"model_type": "qwen2", "sliding_window": 8, "use_sliding_window": True, "max_window_layers": 1}, 8, (1,)),
        ({"model_type": "gemma2", "sliding_window": 8}, 8, (0,)),
        ({"model_type": "gemma2"}, 4096, (0,)),
        ({"model_type": "gemma2", "sliding_window": None}, None, ()),
        ({"model_type": "gemma3_text", "sliding_window": 8, "sliding_window_pattern": 2}, 8, (0,)),
        ({"model_type": "gemma3_text", "sliding_window": 8, "_sliding_window_pattern": 2}, 8, (0,)),
        ({"model_type": "gemma3_text", "sliding_window": 8}, 8, (0, 1)),
    ],
    ids=range(12),
)
def test_windows_are_where_the_family_has_them(
    fields: dict[str, Any], window: int | None, layers: tuple[int, ...]
) -> None:
    model = read_model(config(**fields))
    assert (model.sliding_window, model.sliding_layers) == (window, layers)


MOE = {
    **LLAMA,
    "model_type": "qwen3_moe",
    "num_hidden_layers": 6,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
}


def test_experts_are_in_the_layers_that_the_configuration_says() -> None:
    model = read_model(config(MOE, decoder_sparse_step=2, mlp_only_layers=[3]))
    assert model.mixture is not None
    assert model.mixture.layers == (1, 5)
    roles = {call.layer: call.role for call in step_calls(model, tokens=1, context=0) if call.role.endswith("_down")}
    assert [roles[layer] for layer in range(6)] == [
        *("ffn_down", "expert_down", "ffn_down", "ffn_down", "ffn_down", "expert_down"),
    ]


def test_qwen_2_experts_have_a_shared_one_with_a_gate() -> None:
    model = read_model(config(MOE, model_type="qwen2_moe", shared_expert_intermediate_size=40))
    assert model.mixture is not None
    assert (model.mixture.shared_width, model.mixture.shared_gate, model.qkv_bias) == (40, True, True)
    roles = [call.role for call in step_calls(model, tokens=1, context=0) if call.layer == 0]
    assert roles[roles.index("expert_combine") + 1 :] == [
        *("shared_expert_gate", "shared_expert_up", "shared_expert_activation", "shared_expert_down"),
        *("shared_expert_router", "shared_expert_scale", "shared_expert_add", "ffn_residual"),
    ]


def test_deepseek_without_compressed_queries_or_experts_is_read() -> None:
    latent: dict[str, Any] = {"kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8}
    model = read_model(config(model_type="deepseek_v2", q_lora_rank=None, **latent))
    assert model.latent is not None
    assert (model.latent.query_rank, model.head_dim, model.mixture) == (None, 12, None)
    roles = [call.role for call in step_calls(model, tokens=1, context=0) if call.layer == 1]
    assert "q_proj" in roles
    assert "q_a_proj" not in roles


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"config: expected JSON: "),
        ('{"model_type": 3}', r"config: model_type: expected text, found 3"),
        ("{}", r"config: model_type: expected text, found nothing"),
        (config(hidden_size="64"), r'hidden_size: expected a whole number from 1 to 4194304, found "64"'),
        (config(hidden_size=64.0), r"hidden_size: expected a whole number .*, found 64\.0"),
        (config(num_hidden_layers=10**12), r"num_hidden_layers: expected a whole number from 1 to 4096, found 10+"),
        (config(hidden_size=10**30), r"hidden_size: expected a whole number .*, found 10+"),
        (config(num_hidden_layers=True), r"num_hidden_layers: .* found true"),
        (config(vocab_size=None), r"vocab_size: expected a whole number from 1, found nothing"),
        (config(vocab_size=0), r"vocab_size: .* found 0"),
        (
            config(num_key_value_heads=3),
            r"num_key_value_heads: expected a divisor of num_attention_heads \(4\), found 3",
        ),
        (config(hidden_size=66), r"head_dim: expected it given, since 4 heads don't divide 66, found nothing"),
        (config(tie_word_embeddings="no"), r'tie_word_embeddings: expected true or false, found "no"'),
        (config(torch_dtype=16), r"torch_dtype: expected text, found 16"),
        (
            config(model_type="gemma2", attn_logit_softcapping="x"),
            r'attn_logit_softcapping: expected a number or null, found "x"',
        ),
        (
            config(model_type="gemma2", layer_types=["full_attention"]),
            r"layer_types: expected a list of 2, one per layer",
        ),
        (
            config(model_type="mistral", layer_types=["a", "b"]),
            r'layer_types\[0\]: expected "full_attention" or .*, found "a"',
        ),
        (config(MOE, num_experts_per_tok=9), r"num_experts_per_tok: expected a whole number from 1 to 8, found 9"),
        (config(MOE, mlp_only_layers=[-1]), r"mlp_only_layers: expected a list of layers, found \[-1\]"),
        (config(MOE, use_sliding_window=True), r"layer_types: expected it given where use_sliding_window is true"),
        (config(hidden_size=list(range(99))), r"found \[0,1,2[0-9,]{0,60}\.\.\."),
        ('{"a":' + "[" * 100_000, r"config: expected (a configuration, found )?JSON"),
    ],
    ids=range(22),
)
def test_a_configuration_that_cannot_be_used_says_where(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        read_model(text)
    assert "config.json" in (caught.value.hint or "")


def test_an_unknown_architecture_lists_the_known_ones() -> None:
    with pytest.raises(UnknownName, match='unknown model_type "lama"') as caught:
        read_model(config(model_type="lama"))
    assert caught.value.known[0] == "llama"
    assert "deepseek_v3" in caught.value.known


def test_a_file_or_its_folder_is_read_and_gives_the_name(tmp_path: Path) -> None:
    folder = tmp_path / "My-Model"
    folder.mkdir()
    (folder / "config.json").write_text(config(), "utf-8")
    assert read_model(folder) == read_model(folder / "config.json") == read_model(str(folder))
    assert (read_model(folder).name, read_model(folder).source) == ("My-Model", str(folder / "config.json"))
    other = tmp_path / "tiny.json"
    other.write_text(config(_name_or_path="org/other"), "utf-8")
    assert read_model(other).name == "tiny"
    assert read_model(other.read_text("utf-8")).name == "other"
    cached = tmp_path / "models--google--gemma-3-1b-it" / "snapshots" / "0123abcd"
    cached.mkdir(parents=True)
    (cached / "config.json").write_text(config(), "utf-8")
    assert read_model(cached).name == "gemma-3-1b-it"


def test_what_is_no_file_or_too_large_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path, "a\0b", "x" * 5000):
        with pytest.raises(InputError) as caught:
            read_model(path)
        assert caught.value.hint is not None
    large = tmp_path / "large.json"
    large.write_bytes(b'{"a": "' + b"x" * 2**22 + b'"}')
    with pytest.raises(InputError, match="expected at most 4,194,304 bytes"):
        read_model(large)
    for data in (b"[1]", b'{"a": "\xff"}', b"", b"\x00"):
        large.write_bytes(data)
        with pytest.raises(FormatError, match=r"large\.json: expected"):
            read_model(large)
