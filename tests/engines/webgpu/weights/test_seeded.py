"""Random weights without torch: the numbers that transformers' model of the same name and seed has, by any rows."""

import math
from typing import Any

import numpy as np
import pytest
from tests.engines.webgpu.model_folders import random_tensors

from inferometer.engines.random_weights import numbers
from inferometer.engines.webgpu.weights.checkpoint import open_checkpoint
from inferometer.engines.webgpu.weights.slots import weight_slots

NAMES = ("tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-gemma2", "tiny-gemma3", "tiny-gemma3-26l")


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_that_of_the_torch_engine_bit_for_bit(name: str) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from inferometer.engines.hf.model import load_model

    wanted = {key: weight.detach().numpy() for key, weight in load_model(name, seed=5).model.named_parameters()}
    found, checkpoint = random_tensors(name, seed=5), open_checkpoint(name, seed=5)
    assert set(found) == set(wanted)
    assert checkpoint.parameters == sum(weight.size for weight in wanted.values())
    for slot_name, slot in weight_slots(checkpoint.spec).items():
        weight = wanted[slot.tensor]
        assert np.array_equal(found[slot.tensor].view(np.uint32), weight.view(np.uint32)), slot.tensor
        if weight.ndim == 1:
            assert np.array_equal(checkpoint.vector(slot_name), weight), slot_name
        else:
            assert np.array_equal(checkpoint.matrix(slot_name), weight.astype(np.float16)), slot_name


@pytest.mark.parametrize("name", ["tiny-mixtral", "tiny-qwen-moe"])
def test_experts_are_those_of_modules_that_join_them(name: str) -> None:
    transformers: Any = pytest.importorskip("transformers")
    if int(transformers.__version__.split(".")[0]) < 5:
        pytest.skip("transformers before 5 has modules of each expert, with numbers of their own")
    from inferometer.engines.hf.model import load_model

    wanted = {key: weight.detach().numpy() for key, weight in load_model(name, seed=5).model.named_parameters()}
    checkpoint = open_checkpoint(name, seed=5)
    assert checkpoint.parameters == sum(weight.size for weight in wanted.values())
    for slot_name, slot in weight_slots(checkpoint.spec).items():
        tensor, first = (slot.tensor, 0) if slot.joined is None else (slot.joined.tensor, slot.joined.first)
        numbers_of = wanted[tensor].reshape(-1)[first : first + math.prod(slot.shape)].reshape(slot.shape)
        found = checkpoint.vector(slot_name) if len(slot.shape) == 1 else checkpoint.floats(slot_name)
        assert np.array_equal(found, numbers_of), slot_name
        if slot.joined is not None:
            assert wanted[tensor].shape == slot.joined.shape


def test_numbers_beyond_a_chunk_are_the_torch_ones_in_each_dtype() -> None:
    torch: Any = pytest.importorskip("torch")
    from inferometer.engines.random_weights import fill

    for dtype in ("float32", "float16"):
        weight = torch.empty(200_003, dtype=getattr(torch, dtype))
        fill(weight, "3 a", 0.5, 0.1)
        found = numbers("3 a", 0.5, 0.1, 0, 200_003, np.dtype(dtype))
        assert np.array_equal(found, weight.numpy())


def test_a_range_is_that_of_the_whole() -> None:
    whole = numbers("0 w", 0.0, 1.0, 0, 200_000)
    for first, last in ((0, 1), (65_535, 65_537), (70_001, 199_999), (5, 5)):
        assert np.array_equal(numbers("0 w", 0.0, 1.0, first, last), whole[first:last])
    checkpoint = open_checkpoint("tiny-gemma3")
    for name in ("embed", "lm_head", "layers.1.down"):
        matrix = checkpoint.matrix(name)
        assert np.array_equal(checkpoint.matrix(name, 3, 40), matrix[3:40])
        assert matrix.flags.c_contiguous
    assert np.array_equal(checkpoint.matrix("lm_head"), checkpoint.matrix("embed"))  # tied


def test_an_index_above_32_bits_wraps_as_torchs_does() -> None:
    far = 2**32 + 2**20
    assert np.array_equal(numbers("0 w", 0.0, 1.0, far, far + 9), numbers("0 w", 0.0, 1.0, 2**20, 2**20 + 9))
    assert not np.array_equal(numbers("0 w", 0.0, 1.0, 2**31, 2**31 + 9), numbers("0 w", 0.0, 1.0, 0, 9))


def test_a_seed_and_a_name_decide_the_numbers() -> None:
    first, again, other = (open_checkpoint("tiny-llama", seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.matrix("layers.0.q"), again.matrix("layers.0.q"))
    assert not np.array_equal(first.matrix("layers.0.q"), other.matrix("layers.0.q"))
    assert not np.array_equal(first.matrix("layers.0.k"), first.matrix("layers.0.v"))
    assert not np.array_equal(first.matrix("lm_head"), first.matrix("embed"))  # its own
    assert (first.source, first.notes, first.tokenizer.name) == ("random weights, seed 1", (), "bytes")
    assert first.source_bytes("embed") == 0


def test_a_published_name_has_its_shapes_and_any_rows_at_once() -> None:
    checkpoint = open_checkpoint("gemma-3-1b-it")
    assert checkpoint.parameters == 999_885_952
    assert checkpoint.matrix("lm_head", 262_100, 262_144).shape == (44, 1152)
    assert (
        float(np.abs(checkpoint.matrix("layers.25.gate", 0, 8)).max()) < 0.06
    )  # 1152 ** -0.5 times the square root of 3


@pytest.mark.parametrize(
    ("name", "rows"), [("layers.0.q", (0, 65)), ("layers.0.q", (-1, 3)), ("layers.0.q", (9, 8)), ("embed", (0, 321))]
)
def test_rows_that_arent_there_are_refused(name: str, rows: tuple[int, int]) -> None:
    with pytest.raises(IndexError, match=f"{name}: expected rows within 0 to "):
        open_checkpoint("tiny-llama").matrix(name, *rows)


def test_a_weight_that_the_model_hasnt_is_refused() -> None:
    checkpoint = open_checkpoint("tiny-llama")
    for name in ("layers.3.q", "layers.0.q_norm", "final_norm"):
        with pytest.raises(KeyError, match="expected a matrix"):
            checkpoint.matrix(name)
    with pytest.raises(KeyError, match="expected a vector"):
        checkpoint.vector("embed")
