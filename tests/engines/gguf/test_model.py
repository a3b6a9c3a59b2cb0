"""Models in GGUF files: the configuration and the weights that transformers would have, and files that hold none."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engines.gguf.model_files import Raw, gguf_bytes, in_pairs, save_gguf, tiny_model
from tests.engines.webgpu.model_folders import bfloat16, random_tensors

from inferometer.engines.bundled import require_config
from inferometer.engines.gguf.model import GgufModel, find_gguf, open_gguf
from inferometer.errors import FormatError, InferometerError, InputError, UnknownName

TINY = ("tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-gemma3")
TABLE = {"model.embed_tokens.weight": np.zeros((320, 64), np.float32)}


def saved(folder: Path, name: str, **options: Any) -> GgufModel:
    return open_gguf(save_gguf(folder / "tiny.gguf", name, **options))


def with_tensors(folder: Path, name: str, change: dict[str, Any], **more: Any) -> GgufModel:
    """A bundled model with other tensors; None takes one away."""
    metadata, tensors = tiny_model(name)
    whole = {key: tensor for key, tensor in {**tensors, **change}.items() if tensor is not None}
    (folder / "a.gguf").write_bytes(gguf_bytes({**metadata, **more}, whole))
    return open_gguf(folder / "a.gguf")


@pytest.mark.parametrize("name", [*TINY, "tiny-gemma2"])
def test_fields_are_those_of_the_configuration(tmp_path: Path, name: str) -> None:
    weights = TABLE if name == "tiny-gemma2" else None
    found, wanted = saved(tmp_path, name, weights=weights).fields, require_config(name).config
    known = {field: value for field, value in wanted.items() if field in found and not field.endswith("_token_id")}
    assert {field: found[field] for field in known} == known
    assert set(wanted) - set(known) <= {"attention_dropout", "mlp_bias", "bos_token_id", "eos_token_id", "pad_token_id",
                                        "use_sliding_window"}  # fmt: skip


@pytest.mark.parametrize("name", TINY)
def test_weights_are_those_of_the_model_by_its_names(tmp_path: Path, name: str) -> None:
    model, wanted = saved(tmp_path, name), random_tensors(name)
    assert model.tensors.keys() == wanted.keys()
    for module, numbers in wanted.items():
        found = model.floats(module)
        assert found.dtype == np.float32
        if "gemma" in name and module.endswith("norm.weight"):  # 1 was added in float32
            assert np.abs(found - numbers).max() < 2e-7
        else:
            assert np.array_equal(found, numbers)


def test_rows_of_paired_heads_are_those_of_the_whole(tmp_path: Path) -> None:
    model = saved(tmp_path, "tiny-llama", half=True)
    name = "model.layers.1.self_attn.q_proj.weight"
    whole, rows = model.floats(name), model.tensors[name].shape[0]
    for first, last in ((0, 1), (5, 6), (3, 40), (15, 17), (rows - 1, rows), (8, 8), (0, rows)):
        assert np.array_equal(model.floats(name, first, last), whole[first:last])
        assert model.blocks(name, first, last).shape == (last - first, 2 * whole.shape[1])


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "BF16", "F16"])
def test_quantized_rows_in_pairs_are_rows_of_what_was_quantized(tmp_path: Path, kind: str) -> None:
    gguf: Any = pytest.importorskip("gguf")
    type_ = gguf.GGMLQuantizationType[kind]
    wanted = random_tensors("tiny-llama")["model.layers.0.self_attn.k_proj.weight"]
    _, tensors = tiny_model("tiny-llama")
    blocks = gguf.quantize(tensors["blk.0.attn_k.weight"], type_)
    model = with_tensors(tmp_path, "tiny-llama",
                         {"blk.0.attn_k.weight": Raw((type_.value, wanted.shape, blocks.tobytes()))})  # fmt: skip
    name = "model.layers.0.self_attn.k_proj.weight"
    assert model.tensors[name].dtype == kind
    exact = gguf.dequantize(gguf.quantize(wanted, type_), type_).astype(np.float32)  # rows apart, so in any order
    assert np.array_equal(model.floats(name, 3, 21), exact[3:21])
    assert np.array_equal(model.blocks(name), gguf.quantize(wanted, type_).view(np.uint8))
    assert np.abs(exact - wanted).max() < 0.2 * np.abs(wanted).max()


def test_numbers_of_blocks_are_those_of_the_formats(tmp_path: Path) -> None:
    """One block each, by ggml's definition in plain Python: half-precision scales, then packed whole numbers."""
    pytest.importorskip("gguf")
    rng = np.random.default_rng(1)
    half = np.array([0.5, -0.25], np.float16)
    packed = rng.integers(0, 256, 16, np.uint8)
    nibbles = [*(int(each) & 15 for each in packed), *(int(each) >> 4 for each in packed)]
    whole = rng.integers(-128, 128, 32).astype(np.int8)
    cases = {
        2: (half[:1].tobytes() + packed.tobytes(), [0.5 * (n - 8) for n in nibbles]),
        3: (half.tobytes() + packed.tobytes(), [0.5 * n - 0.25 for n in nibbles]),
        8: (half[:1].tobytes() + whole.tobytes(), [0.5 * int(n) for n in whole]),
    }
    for kind, (data, wanted) in cases.items():
        name = "output.weight"
        model = with_tensors(tmp_path, "tiny-llama", {name: Raw((kind, (1, 32), data))})
        assert model.floats("lm_head.weight").tolist() == [wanted]


def test_bfloat16_is_widened(tmp_path: Path) -> None:
    model = with_tensors(tmp_path, "tiny-llama", {"output.weight": bfloat16([[1.5, -2.0]])})
    assert model.floats("lm_head.weight").tolist() == [[1.5, -2.0]]


def test_biases_of_paired_heads_go_with_their_rows(tmp_path: Path) -> None:
    bias = np.arange(64, dtype=np.float32)
    model = with_tensors(tmp_path, "tiny-llama", {"blk.0.attn_q.bias": in_pairs(bias, 4)})
    assert model.fields["attention_bias"] is True
    assert model.floats("model.layers.0.self_attn.q_proj.bias").tolist() == bias.tolist()


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        ({"general.architecture": None}, FormatError, "general.architecture: expected text, found nothing"),
        ({"general.architecture": 3}, FormatError, "general.architecture: expected text, found 3"),
        ({"general.architecture": "qwen"}, UnknownName, 'unknown architecture in .*general.architecture.* "qwen"'),
        ({"llama.expert_count": 8}, InputError, "llama.expert_count: expected none, found 8"),
        ({"split.count": 3}, InputError, "expected a whole model, found one of 3 parts"),
        ({"llama.block_count": None}, FormatError, "llama.block_count: expected a whole number from 0, found nothing"),
        ({"llama.block_count": "9"}, FormatError, "llama.block_count: expected a whole number from 0, found '9'"),
        ({"llama.feed_forward_length": [160, 160]}, FormatError, "found 2 numbers"),
        ({"llama.attention.head_count": 0}, FormatError, "head_count: expected a whole number from 1, found 0"),
        ({"llama.attention.layer_norm_rms_epsilon": float("nan")}, FormatError, "expected a number above 0, found nan"),
        ({"llama.attention.key_length": 15}, FormatError, "key_length: expected an even number"),
        ({"llama.attention.value_length": 8}, InputError, "value_length: expected the 16 numbers of a key, found 8"),
        ({"llama.rope.dimension_count": 8}, InputError, "dimension_count: expected the 16 numbers of a key, found 8"),
        ({"llama.attention.sliding_window": 4_096}, InputError, "sliding_window: expected none, found 4096"),
        ({"llama.rope.scaling.type": "yarn"}, InputError,
         r"scaling.type: expected none next to rope_freqs\.weight, found yarn"),
        ({"llama.rope.scaling.factor": 2.0}, InputError, r"expected none next to rope_freqs\.weight, found linear"),
        ({"llama.rope.scaling.original_context_length": 100}, InputError, "expected the factors of Llama 3.1's rope"),
    ],
)  # fmt: skip
def test_metadata_that_is_wrong_names_its_key(
    tmp_path: Path, more: dict[str, Any], error: type[InferometerError], words: str
) -> None:
    with pytest.raises(error, match=words):
        saved(tmp_path, "tiny-llama", more=more)


@pytest.mark.parametrize("factors", [[1.0] * 7, [0.0] * 8, [float("nan")] * 8, [float("inf")] * 8, [2.0] * 8])
def test_factors_of_another_rope_are_refused(tmp_path: Path, factors: list[float]) -> None:
    with pytest.raises(InputError, match=r"expected the factors of Llama 3\.1's rope, found others"):
        with_tensors(tmp_path, "tiny-llama", {"rope_freqs.weight": np.array(factors, np.float32)})


def test_no_table_of_tokens_is_told(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"token_embd\.weight: expected the table of tokens, found nothing"):
        with_tensors(tmp_path, "tiny-llama", {"token_embd.weight": None})


def test_rope_of_one_factor_is_linear(tmp_path: Path) -> None:
    more = {"qwen3.rope.scaling.type": "linear", "qwen3.rope.scaling.factor": 4.0}
    assert saved(tmp_path, "tiny-qwen3", more=more).fields["rope_scaling"] == {"rope_type": "linear", "factor": 4.0}


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({"factor": 2.0}, {"rope_type": "linear", "factor": 2.0}),
        ({"type": "none", "factor": 2.0}, None),
        ({"type": "yarn", "factor": 4.0, "original_context_length": 1024},
         {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}),
        ({"type": "yarn", "factor": 4.0, "yarn_beta_fast": 16.0, "yarn_beta_slow": 2.0, "yarn_ext_factor": 1.0},
         {"rope_type": "yarn", "factor": 4.0, "beta_fast": 16.0, "beta_slow": 2.0}),
        ({"type": "yarn", "factor": 4.0, "attn_factor": 0.5},
         {"rope_type": "yarn", "factor": 4.0, "attention_factor": pytest.approx(0.5 + 0.05 * np.log(4))}),
        ({"type": "yarn", "factor": 0.5, "yarn_attn_factor": 0.75, "attn_factor": 2.0},
         {"rope_type": "yarn", "factor": 0.5, "attention_factor": 1.5}),
        ({"factor": 2.0, "attn_factor": 1.0}, {"rope_type": "linear", "factor": 2.0}),
    ],
)  # fmt: skip
def test_a_stretched_rope_is_that_of_the_keys(tmp_path: Path, more: dict[str, Any], wanted: object) -> None:
    model = saved(tmp_path, "tiny-qwen3", more={f"qwen3.rope.scaling.{key}": value for key, value in more.items()})
    assert model.fields["rope_scaling"] == wanted


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"type": "longrope"}, "scaling.type: expected none, linear, yarn, found longrope"),
        ({"type": "yarn", "factor": 4.0, "yarn_ext_factor": 0.5}, "yarn_ext_factor: expected 1, found 0.5"),
        ({"type": "yarn", "factor": 4.0, "yarn_log_multiplier": 0.1}, "yarn_log_multiplier: expected none, found 0.1"),
        ({"factor": 4.0, "attn_factor": 0.5}, "attn_factor: expected none without YaRN, found 0.5"),
        ({"type": "yarn"}, "scaling.factor: expected a number above 0, found nothing"),
        ({"type": "yarn", "factor": 4.0, "yarn_beta_fast": -1.0}, "yarn_beta_fast: expected a number above 0"),
    ],
)
def test_a_rope_that_transformers_has_not_is_refused(tmp_path: Path, more: dict[str, Any], words: str) -> None:
    with pytest.raises(InferometerError, match=words):
        saved(tmp_path, "tiny-qwen3", more={f"qwen3.rope.scaling.{key}": value for key, value in more.items()})


def test_the_largest_gemmas_scale_by_hidden_size_and_heads(tmp_path: Path) -> None:
    assert saved(tmp_path, "tiny-gemma3").fields["query_pre_attn_scalar"] == 32
    assert saved(tmp_path, "tiny-gemma3", more={"gemma3.block_count": 62}).fields["query_pre_attn_scalar"] == 16
    large = saved(tmp_path, "tiny-gemma2", more={"gemma2.block_count": 46}, weights=TABLE)
    assert large.fields["query_pre_attn_scalar"] == 16


def test_a_file_and_a_folder_with_one_are_found(tmp_path: Path) -> None:
    path = save_gguf(tmp_path / "tiny.gguf", "tiny-llama")
    assert find_gguf(str(path)) == find_gguf(str(tmp_path)) == path
    blob = path.rename(tmp_path / "sha256-0123")  # as caches of blobs call it
    assert find_gguf(str(blob)) == blob
    assert find_gguf(str(tmp_path)) is None
    (tmp_path / "other").write_text("{}")
    assert [find_gguf(each) for each in (str(tmp_path / "other"), "tiny-llama", "x" * 5_000, "a\0b")] == [None] * 4


def test_a_folder_with_safetensors_is_one_of_these(tmp_path: Path) -> None:
    save_gguf(tmp_path / "tiny.gguf", "tiny-llama")
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert find_gguf(str(tmp_path)) is None


def test_a_folder_with_several_asks_for_one(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        save_gguf(tmp_path / name, "tiny-llama")
    with pytest.raises(InputError, match=r"expected one GGUF file, found a\.gguf, b\.gguf"):
        find_gguf(str(tmp_path))
