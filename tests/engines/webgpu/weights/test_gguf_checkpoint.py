"""GGUF files as checkpoints of the WebGPU engine: the weights of the model that they were made of."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engines.gguf.coded_tensors import random_blocks, raw_tensor
from tests.engines.gguf.model_files import Raw, gguf_bytes, save_gguf, tiny_model

from inferometer.backends.wgsl.weight_formats import F16, F32, Q8, decode
from inferometer.engines.webgpu.engine import WebGpuEngine
from inferometer.engines.webgpu.load import LoadOptions, load_webgpu
from inferometer.engines.webgpu.run.executor import Request
from inferometer.engines.webgpu.run.local_runner import LocalRunner
from inferometer.engines.webgpu.weights.checkpoint import FileCheckpoint, open_checkpoint
from inferometer.engines.webgpu.weights.slots import weight_slots
from inferometer.engines.webgpu.weights.weight_reader import CODED
from inferometer.errors import InputError


def opened(path: Path) -> FileCheckpoint:
    found = open_checkpoint(str(path))
    assert isinstance(found, FileCheckpoint)
    return found


def save_with(path: Path, more: Mapping[str, Any]) -> Path:
    """tiny-llama in float16 as a file, with other tensors in place of some of its own."""
    metadata, tensors = tiny_model("tiny-llama", half=True)
    path.write_bytes(gguf_bytes(metadata, {**tensors, **more}))
    return path


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
    engine = load_webgpu(str(tmp_path), LoadOptions(on="numpy", capacity_tokens=16))
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


@pytest.mark.parametrize("name", [name for name, form in CODED.items() if form.multiple == 32])
def test_quantized_matrices_keep_their_blocks_on_the_device(tmp_path: Path, name: str) -> None:
    """Rows of Llama's queries are permuted in a file: whole blocks are, so rows come in any part."""
    pytest.importorskip("gguf")
    blocks = random_blocks(name, 64, 64)
    found = opened(save_with(tmp_path / "a.gguf", {"blk.1.attn_q.weight": raw_tensor(name, blocks)}))
    form = found.own_format("layers.1.q")
    assert (form, found.own_format("layers.0.q")) == (CODED[name], F16)

    rows = found.rows("layers.1.q", form)

    np.testing.assert_array_equal(decode(rows, 64, 64, form), found.floats("layers.1.q"))
    np.testing.assert_array_equal(found.rows("layers.1.q", form, 5, 41), rows[5:41])
    assert found.rows("layers.1.q", F16).dtype == np.float16


def test_a_scale_that_a_format_can_not_hold_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    for scale, words in ((600, r"expected numbers with scales that q8 holds, found 600"), (np.nan, "finite numbers")):
        block = np.float16(scale).tobytes() + b"\1" * 32
        found = opened(save_with(tmp_path / "a.gguf", {"output.weight": Raw((8, (320, 64), block * (2 * 320)))}))
        with pytest.raises(InputError, match=words):
            found.rows("lm_head", Q8)
        assert scale != 600 or found.rows("lm_head", F32).view(np.float32).max() == 600


@pytest.mark.parametrize(
    ("types", "parts"),
    [
        ({"attn_q": "Q4_0", "attn_k": "Q4_0", "attn_v": "Q4_1"}, ["q4"]),
        ({"attn_q": "Q8_0", "attn_k": "Q4_1", "attn_v": "Q4_1"}, ["q8", "q4"]),
        ({"attn_q": "Q8_0", "attn_k": "Q8_0", "attn_v": "Q4_1"}, ["f32"]),  # the part of values would begin at row 96
        ({"ffn_gate": "Q4_0", "ffn_up": "Q4_0"}, ["q4"]),
        ({"ffn_gate": "Q4_0", "ffn_up": "Q8_0"}, ["f32"]),  # one kernel reads both
    ],
)
def test_matrices_of_several_types_give_the_answer_of_their_numbers(
    tmp_path: Path, types: Mapping[str, str], parts: list[str]
) -> None:
    pytest.importorskip("gguf")
    shapes = {name: tensor.shape for name, tensor in tiny_model("tiny-llama")[1].items()}
    more = {
        f"blk.0.{name}.weight": raw_tensor(each, random_blocks(each, *shapes[f"blk.0.{name}.weight"]))
        for name, each in types.items()
    }
    path = save_with(tmp_path / "a.gguf", more)
    answers = []
    for weights in (None, F32):
        engine = load_webgpu(str(path), LoadOptions(on="numpy", capacity_tokens=16, greedy=True, weights=weights))
        answers.append(_answer(engine))
        if weights is None:
            assert [each for each in engine.loaded.matrix_bytes if each != "f16"] == parts
            assert engine.dtype.startswith("f16, ")
            assert sum(engine.loaded.matrix_bytes.values()) == _bytes_bound(engine)
        engine.close()
    (own, own_V), (wide, wide_V) = answers
    assert own == wide
    np.testing.assert_allclose(own_V, wide_V, rtol=1e-4, atol=1e-4)


def _answer(engine: WebGpuEngine) -> tuple[list[int], Any]:
    found = engine.runner.run(Request((7, 3, 11), 4), lambda submission: None)
    assert isinstance(engine.runner, LocalRunner)
    logits = engine.runner.executor.read("logits").view(np.float32)[: engine.vocabulary]
    return [token for submission in found for token in submission.tokens], logits.copy()


def _bytes_bound(engine: WebGpuEngine) -> int:
    """Of the matrices that a decode step reads, and the table."""
    bound = {
        binding.buffer: binding.size_bytes
        for phase in ("prefill", "decode", "head")
        for dispatch in engine.program.phases[phase]
        for binding in dispatch.bindings
        if ".vectors" not in binding.buffer
    }
    weights = {each.name for each in engine.program.buffers if each.purpose == "weights"}
    return sum(size for name, size in bound.items() if name in weights)
