"""Rows of random weights of every format, as they lie on a device."""

from typing import Any

import numpy as np

from inferometer.backends.wgsl.weight_formats import BLOCK, FORMATS, SUPER_BLOCK, WeightFormat, encode, pack


def random_rows(form: WeightFormat, n: int, k: int, rng: np.random.Generator) -> Any:
    """uint8 [n, row_bytes] of weights about `k**-0.5` large; of a format that only files have, of any codes."""
    if form.name in FORMATS:
        weight = (rng.standard_normal((n, k), np.float32) / k**0.5).astype(np.float16)
        return encode(weight, form)
    codes = rng.integers(0, 2**form.bits, (n, k)).astype(np.uint8)
    most = 2.0**form.bits * k**0.5
    if not form.has_two_levels:
        scales = rng.uniform(-2, 2, (n, k // BLOCK)) / most
        return pack(codes, scales, -scales * 2**form.bits / 2, form)
    scales = rng.uniform(0, 2, (n, k // SUPER_BLOCK)) / most / 32
    bytes_NB2 = rng.integers(0, 256 if form.has_halves else 64, (n, k // BLOCK, 2)).astype(np.uint8)
    return pack(codes, scales, -scales * 2**form.bits / 2, form, bytes_NB2)
