"""GGUF files as transformers models: the same logits as the model that they were made of, and files that don't fit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from tests.engines.gguf.model_files import gguf_bytes, save_gguf, tiny_model
from tests.engines.webgpu.model_folders import save_model

from inferometer.engines.hf.model import load_model
from inferometer.engines.webgpu.weights.checkpoint import open_checkpoint
from inferometer.errors import FormatError, InputError

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")


def logits_of(engine: Any, length: int = 40) -> Any:
    tokens_BT = torch.randint(0, 256, (1, length), generator=torch.Generator().manual_seed(1))
    return engine.forward(engine.start(1, length), tokens_BT)


@pytest.mark.parametrize("name", ["tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-gemma2", "tiny-gemma3"])
def test_a_file_gives_the_logits_of_its_model(tmp_path: Path, name: str) -> None:
    """40 positions: beyond the windows of the Gemmas; Llama has the factors of its rope in a tensor."""
    wanted = load_model(name)
    weights = {each: weight.numpy() for each, weight in wanted.model.named_parameters()}
    found = load_model(str(save_gguf(tmp_path / "a.gguf", name, weights=weights)))
    exact = "gemma" not in name  # 1 was added to norms and taken away again
    assert torch.allclose(logits_of(found), logits_of(wanted), rtol=0, atol=0 if exact else 2e-5)
    assert (found.name, found.parameters, found.source) == ("a", wanted.parameters, str(tmp_path / "a.gguf"))


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "beta_fast": 8.0}
OF_YARN = {"type": "yarn", "factor": 4.0, "original_context_length": 32, "yarn_beta_fast": 8.0}


def test_a_context_stretched_by_yarn_is_that_of_safetensors_on_both_engines(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "yarn", "tiny-qwen3", rope_scaling=YARN)
    more = {f"qwen3.rope.scaling.{key}": value for key, value in OF_YARN.items()}
    file = save_gguf(tmp_path / "a.gguf", "tiny-qwen3", more=more)
    wanted = logits_of(load_model(str(folder)), 80)
    assert torch.equal(logits_of(load_model(str(file)), 80), wanted)
    assert (wanted - logits_of(load_model("tiny-qwen3"), 80)).abs().max() > 0.02  # it makes a difference
    assert open_checkpoint(str(file)).spec == replace(open_checkpoint(str(folder)).spec, name="a")


def test_a_folder_with_a_file_is_a_model(tmp_path: Path) -> None:
    save_gguf(tmp_path / "tiny.gguf", "tiny-qwen3", half=True)
    engine = load_model(str(tmp_path), dtype="bfloat16")
    assert (engine.name, engine.dtype) == ("tiny", "bfloat16")
    assert torch.isfinite(logits_of(engine)).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"blk.2.attn_v.weight": None}, r"1 missing \(model\.layers\.2\.self_attn\.v_proj\.weight\)"),
        ({"blk.0.attn_x.weight": np.ones(4, np.float32)}, r"1 unexpected \(blk\.0\.attn_x\.weight\)"),
        ({"blk.0.ffn_up.weight": np.ones((4, 64), np.float32)}, r"1 of another shape \(.* \[4, 64\] for \[160, 64\]\)"),
    ],
)  # fmt: skip
def test_weights_that_do_not_fit_the_metadata_are_listed(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    metadata, tensors = tiny_model("tiny-llama")
    whole = {name: tensor for name, tensor in {**tensors, **change}.items() if tensor is not None}
    (tmp_path / "a.gguf").write_bytes(gguf_bytes(metadata, whole))
    with pytest.raises(InputError, match=rf"expected the weights that its metadata describes, found {words}"):
        load_model(str(tmp_path / "a.gguf"))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"llama.block_count": 4_000}, "num_hidden_layers: expected the 3 layers of the files, found 4,000"),
        ({"llama.block_count": 5_000}, "num_hidden_layers: expected at most 4,096, found 5,000"),
        ({"llama.feed_forward_length": 2**31}, "intermediate_size: expected at most 4,194,304"),
        ({"llama.attention.head_count_kv": 3}, "transformers|another shape"),
    ],
)
def test_sizes_of_nothing_are_refused_before_they_get_memory(tmp_path: Path, more: dict[str, Any], words: str) -> None:
    with pytest.raises((InputError, FormatError), match=words):
        load_model(str(save_gguf(tmp_path / "a.gguf", "tiny-llama", more=more)))
