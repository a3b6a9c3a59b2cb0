"""Blocks taken apart and packed for a device are the numbers that the gguf library makes of them, bit for bit."""

import numpy as np
import pytest
from tests.engines.gguf.coded_tensors import random_blocks

from inferometer.backends.wgsl.weight_formats import decode, pack
from inferometer.engines.gguf.block_codes import CODED, take_apart
from inferometer.engines.gguf.tensor_types import viewed
from inferometer.engines.webgpu.weights import weight_reader

pytest.importorskip("gguf", reason="needs gguf: pip install 'inferometer[webgpu]'")


@pytest.mark.parametrize("name", CODED)
@pytest.mark.parametrize("numbers", [256, 768])
def test_no_number_changes(name: str, numbers: int) -> None:
    form = weight_reader.CODED[name]
    blocks = random_blocks(name, 70, numbers)

    found = take_apart(blocks, name)
    rows = pack(found.codes, found.scales, found.least, form, found.of_blocks)

    assert rows.shape == (70, form.row_bytes(numbers))
    np.testing.assert_array_equal(decode(rows, 70, numbers, form), viewed(blocks, name))


def test_a_scale_whose_multiple_float16_can_not_hold_is_infinite() -> None:
    blocks = np.concatenate([np.array([6e4], "<f2").view(np.uint8), np.zeros(32, np.uint8)])[None]
    assert np.isinf(take_apart(blocks, "Q8_0").least).all()
