"""How far an output may be from the answer, in tests: by norm for real numbers, not at all for integers."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from inferometer.bench.comparison import tolerance_of
from inferometer.operators.operator import Operator


def as_float64(tensor: Any) -> np.ndarray:
    """A tensor as numpy: real numbers in float64, integers as they are."""
    wide = tensor.double() if tensor.dtype.is_floating_point else tensor
    return np.asarray(wide.numpy())


def error_of(found: np.ndarray, wanted: np.ndarray) -> float:
    """Norm of the difference over the norm of the answer; entries that are the same infinity agree."""
    assert found.shape == wanted.shape, (found.shape, wanted.shape)
    assert (np.isfinite(found) == np.isfinite(wanted)).all(), "infinities and NaN in other places"
    odd = ~np.isfinite(wanted)
    assert np.array_equal(found[odd], wanted[odd], equal_nan=True)
    difference, size = np.linalg.norm((found - wanted)[~odd]), np.linalg.norm(wanted[~odd])
    return float(difference / size) if size else float(difference)


def check_agrees(operator: Operator, found: Mapping[str, Any], wanted: Mapping[str, np.ndarray]) -> None:
    """Every output of `found`, tensors, is within tolerance of `wanted`."""
    assert list(found) == list(wanted)
    for name, tensor in found.items():
        allowed = tolerance_of(operator, name, tensor)
        if allowed:
            assert error_of(as_float64(tensor), np.asarray(wanted[name], np.float64)) <= allowed, name
        else:
            np.testing.assert_array_equal(as_float64(tensor), wanted[name], err_msg=name)
