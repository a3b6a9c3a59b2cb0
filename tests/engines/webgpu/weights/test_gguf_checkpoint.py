"""GGUF files as checkpoints of the WebGPU engine: the weights of the model that they were made of."""

from pathlib import Path

import numpy as np
import pytest
from tests.engines.gguf.model_files import Raw, gguf_bytes, save_gguf, tiny_model

from inferometer.engines.webgpu.engine import load_webgpu
from inferometer.engines.webgpu.weights.checkpoint import FileCheckpoint, open_checkpoint
from inferometer.engines.webgpu.weights.slots import weight_slots
from inferometer.errors import InputError


def opened(path: Path) -> FileCheckpoint:
    found = open_checkpoint(str(path))
    assert isinstance(found, FileCheckpoint)
    return found


@pytest.mark.parametrize("name", ["tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-gemma2", "tiny-gemma3"])
def test_a_file_is_the_model_that_it_was_made_of(tmp_path: Path, name: str) -> None:
    found, wanted = opened(save_gguf(tmp_path / f"{name}.gguf", name)), open_checkpoint(name)
    assert found.spec == wanted.spec
    assert (found.parameters, found.source) == (wanted.parameters, str(tmp_path / f"{name}.gguf"))
    for slot, tensor in weight_slots(found.spec).items():
        if len(tensor.shape) > 1:
            assert np.array_equal(found.matrix(slot), wanted.matrix(slot))
            assert np.array_equal(found.matrix(slot, 3, 9), wanted.matrix(slot)[3:9])
        else:
            assert np.abs(found.vector(slot) - wanted.vector(slot)).max() < 2e-7  # 1 was added to Gemma's, in float32


def test_a_folder_with_a_file_runs(tmp_path: Path) -> None:
    save_gguf(tmp_path / "tiny.gguf", "tiny-gemma3", half=True)
    engine = load_webgpu(str(tmp_path), on="numpy", capacity_tokens=16)
    assert (engine.name, engine.source) == ("tiny", str(tmp_path / "tiny.gguf"))
    engine.close()


def test_source_bytes_are_those_of_the_blocks(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    metadata, tensors = tiny_model("tiny-llama")
    rows, width = tensors["output.weight"].shape
    data = np.zeros((rows, width // 32 * 34), np.uint8)
    data[:, 1::34] = 0x3C  # a scale of 1.0, in half precision
    data[:, 2::34] = 5
    tensors["output.weight"] = Raw((8, (rows, width), data.tobytes()))
    (tmp_path / "a.gguf").write_bytes(gguf_bytes(metadata, tensors))
    found = opened(tmp_path / "a.gguf")
    assert found.source_bytes("lm_head") == rows * width // 32 * 34
    assert found.matrix("lm_head", 1, 2)[0, :4].tolist() == [5, 0, 0, 0]


@pytest.mark.parametrize(
    ("scale", "words"), [(np.inf, "expected finite numbers, found inf"), (6e4, "expected numbers up to 65504, which")]
)
def test_a_scale_that_is_no_number_or_too_large_is_refused(tmp_path: Path, scale: float, words: str) -> None:
    pytest.importorskip("gguf")
    metadata, tensors = tiny_model("tiny-llama")
    rows, width = tensors["output.weight"].shape
    block = np.float16(scale).tobytes() + b"\x7f" * 32
    tensors["output.weight"] = Raw((8, (rows, width), block * (rows * width // 32)))
    (tmp_path / "a.gguf").write_bytes(gguf_bytes(metadata, tensors))
    with pytest.raises(InputError, match=rf"a\.gguf: lm_head\.weight: {words}"):
        opened(tmp_path / "a.gguf").matrix("lm_head")


def test_weights_that_do_not_fit_the_metadata_are_listed(tmp_path: Path) -> None:
    metadata, tensors = tiny_model("tiny-qwen3")
    del tensors["blk.1.attn_k_norm.weight"]
    (tmp_path / "a.gguf").write_bytes(gguf_bytes(metadata, tensors))
    with pytest.raises(InputError, match=r"its metadata describes, found 1 missing \(model\.layers\.1\..*k_norm"):
        opened(tmp_path / "a.gguf")
