"""Folders of models: the weights that were saved, under any of the names that files give them, and broken folders."""

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engines.webgpu.model_folders import bfloat16, random_tensors, save_model, write_safetensors

from inferometer.engines.webgpu.weights.checkpoint import FileCheckpoint, open_checkpoint
from inferometer.engines.webgpu.weights.slots import weight_slots
from inferometer.errors import FormatError, InferometerError, InputError, UnknownName

NAMES = ("tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-gemma3")


def opened(folder: Path) -> FileCheckpoint:
    found = open_checkpoint(str(folder))
    assert isinstance(found, FileCheckpoint)
    return found


def assert_same_weights(found: Any, wanted: Any) -> None:
    slots = weight_slots(wanted.spec)
    for name, slot in slots.items():
        read = "vector" if len(slot.shape) == 1 else "matrix"
        ours, theirs = getattr(found, read)(name), getattr(wanted, read)(name)
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs), name
    assert np.array_equal(found.matrix("lm_head"), wanted.matrix("lm_head"))


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_gives_the_weights_that_it_holds(tmp_path: Path, name: str) -> None:
    found, wanted = opened(save_model(tmp_path / "mine", name)), open_checkpoint(name)
    assert_same_weights(found, wanted)
    assert (found.source, found.spec.name, found.parameters) == (str(tmp_path / "mine"), "mine", wanted.parameters)
    assert found.config["model_type"] == wanted.config["model_type"]
    assert found.tokenizer.name == "bytes"
    assert f"{tmp_path / 'mine'} has no tokenizer.json: text goes in as bytes" in found.notes
    assert np.array_equal(found.matrix("embed", 3, 9), wanted.matrix("embed", 3, 9))


def test_bytes_that_rows_take_are_those_of_the_file(tmp_path: Path) -> None:
    tensors = random_tensors("tiny-llama")
    tensors["model.layers.0.self_attn.q_proj.weight"] = np.ones((64, 64), np.float16)
    found = opened(save_model(tmp_path, "tiny-llama", tensors))
    assert found.source_bytes("embed") == 320 * 64 * 4
    assert found.source_bytes("layers.0.q", 3, 5) == 2 * 64 * 2
    assert found.source_bytes("final_norm") == 64 * 4


def test_notes_tell_what_float16_lost_of_what_was_read(tmp_path: Path) -> None:
    tensors = random_tensors("tiny-llama")
    tensors["model.layers.0.self_attn.q_proj.weight"] = bfloat16(np.full((64, 64), 2.0**-30))
    found = opened(save_model(tmp_path, "tiny-llama", tensors))
    before = found.notes
    found.matrix("layers.0.q", 0, 2)
    assert set(found.notes) - set(before) == {
        "float16 holds 128 numbers of matrices but for 128 that become 0 and 0 that lose digits, all below 6.1e-05"
    }


def renamed(rename: Callable[[str], str], name: str = "tiny-gemma3") -> dict[str, Any]:
    return {rename(key): weight for key, weight in random_tensors(name).items()}


@pytest.mark.parametrize(
    ("front", "vision"),
    [
        ("language_model.model.", "vision_tower.vision_model.post_layernorm.weight"),
        ("model.language_model.", "model.multi_modal_projector.mm_soft_emb_norm.weight"),
    ],
)
def test_a_gemma_that_sees_is_read_without_its_eyes(tmp_path: Path, front: str, vision: str) -> None:
    tensors = {vision: np.ones((2, 3), np.int8), **renamed(lambda key: key.replace("model.", front, 1))}
    text = json.loads((save_model(tmp_path, "tiny-gemma3", tensors) / "config.json").read_text())
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "gemma3", "text_config": {**text, "model_type": "gemma3_text"}})
    )
    found = opened(tmp_path)
    assert_same_weights(found, open_checkpoint("tiny-gemma3"))
    assert found.notes[0] == f"{tmp_path}: only its text part is run: 1 tensors (6 numbers) aren't read"
    assert found.parameters == open_checkpoint("tiny-gemma3").parameters


def test_a_trunk_without_a_head_is_read_where_the_head_is_tied(tmp_path: Path) -> None:
    tensors = renamed(lambda key: key.removeprefix("model."))
    assert_same_weights(opened(save_model(tmp_path / "a", "tiny-gemma3", tensors)), open_checkpoint("tiny-gemma3"))
    untied = {key.removeprefix("model."): weight for key, weight in random_tensors("tiny-llama").items()}
    del untied["lm_head.weight"]
    with pytest.raises(InputError, match=r"1 missing \(lm_head\.weight\)"):
        opened(save_model(tmp_path / "b", "tiny-llama", untied))


def test_a_head_beside_the_table_it_is_tied_to_must_be_the_same(tmp_path: Path) -> None:
    tensors = random_tensors("tiny-qwen3")
    head = tensors["model.embed_tokens.weight"].copy()
    found = opened(save_model(tmp_path, "tiny-qwen3", {**tensors, "lm_head.weight": head}))
    assert found.notes[0].endswith("lm_head.weight is stored next to the table that it is tied to; it isn't read")
    head[-1, 5] += 1
    save_model(tmp_path, "tiny-qwen3", {**tensors, "lm_head.weight": head})
    with pytest.raises(InputError, match=r"lm_head\.weight: expected the embedding's numbers \(tie_word_embeddings\)"):
        opened(tmp_path)
    save_model(tmp_path, "tiny-qwen3", {**tensors, "lm_head.weight": head[:-1]})
    with pytest.raises(InputError, match="tie_word_embeddings"):
        opened(tmp_path)


def test_nothing_is_read_before_it_is_asked_for(tmp_path: Path) -> None:
    folder = save_model(tmp_path, "tiny-llama")
    found = opened(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError):
        found.matrix("embed")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("models") / "saved", "tiny-llama")


def change_config(folder: Path, **fields: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def change_weights(folder: Path, **changes: Any) -> None:
    """Tensors by their names with `__` for dots; None takes one away."""
    tensors = {**random_tensors("tiny-llama"), **{key.replace("__", "."): value for key, value in changes.items()}}
    write_safetensors(folder / "model.safetensors", {key: each for key, each in tensors.items() if each is not None})


def cut(folder: Path, end: int) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:end])


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (lambda folder: (folder / "config.json").unlink(), InputError, "config.json: No such file"),
        (lambda folder: (folder / "config.json").write_text("{"), FormatError, "config.json: expected JSON"),
        (
            lambda folder: change_config(folder, model_type="mamba"),
            UnknownName,
            'architecture (model_type) "mamba"\n  Known',
        ),
        (
            lambda folder: change_config(folder, hidden_act="relu"),
            InputError,
            "hidden_act: expected one of silu, swish",
        ),
        (
            lambda folder: change_config(folder, quantization_config={"quant_method": "awq"}),
            InputError,
            "expected plain weights, found quantized ones",
        ),
        (lambda folder: change_config(folder, num_hidden_layers=5), InputError, "18 missing (model.layers.3."),
        (lambda folder: change_config(folder, num_hidden_layers=2), InputError, "9 unexpected (model.layers.2."),
        (
            lambda folder: change_config(folder, hidden_size=128),
            InputError,
            "of another shape (lm_head.weight [320, 64] for [320, 128]",
        ),
        (lambda folder: (folder / "model.safetensors").unlink(), InputError, "*.safetensors, found none\n  Copy"),
        (
            lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"),
            InputError,
            "found pytorch_model.bin\n  Save the model again with save_pretrained",
        ),
        (lambda folder: change_weights(folder, model__norm__weight=None), InputError, "1 missing (model.norm.weight)"),
        (
            lambda folder: change_weights(folder, model__sinks=np.ones(2, np.float32)),
            InputError,
            "1 unexpected (model.sinks)",
        ),
        (
            lambda folder: change_weights(folder, vision_tower__w=np.ones(2, np.float32)),
            InputError,
            "1 unexpected (vision_tower.w)",  # only Gemma 3 sees
        ),
        (
            lambda folder: change_weights(folder, model__norm__weight=np.ones(63, np.float32)),
            InputError,
            "1 of another shape (model.norm.weight [63] for [64])",
        ),
        (lambda folder: cut(folder, -100), FormatError, "it is cut off"),
        (lambda folder: cut(folder, 50), FormatError, "expected a header of safetensors, found a length of"),
        (lambda folder: cut(folder, 0), FormatError, "expected a header of safetensors"),
        (
            lambda folder: (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "b"}}'),
            InputError,
            "names 1 files, 1 of them aren't there: b",
        ),
        (
            lambda folder: (folder / "model.safetensors.index.json").write_text("[]"),
            FormatError,
            "expected a JSON object with weight_map",
        ),
        (lambda folder: [path.unlink() for path in folder.iterdir()], InputError, "config.json: No such file"),
        (lambda folder: (folder / "generation_config.json").write_text("["), FormatError, "expected a JSON object"),
    ],
)
def test_a_broken_folder_says_what_is_wrong(
    saved: Path, tmp_path: Path, change: Callable[[Path], object], kind: type[InferometerError], words: str
) -> None:
    folder = Path(shutil.copytree(saved, tmp_path / "broken"))
    change(folder)
    with pytest.raises(kind) as error:
        opened(folder)
    assert type(error.value) is kind
    assert words in str(error.value)
    assert str(error.value).startswith((str(folder), "unknown architecture"))


def test_old_files_may_hold_what_follows_from_the_configuration(saved: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(saved, tmp_path / "old"))
    change_weights(folder, model__layers__0__self_attn__rotary_emb__inv_freq=np.ones(8, np.float32))
    assert_same_weights(opened(folder), open_checkpoint("tiny-llama"))


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("tiny-lama", UnknownName, "Known, nearest first: tiny-llama, "),
        ("x" * 5000, UnknownName, "Known, nearest first: "),
        ("meta-llama/Llama-3.2-1B", InputError, "there is no such folder\n  Nothing is downloaded"),
        (
            __file__,
            InputError,
            "expected a folder with config.json and safetensors, or a GGUF file, found another file",
        ),
    ],
)
def test_a_name_that_stands_for_nothing_is_refused(name: str, kind: type[InferometerError], words: str) -> None:
    with pytest.raises(kind) as error:
        open_checkpoint(name)
    assert type(error.value) is kind
    assert words in str(error.value)


def test_experts_are_read_whether_files_have_them_apart_or_joined(tmp_path: Path) -> None:
    wanted, apart = open_checkpoint("tiny-mixtral"), random_tensors("tiny-mixtral")
    slots = weight_slots(wanted.spec).values()
    joined = {name: tensor for name, tensor in apart.items() if ".block_sparse_moe." not in name}
    for slot in slots:
        if slot.joined is not None:
            whole = joined.setdefault(slot.joined.tensor, np.empty(slot.joined.shape, np.float32)).reshape(-1)
            whole[slot.joined.first : slot.joined.first + math.prod(slot.shape)] = apart[slot.tensor].reshape(-1)
    assert_same_weights(opened(save_model(tmp_path / "apart", "tiny-mixtral", apart)), wanted)
    assert_same_weights(opened(save_model(tmp_path / "joined", "tiny-mixtral", joined)), wanted)
    name = "model.layers.1.mlp.experts.down_proj"
    with pytest.raises(InputError, match=r"of another shape \(.*experts\.0\.w2\.weight \[3, 64, 96\] for \[64, 96\]"):
        opened(save_model(tmp_path / "cut", "tiny-mixtral", {**joined, name: joined[name][:3]}))
    del joined[name]
    with pytest.raises(InputError, match=r"4 missing \(model\.layers\.1\.block_sparse_moe\.experts\.0\.w2\.weight"):
        opened(save_model(tmp_path / "lacking", "tiny-mixtral", joined))


@pytest.mark.parametrize("name", NAMES)
def test_a_model_saved_by_transformers_in_shards_of_bfloat16_is_read(tmp_path: Path, name: str) -> None:
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from inferometer.engines.hf.model import load_model

    model = load_model(name, seed=3).model.to(torch.bfloat16)
    model.save_pretrained(tmp_path, max_shard_size="300KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    found, state = opened(tmp_path), model.state_dict()
    assert found.parameters == sum(weight.numel() for weight in model.parameters())
    for slot_name, slot in weight_slots(found.spec).items():
        wanted = state[slot.tensor].float().numpy()
        if wanted.ndim == 1:
            assert np.array_equal(found.vector(slot_name), wanted), slot_name
        else:
            assert np.array_equal(found.matrix(slot_name), wanted.astype(np.float16)), slot_name


def test_a_gemma_that_sees_as_transformers_saves_it_is_read(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    transformers: Any = pytest.importorskip("transformers")
    text = {**open_checkpoint("tiny-gemma3").config}
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.Gemma3Config(
        text_config=text, vision_config={**sizes, "image_size": 32, "patch_size": 8}, mm_tokens_per_image=16
    )
    model = transformers.Gemma3ForConditionalGeneration(config)
    model.save_pretrained(tmp_path)
    found, state = opened(tmp_path), model.state_dict()
    assert any("only its text part is run" in note for note in found.notes)
    table = next(weight for key, weight in state.items() if key.endswith("embed_tokens.weight"))
    assert np.array_equal(found.matrix("embed"), table.numpy().astype(np.float16))
    assert found.spec.windows == (16, 16, None)


@pytest.mark.parametrize("name", NAMES)
def test_a_pass_by_the_spec_gives_the_logits_of_transformers(name: str) -> None:
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from inferometer.engines.hf.model import load_model

    model = load_model(name, seed=2).model
    for weight in model.parameters():
        if weight.ndim == 2:
            weight.data = weight.data.half().float()
    tokens_T = np.random.default_rng(0).integers(0, 320, 40)  # past the window of 16
    with torch.no_grad():
        wanted_TV = model(torch.tensor(tokens_T)[None], use_cache=False).logits[0].numpy()
    found_TV = _logits(open_checkpoint(name, seed=2), tokens_T)
    assert np.abs(found_TV - wanted_TV).max() < 1e-4
    assert wanted_TV.std() > 2


def _logits(checkpoint: Any, tokens_T: Any) -> Any:
    """A whole pass in float64, from the spec's words alone. T tokens, V vocabulary, H heads, D head size."""
    spec = checkpoint.spec

    def norm(x: Any, name: str) -> Any:
        scale = spec.norm_offset + checkpoint.vector(name).astype(float)
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + spec.eps) * scale

    def linear(x: Any, name: str) -> Any:
        bias = checkpoint.vector(f"{name}_bias") if spec.qkv_bias and name[-2:] in (".q", ".k", ".v") else 0
        return x @ checkpoint.matrix(name).astype(float).T + bias

    def rotate(x_THD: Any, layer: int) -> Any:
        angles = np.outer(np.arange(len(tokens_T)), spec.inverse_frequencies[spec.rope_of[layer]])[:, None]
        first, second = np.split(x_THD, 2, axis=-1)
        turned = (first * np.cos(angles) - second * np.sin(angles), second * np.cos(angles) + first * np.sin(angles))
        return np.concatenate(turned, -1)

    def attention(x: Any, layer: int) -> Any:
        at = f"layers.{layer}."
        q, k, v = (linear(x, at + part).reshape(len(x), -1, spec.head_dim) for part in "qkv")
        if spec.head_norms:
            q, k = norm(q, at + "q_norm"), norm(k, at + "k_norm")
        q, k = rotate(q, layer), rotate(k, layer)
        k, v = (np.repeat(each, spec.heads // spec.kv_heads, axis=1) for each in (k, v))
        scores = np.einsum("thd,shd->hts", q, k) * spec.attention_scale
        distance = np.subtract.outer(np.arange(len(x)), np.arange(len(x)))
        scores[:, (distance < 0) | (distance >= (spec.windows[layer] or len(x)))] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = np.einsum("hts,shd->thd", weights / weights.sum(-1, keepdims=True), v)
        return linear(mixed.reshape(len(x), -1), at + "o")

    def activated(gate: Any) -> Any:
        if spec.activation == "silu":
            return gate / (1 + np.exp(-gate))
        return 0.5 * gate * (1 + np.tanh((2 / np.pi) ** 0.5 * (gate + 0.044715 * gate**3)))

    x = checkpoint.matrix("embed").astype(float)[tokens_T] * spec.embed_scale
    for layer in range(spec.layers):
        at = f"layers.{layer}."
        mixed = attention(norm(x, at + "attention_norm"), layer)
        x = x + (norm(mixed, at + "attention_post_norm") if spec.sandwich else mixed)
        normed = norm(x, at + "ffn_norm")
        fed = linear(activated(linear(normed, at + "gate")) * linear(normed, at + "up"), at + "down")
        x = x + (norm(fed, at + "ffn_post_norm") if spec.sandwich else fed)
    return linear(norm(x, "final_norm"), "lm_head")
