"""How weights lie on the device: bytes, what rounding costs, and GGUF's blocks without any loss."""

from typing import Any

import numpy as np
import pytest

from inferometer.backends.wgsl.weight_formats import (
    ALL_FORMATS,
    F16,
    F32,
    Q4,
    Q8,
    WeightFormat,
    decode,
    encode,
    pack,
    quantize,
)


def _weights(k: int = 96) -> Any:
    return (np.random.default_rng(k).standard_normal((5, k)) / 8).astype(np.float32)


@pytest.mark.parametrize(
    ("form", "k", "size"),
    [(F16, 8, 16), (F32, 8, 32), (Q8, 32, 32 + 16), (Q8, 160, 160 + 32), (Q4, 32, 16 + 16), (Q4, 640, 320 + 80)],
)
def test_a_row_has_its_weights_and_whole_words_of_scales(form: WeightFormat, k: int, size: int) -> None:
    assert form.row_bytes(k) == size
    assert encode(np.zeros((3, k), np.float32), form).shape == (3, size)


@pytest.mark.parametrize("form", ALL_FORMATS.values(), ids=lambda form: form.name)
def test_no_rows_are_no_weights(form: WeightFormat) -> None:
    assert decode(np.empty((0, form.row_bytes(256)), np.uint8), 0, 256, form).shape == (0, 256)


def test_plain_formats_are_numpys() -> None:
    weight = _weights()
    np.testing.assert_array_equal(decode(encode(weight, F32), 5, 96, F32), weight)
    np.testing.assert_array_equal(decode(encode(weight, F16), 5, 96, F16), weight.astype(np.float16))


@pytest.mark.parametrize("form", [Q8, Q4])
def test_a_weight_is_at_most_half_a_step_off_and_what_rounding_the_scales_costs(form: WeightFormat) -> None:
    weight = _weights()
    codes, scales, least = quantize(weight, form)

    found = decode(pack(codes, scales, least, form), 5, 96, form)

    step = np.repeat(scales.astype(np.float32), 32, axis=1)
    of_rounding = 2**-10 * np.abs(weight).max() * 2
    assert (np.abs(found - weight) <= step / 2 + of_rounding).all()
    assert codes.max() <= 2**form.bits - 1


@pytest.mark.parametrize("form", [Q8, Q4])
def test_blocks_of_one_number_come_back(form: WeightFormat) -> None:
    weight = np.repeat(np.array([[0.0, -0.25, 3.0]], np.float32), 32, axis=1)
    np.testing.assert_array_equal(decode(encode(weight, form), 1, 96, form), weight)


def test_codes_lie_from_the_lowest_bits_on() -> None:
    codes = (np.arange(32) % 16).astype(np.uint8)[None]
    two, less_one = np.array([[2]], np.float16), np.array([[-1]], np.float16)
    words = pack(codes, two, less_one, Q4).view("<u4")[0]
    assert [f"{word:08x}" for word in words[:4]] == ["76543210", "fedcba98", "76543210", "fedcba98"]
    assert words[4] == 0x4000 | 0xBC00 << 16  # 2 and -1 as float16
    words = pack(codes, two, less_one, Q8).view("<u4")[0]
    assert f"{words[1]:08x}" == "07060504"


def test_ggufs_blocks_fit_exactly() -> None:
    """Q4_0: (code - 8) * scale. Q4_1: code * scale + least. Q8_0: a signed code * scale."""
    rng = np.random.default_rng(3)
    scale = rng.normal(0, 0.01, (4, 3)).astype(np.float16)
    least = rng.normal(0, 0.1, (4, 3)).astype(np.float16)
    wide_scale, wide_least = (np.repeat(each.astype(np.float32), 32, axis=1) for each in (scale, least))
    nibbles = rng.integers(0, 16, (4, 96)).astype(np.uint8)
    signed = rng.integers(-128, 128, (4, 96))

    q4_0 = decode(pack(nibbles, scale, -8 * scale, Q4), 4, 96, Q4)
    q4_1 = decode(pack(nibbles, scale, least, Q4), 4, 96, Q4)
    q8_0 = decode(pack((signed + 128).astype(np.uint8), scale, -128 * scale, Q8), 4, 96, Q8)

    np.testing.assert_array_equal(q4_0, (nibbles.astype(np.float32) - 8) * wide_scale)
    np.testing.assert_array_equal(q4_1, nibbles * wide_scale + wide_least)
    np.testing.assert_array_equal(q8_0, signed.astype(np.float32) * wide_scale)
