"""What a configuration says of a model's numbers: rope, windows, scales; and what is refused."""

from typing import Any

import pytest

from inferometer.architectures.config import config_of
from inferometer.engines.bundled import require_config
from inferometer.engines.webgpu.model_spec import Experts, ModelSpec
from inferometer.engines.webgpu.weights.config import FAMILIES, read_spec
from inferometer.errors import FormatError, InferometerError, InputError, UnknownName

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 512,
}


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}


def fields_of(name: str, **changes: object) -> dict[str, Any]:
    """A bundled configuration with changes; one to `...` is left out."""
    fields = {**require_config(name).config, **changes}
    return {key: value for key, value in fields.items() if value is not ...}


def spec_of(name: str, **changes: object) -> ModelSpec:
    return read_spec(config_of(fields_of(name, **changes), where="here", name=name))


def test_gemma_3_is_read_whole() -> None:
    spec = spec_of("tiny-gemma3")
    assert (spec.name, spec.family, spec.vocab, spec.hidden, spec.layers) == ("tiny-gemma3", "gemma3", 320, 64, 3)
    assert (spec.heads, spec.kv_heads, spec.head_dim, spec.intermediate) == (4, 2, 32, 160)
    assert (spec.eps, spec.norm_offset, spec.sandwich, spec.head_norms, spec.qkv_bias) == (1e-6, 1.0, True, True, False)
    assert (spec.activation, spec.embed_scale, spec.attention_scale) == ("gelu_tanh", 8.0, 32**-0.5)
    assert (spec.tied, spec.context_limit) == (True, 4096)
    assert (spec.windows, spec.rope_of) == ((16, 16, None), (1, 1, 0))
    full, sliding = spec.inverse_frequencies
    assert (len(full), full[0], sliding[0]) == (16, 1.0, 1.0)
    assert full[1] == pytest.approx(1e6 ** (-1 / 16), rel=1e-6)
    assert sliding[1] == pytest.approx(1e4 ** (-1 / 16), rel=1e-6)


def test_gemma_2_is_read_whole() -> None:
    spec = spec_of("tiny-gemma2")
    assert (spec.family, spec.norm_offset, spec.sandwich, spec.head_norms) == ("gemma2", 1.0, True, False)
    assert (spec.activation, spec.embed_scale, spec.tied) == ("gelu_tanh", 8.0, True)
    assert (spec.attention_scale, spec.attention_softcap, spec.logit_softcap) == (32**-0.5, 5.0, 10.0)
    assert (spec.windows, spec.rope_of, len(spec.inverse_frequencies)) == ((16, None, 16), (0, 0, 0), 1)
    left = ("attn_logit_softcapping", "final_logit_softcapping", "query_pre_attn_scalar", "sliding_window")
    plain = spec_of("tiny-gemma2", **dict.fromkeys(left, ...))
    assert (plain.attention_scale, plain.attention_softcap, plain.logit_softcap) == (256**-0.5, 50.0, 30.0)
    assert plain.windows == (4096, None, 4096)
    none = spec_of("tiny-gemma2", attn_logit_softcapping=None, final_logit_softcapping=None)
    assert (none.attention_softcap, none.logit_softcap) == (None, None)
    yarn = spec_of("tiny-gemma2", rope_scaling=YARN)
    assert yarn.attention_scale > plain.attention_scale  # of every layer, as it has one rope


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("tiny-llama", ("llama", False, False, False, "silu", 16**-0.5)),
        ("tiny-qwen2", ("qwen2", False, True, True, "silu", 16**-0.5)),
        ("tiny-qwen3", ("qwen3", True, False, True, "silu", 32**-0.5)),
    ],
)
def test_the_other_families_have_no_offset_sandwich_or_scale(name: str, plain: tuple[object, ...]) -> None:
    spec = spec_of(name)
    assert plain == (spec.family, spec.head_norms, spec.qkv_bias, spec.tied, spec.activation, spec.attention_scale)
    assert (spec.norm_offset, spec.sandwich, spec.embed_scale) == (0.0, False, 1.0)
    assert (spec.windows, spec.rope_of, len(spec.inverse_frequencies)) == ((None,) * 3, (0,) * 3, 1)


def test_mixtures_of_experts_are_read_whole() -> None:
    mixtral = spec_of("tiny-mixtral")
    assert mixtral.experts == Experts(layers=(0, 1, 2), count=4, each=2, size=96, renormalize=True)
    assert (mixtral.family, mixtral.intermediate, mixtral.head_norms, mixtral.qkv_bias) == ("mixtral", 0, False, False)
    qwen = spec_of("tiny-qwen-moe")
    assert qwen.experts == Experts(layers=(1, 2), count=6, each=2, size=48, renormalize=False, shared_size=80)
    assert (qwen.family, qwen.intermediate, qwen.head_norms, qwen.qkv_bias) == ("qwen2_moe", 160, False, True)
    shared = {"shared_expert_intermediate_size": ..., "norm_topk_prob": True, "head_dim": 32}
    newer = spec_of("tiny-qwen-moe", model_type="qwen3_moe", decoder_sparse_step=2, **shared)
    assert newer.experts == Experts(layers=(1,), count=6, each=2, size=48, renormalize=True)
    assert (newer.family, newer.head_norms, newer.qkv_bias) == ("qwen3_moe", True, False)
    left = spec_of("tiny-mixtral", rms_norm_eps=..., rope_theta=...)
    assert (left.eps, left.inverse_frequencies) == (1e-5, mixtral.inverse_frequencies)


def test_what_a_configuration_leaves_out_is_its_classs_default() -> None:
    left = dict.fromkeys(("rms_norm_eps", "rope_theta", "tie_word_embeddings", "max_position_embeddings"), ...)
    llama = spec_of("tiny-llama", **left, rope_scaling=None)
    assert (llama.eps, llama.tied, llama.context_limit) == (1e-6, False, None)
    assert llama.inverse_frequencies[0][1] == pytest.approx(1e4 ** (-1 / 8), rel=1e-6)
    more = ("rope_local_base_freq", "query_pre_attn_scalar", "hidden_activation", "sliding_window")
    gemma = spec_of("tiny-gemma3", **left, **dict.fromkeys(more, ...))
    assert (gemma.tied, gemma.attention_scale, gemma.activation) == (True, 256**-0.5, "gelu_tanh")
    assert gemma.windows == (4096, 4096, None)
    assert gemma.inverse_frequencies == spec_of("tiny-gemma3").inverse_frequencies


def test_qwens_window_begins_where_it_says() -> None:
    window = {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}
    assert spec_of("tiny-qwen2", **window).windows == (None, 8, 8)
    types = ["sliding_attention", "full_attention", "sliding_attention"]
    assert spec_of("tiny-qwen3", **window, layer_types=types).windows == (8, None, 8)


def test_a_gemma_of_one_kind_of_layers_has_one_rope() -> None:
    spec = spec_of("tiny-gemma3", layer_types=["sliding_attention"] * 3)
    assert (spec.windows, spec.rope_of, len(spec.inverse_frequencies)) == ((16, 16, 16), (0, 0, 0), 1)
    assert spec.inverse_frequencies[0] == spec_of("tiny-gemma3").inverse_frequencies[1]


def test_the_text_part_of_a_model_that_sees_is_read() -> None:
    text = fields_of("tiny-gemma3", model_type="gemma3_text", tie_word_embeddings=...)
    whole = {"model_type": "gemma3", "text_config": text, "vision_config": {"hidden_size": 9}}
    spec = read_spec(config_of(whole, where="here", name="seeing"))
    assert (spec.family, spec.hidden, spec.tied, spec.windows) == ("gemma3", 64, True, (16, 16, None))


GEMMA_5 = {
    "rope_theta": ...,
    "rope_local_base_freq": ...,
    "rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 5e5},
        "sliding_attention": {"rope_type": "default", "rope_theta": 2e4},
    },
}


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("tiny-llama", {}),
        ("tiny-llama", {"rope_scaling": None}),
        ("tiny-llama", {"rope_scaling": {"type": "linear", "factor": 2.5}}),
        ("tiny-llama", {"rope_scaling": {"rope_type": "default"}}),
        ("tiny-llama", {"rope_scaling": YARN}),
        ("tiny-llama", {"rope_scaling": {**YARN, "truncate": False, "beta_fast": 16, "beta_slow": 2}, "head_dim": 64}),
        ("tiny-llama", {"rope_scaling": {**YARN, "mscale": 1.0, "mscale_all_dim": 0.7}, "head_dim": 128}),
        ("tiny-qwen3", {"rope_scaling": {**YARN, "attention_factor": 1.25}}),
        ("tiny-llama", {"rope_scaling": ..., "rope_theta": ..., "rope_parameters": {**LLAMA3, "rope_theta": 3e5}}),
        ("tiny-llama", {"rope_scaling": {**LLAMA3, "factor": 32.0}, "head_dim": 128}),
        ("tiny-gemma2", {}),
        ("tiny-gemma2", {"rope_scaling": YARN}),
        ("tiny-qwen2", {}),
        ("tiny-qwen3", {"rope_theta": ..., "rope_parameters": {"rope_type": "default", "rope_theta": 1e5}}),
        ("tiny-gemma3", {}),
        ("tiny-gemma3", {"rope_scaling": {"factor": 8.0, "rope_type": "linear"}}),
        ("tiny-gemma3", GEMMA_5),
        ("tiny-gemma3", {"head_dim": 256}),
    ],
)
def test_frequencies_are_those_of_transformers(name: str, changes: dict[str, Any]) -> None:
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from inferometer.engines.hf.loading import build_random

    if "rope_parameters" in changes:
        _require_transformers_5()
    spec = spec_of(name, **changes)
    model = build_random(name, fields_of(name, **changes), 0, device="cpu", dtype="float32").model
    modules = [model.rotary_emb, getattr(model, "rotary_emb_local", None)]
    buffers = {key: value for each in modules if each is not None for key, value in each.named_buffers(key_of(each))}
    found = [value for key, value in sorted(buffers.items()) if "original" not in key]
    plain = spec_of(name, **{**changes, "rope_scaling": None}) if changes.get("rope_scaling") else spec
    factor = getattr(model.rotary_emb, "attention_scaling", 1.0)
    assert spec.attention_scale == pytest.approx(plain.attention_scale * factor**2)
    assert len(found) == len(spec.inverse_frequencies)
    for wanted, ours in zip(found, spec.inverse_frequencies, strict=True):
        error = (wanted / torch.tensor(ours) - 1).abs().max()
        assert error < 2e-6, error  # float32; llama3's blend takes near numbers from each other


def key_of(module: object) -> str:
    return type(module).__name__


def _require_transformers_5() -> None:
    import transformers

    if int(transformers.__version__.split(".")[0]) < 5:
        pytest.skip("transformers before 5 has no rope_parameters")


@pytest.mark.parametrize(
    ("name", "changes", "kind", "words"),
    [
        ("tiny-llama", {"model_type": "mamba"}, UnknownName, 'unknown architecture (model_type) "mamba"'),
        ("tiny-llama", {"model_type": "mistral"}, UnknownName, 'unknown architecture (model_type) "mistral"'),
        ("tiny-llama", {"model_type": ...}, FormatError, "here: model_type: expected text, found nothing"),
        ("tiny-llama", {"hidden_act": "relu"}, InputError, "here: hidden_act: expected one of silu, swish, gelu"),
        ("tiny-gemma3", {"attention_bias": True}, InputError, "here: attention_bias: expected none, found True"),
        (
            "tiny-gemma3",
            {"attn_logit_softcapping": 50.0},
            InputError,
            "attn_logit_softcapping: expected none, found 50",
        ),
        (
            "tiny-gemma3",
            {"final_logit_softcapping": 30.0},
            InputError,
            "final_logit_softcapping: expected none, found 30",
        ),
        (
            "tiny-gemma3",
            {"use_bidirectional_attention": True},
            InputError,
            "use_bidirectional_attention: expected none",
        ),
        ("tiny-gemma2", {"attention_bias": True}, InputError, "here: attention_bias: expected none, found True"),
        ("tiny-gemma2", {"sliding_window": None}, FormatError, "sliding_window: expected a whole number from 1"),
        ("tiny-gemma2", {"attn_logit_softcapping": -1}, FormatError, "attn_logit_softcapping: expected a number above"),
        ("tiny-gemma3", {"sliding_window": None}, FormatError, "sliding_window: expected a whole number from 1"),
        ("tiny-gemma3", {"layer_types": ["chunked"] * 3}, FormatError, "layer_types[0]: expected "),
        ("tiny-llama", {"quantization_config": {"bits": 4}}, InputError, "quantization_config: expected no quantized"),
        ("tiny-llama", {"head_dim": 15}, InputError, "head_dim: expected an even number, for rope, found 15"),
        ("tiny-llama", {"partial_rotary_factor": 0.5}, InputError, "partial_rotary_factor: expected 1, found 0.5"),
        (
            "tiny-llama",
            {"vocab_size": ...},
            FormatError,
            "here: vocab_size: expected a whole number from 1, found nothing",
        ),
        ("tiny-llama", {"vocab_size": 0}, FormatError, "here: vocab_size: expected"),
        ("tiny-llama", {"intermediate_size": None}, FormatError, "here: intermediate_size: expected"),
        (
            "tiny-llama",
            {"rms_norm_eps": "small"},
            FormatError,
            'rms_norm_eps: expected a number above 0, found "small"',
        ),
        ("tiny-llama", {"rope_theta": -1}, FormatError, "rope_theta: expected a number above 0, found -1"),
        (
            "tiny-llama",
            {"rope_scaling": {"rope_type": "longrope", "factor": 4}},
            InputError,
            "expected one of default, linear",
        ),
        ("tiny-llama", {"rope_scaling": {**YARN, "factor": 0}}, FormatError, "rope: factor: expected a number above 0"),
        (
            "tiny-llama",
            {"rope_scaling": YARN, "rope_theta": 1.0},
            FormatError,
            "rope: rope_theta: expected a number ab",
        ),
        ("tiny-gemma3", {"rope_scaling": YARN}, InputError, "rope_scaling: expected none that scales attention"),
        ("tiny-llama", {"rope_scaling": {"type": "dynamic", "factor": 2}}, InputError, "yarn, found dynamic"),
        ("tiny-llama", {"rope_scaling": {"type": "linear"}}, FormatError, "rope: factor: expected a number above 0"),
        ("tiny-llama", {"rope_scaling": "yes"}, FormatError, 'rope_scaling: expected an object, found "yes"'),
        (
            "tiny-llama",
            {"rope_scaling": {**LLAMA3, "high_freq_factor": 1.0}},
            FormatError,
            "expected more than low_freq",
        ),
        ("tiny-llama", {"rope_scaling": ..., "rope_parameters": {"full_attention": {}}}, InputError, "one for all"),
        ("tiny-gemma3", {"rope_parameters": {"rope_theta": 5.0}}, InputError, "full_attention and sliding_attention"),
    ],
)
def test_what_the_engine_cant_compute_is_refused(
    name: str, changes: dict[str, Any], kind: type[InferometerError], words: str
) -> None:
    with pytest.raises(kind) as error:
        spec_of(name, **changes)
    assert type(error.value) is kind
    assert words in str(error.value)


def test_an_unknown_family_is_told_of_the_known_ones() -> None:
    with pytest.raises(UnknownName) as error:
        spec_of("tiny-llama", model_type="mamba")
    assert set(error.value.known) == set(FAMILIES)
