"""Rotated heads, and what goes into the cache: the kernel, its NumPy counterpart, and complex numbers in float64."""

from typing import Any

import numpy as np
import pytest
from tests.backends.wgsl_running import run_on_device, run_on_numpy

from inferometer.backends.wgsl.cache_formats import CACHE_F16, CACHE_F32, CacheFormat, stored

CAPACITY = 40
# query heads, kv heads, head size, cached before, rows
CASES = [(4, 1, 256, 0, 1), (8, 2, 64, 17, 1), (2, 2, 16, 0, 7), (3, 1, 24, 33, 7), (5, 5, 80, 39, 1)]
Case = tuple[dict[str, float], dict[str, Any]]


def _case(
    heads: int,
    kv_heads: int,
    size: int,
    position: int,
    rows: int,
    *,
    norms: bool,
    offset: float = 1.0,
    form: CacheFormat = CACHE_F32,
) -> Case:
    rng = np.random.default_rng(size)
    turns = np.outer(np.arange(CAPACITY), 10000.0 ** (-np.arange(size // 2) / (size // 2)))
    cache = np.full((CAPACITY, kv_heads, size), np.nan, form.dtype)
    projected = np.full((rows + 1, heads + 2 * kv_heads, size), np.nan, np.float32)
    projected[:rows] = rng.normal(size=(rows, heads + 2 * kv_heads, size)) * 3
    weights = rng.normal(size=(2, size)).astype(np.float32) if norms else np.zeros(4, np.float32)
    arrays = {
        "state": np.array([position, rows, 0, 0], np.uint32),
        "qkv": projected,
        "angles": np.concatenate([np.cos(turns), np.sin(turns)], axis=1).astype(np.float32),
        "head_norms": weights,
        "q": np.full((rows + 1, heads, size), np.nan, np.float32),
        "k": cache,
        "v": cache.copy(),
    }
    constants = {"HEADS": heads, "KV_HEADS": kv_heads, "DH": size, "HAS_NORMS": norms, "EPS": 1e-6, "OFFSET": offset}
    return constants | {"CACHE": form.code}, arrays


def _run(run: Any, case: Case, **settings: float) -> Any:
    """A row more of workgroups than the pass has."""
    constants, arrays = case
    heads = int(constants["HEADS"] + 2 * constants["KV_HEADS"])
    return run("rope", constants | settings, arrays, (heads, int(arrays["state"][1]) + 1, 1))


def _turned(constants: dict[str, float], arrays: dict[str, Any]) -> Any:
    """[rows, query and key heads, size] in float64: halves are the two parts of complex numbers."""
    heads, size = int(constants["HEADS"]), int(constants["DH"])
    position, rows = (int(number) for number in arrays["state"][:2])
    x = arrays["qkv"][:rows, : heads + int(constants["KV_HEADS"])].astype(np.float64)
    if constants["HAS_NORMS"]:
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + constants["EPS"])
        x[:, :heads] *= constants["OFFSET"] + arrays["head_norms"][0]
        x[:, heads:] *= constants["OFFSET"] + arrays["head_norms"][1]
    half = size // 2
    turn = np.arange(position, position + rows)[:, None] * 10000.0 ** (-np.arange(half) / half)
    turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * turn)[:, None]
    return np.concatenate([turned.real, turned.imag], axis=-1)


@pytest.mark.parametrize("norms", [False, True])
@pytest.mark.parametrize("numbers", CASES)
def test_numpy_counterpart_turns_complex_numbers(numbers: Any, norms: bool) -> None:
    case = _case(*numbers, norms=norms)
    heads, position, rows = numbers[0], numbers[3], numbers[4]
    after, wanted = _run(run_on_numpy, case), _turned(*case)
    np.testing.assert_allclose(after["q"][:rows], wanted[:, :heads], atol=5e-6)
    np.testing.assert_allclose(after["k"][position : position + rows], wanted[:, heads:], atol=5e-6)


@pytest.mark.parametrize("norms", [False, True])
@pytest.mark.parametrize("numbers", CASES)
def test_device_turns_as_numpy_does_and_writes_nothing_else(numbers: Any, norms: bool) -> None:
    case = _case(*numbers, norms=norms, offset=0.25)
    on_device, wanted = _run(run_on_device, case), _run(run_on_numpy, case)
    for name in ("q", "k", "v"):  # NaN where nothing is written, in both
        np.testing.assert_allclose(on_device[name], wanted[name], atol=5e-6)


@pytest.mark.parametrize("threads", [1, 4, 256])
def test_any_power_of_two_of_threads_gives_the_same(threads: int) -> None:
    case = _case(2, 2, 16, 3, 5, norms=True)
    on_device, wanted = _run(run_on_device, case, THREADS=threads), _run(run_on_numpy, case)
    for name in ("q", "k", "v"):
        np.testing.assert_allclose(on_device[name], wanted[name], atol=5e-6)


def test_values_and_position_0_come_through_unturned() -> None:
    constants, arrays = _case(2, 1, 16, 0, 1, norms=False)
    after = _run(run_on_device, (constants, arrays))
    assert np.array_equal(after["q"][0], arrays["qkv"][0, :2])
    assert np.array_equal(after["k"][0], arrays["qkv"][0, 2:3])
    assert np.array_equal(after["v"][0], arrays["qkv"][0, 3:])
    assert np.isnan(after["k"][1:]).all()
    assert np.isnan(after["v"][1:]).all()


@pytest.mark.parametrize("norms", [False, True])
@pytest.mark.parametrize("numbers", CASES)
def test_halves_are_those_of_float32_rounded(numbers: Any, norms: bool) -> None:
    case, exact = (_case(*numbers, norms=norms, form=form) for form in (CACHE_F16, CACHE_F32))
    for run in (run_on_numpy, run_on_device):
        after, wanted = _run(run, case), _run(run, exact)
        for name in ("k", "v"):  # NaN where nothing is written
            assert after[name].dtype == np.float16
            np.testing.assert_array_equal(after[name], wanted[name].astype(np.float16))


@pytest.mark.parametrize("run", [run_on_numpy, run_on_device])
def test_what_halves_cannot_hold_stays_finite_and_what_is_not_finite_stays_that(run: Any) -> None:
    constants, arrays = _case(2, 1, 16, 0, 1, norms=False, form=CACHE_F16)
    # two ties between odd and even, what rounds to the largest and what is beyond it, the least, its half, three halves
    numbers = [2049.0, 2051.0, 65519.0, 65520.0, 7e4, -1e38, 2**-24, 2**-25, 3 * 2**-25, np.inf, -np.inf, np.nan]
    arrays["qkv"][0, 3] = numbers + [0.0] * 4

    v = _run(run, (constants, arrays))["v"][0, 0]

    kept = [2048.0, 2052.0, 65504.0, 65504.0, 65504.0, -65504.0, 2**-24, 0.0, 2**-23, np.inf, -np.inf, np.nan]
    np.testing.assert_array_equal(v[:12], np.array(kept, np.float16))
    np.testing.assert_array_equal(stored(np.array(numbers, np.float32), CACHE_F16), np.array(kept, np.float16))
