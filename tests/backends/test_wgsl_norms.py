"""Kernels of embeddings and norms: the device against the NumPy counterpart, and that against float64."""

from typing import Any

import numpy as np
import pytest
from tests.backends.wgsl_running import run_on_device, run_on_numpy
from tests.engines.gguf.coded_tensors import random_blocks

from inferometer.backends.wgsl.weight_formats import pack
from inferometer.engines.gguf.block_codes import take_apart
from inferometer.engines.gguf.tensor_types import viewed
from inferometer.engines.webgpu.weights.weight_reader import CODED

TOLERANCE: dict[str, Any] = {"rtol": 1e-5, "atol": 1e-6}  # float32 sums in another order; rsqrt within 2 ULP
EPS = 1e-5
NORMS = ("rms_norm", "add_rms_norm", "norm_add_norm")
SHAPES = ((1, 8), (63, 64), (5, 1152), (129, 24))  # rows, width
ROWS_BEHIND = 2  # of `out`, which no kernel may write


def _state(tokens: int, position: int = 0) -> Any:
    return np.array([position, tokens, 0, 0, 0, 0, 0, 0], np.uint32)


def _operands(kernel: str, tokens: int, width: int) -> dict[str, Any]:
    rng = np.random.default_rng(tokens * 10_000 + width)
    rows = tokens + ROWS_BEHIND
    every = {
        "state": _state(tokens, position=3),
        "residual": rng.standard_normal((rows, width), np.float32),
        "x": 3 * rng.standard_normal((rows, width), np.float32),
        "post": rng.standard_normal(width, np.float32),
        "weight": rng.standard_normal(width, np.float32),
        "out": np.full((rows, width), np.nan, np.float32),
    }
    unused = {"rms_norm": {"residual", "post"}, "add_rms_norm": {"post"}, "norm_add_norm": set()}[kernel]
    return {name: array for name, array in every.items() if name not in unused}


def _norm(x: Any, weight: Any, offset: float) -> Any:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + EPS) * (offset + weight)


def _by_formula(kernel: str, arrays: dict[str, Any], tokens: int, offset: float) -> dict[str, Any]:
    """What is written, in float64: `residual` where the kernel has one, and `out`."""
    a = {name: array.astype(np.float64) for name, array in arrays.items()}
    x = a["x"][:tokens]
    written = {"out": a["out"]}
    if kernel != "rms_norm":
        a["residual"][:tokens] += _norm(x, a["post"], offset) if kernel == "norm_add_norm" else x
        x = a["residual"][:tokens]
        written["residual"] = a["residual"]
    a["out"][:tokens] = _norm(x, a["weight"], offset)
    return written


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize(("tokens", "width"), SHAPES)
@pytest.mark.parametrize("kernel", NORMS)
def test_the_counterpart_of_a_norm_is_the_formula(kernel: str, tokens: int, width: int, offset: int) -> None:
    arrays = _operands(kernel, tokens, width)

    after = run_on_numpy(kernel, {"D": width, "EPS": EPS, "OFFSET": offset}, arrays, (tokens, 1, 1))

    for name, expected in _by_formula(kernel, arrays, tokens, offset).items():
        np.testing.assert_allclose(after[name], expected, **TOLERANCE)


@pytest.mark.parametrize("threads", [4, 16, 64, 256])
@pytest.mark.parametrize(("tokens", "width"), SHAPES)
@pytest.mark.parametrize("kernel", NORMS)
def test_the_device_norms_as_the_counterpart_does(kernel: str, tokens: int, width: int, threads: int) -> None:
    arrays = _operands(kernel, tokens, width)
    constants = {"D": width, "EPS": EPS, "OFFSET": 1, "THREADS": threads}

    device = run_on_device(kernel, constants, arrays, (tokens, 1, 1))

    numpy = run_on_numpy(kernel, constants, arrays, (tokens, 1, 1))
    for name in arrays:
        np.testing.assert_allclose(device[name], numpy[name], **TOLERANCE)


@pytest.mark.parametrize("kernel", NORMS)
def test_workgroups_beyond_the_rows_of_the_pass_write_nothing(kernel: str) -> None:
    arrays = _operands(kernel, 3, 64)

    device = run_on_device(kernel, {"D": 64, "EPS": EPS}, arrays, (3 + ROWS_BEHIND, 1, 1))

    assert not np.isnan(device["out"][:3]).any()
    assert np.isnan(device["out"][3:]).all()
    if "residual" in arrays:
        np.testing.assert_array_equal(device["residual"][3:], arrays["residual"][3:])


def _gathering(tokens: int, width: int) -> dict[str, Any]:
    """A pass of `tokens` rows at position 2 over a vocabulary of 11; token 9 is read by no row."""
    rng = np.random.default_rng(tokens)
    ids = rng.integers(0, 9, 2 + tokens).astype(np.uint32)
    return {
        "state": _state(tokens, position=2),
        "tokens": np.append(ids, np.uint32(9)),
        "table": rng.standard_normal((11, width)).astype(np.float16),
        "out": np.full((tokens + ROWS_BEHIND, width), np.nan, np.float32),
        "seen": np.zeros(11, np.uint32),
    }


def _gather_on_device(*args: Any) -> dict[str, Any]:
    return run_on_device("gather", *args)


def _gather_on_numpy(*args: Any) -> dict[str, Any]:
    return run_on_numpy("gather", *args)


@pytest.mark.parametrize("run", [_gather_on_numpy, _gather_on_device])
@pytest.mark.parametrize(("tokens", "width", "threads"), [(1, 8, 64), (63, 24, 2), (129, 1032, 256)])
def test_gather_takes_rows_from_the_position_on_and_marks_their_tokens(
    run: Any, tokens: int, width: int, threads: int
) -> None:
    arrays = _gathering(tokens, width)
    ids = arrays["tokens"][2 : 2 + tokens]

    after = run({"K": width, "ROWS": 11, "SCALE": 1.5, "THREADS": threads}, arrays, (tokens, 1, 1))

    np.testing.assert_array_equal(after["out"][:tokens], arrays["table"][ids].astype(np.float32) * np.float32(1.5))
    assert np.isnan(after["out"][tokens:]).all()
    np.testing.assert_array_equal(np.flatnonzero(after["seen"]), np.unique(ids))


@pytest.mark.parametrize("run", [_gather_on_numpy, _gather_on_device])
@pytest.mark.parametrize("name", CODED)
def test_gather_of_a_gguf_types_blocks_gives_the_numbers_of_the_file(run: Any, name: str) -> None:
    """Bit for bit, with scales below float16's normal numbers too."""
    pytest.importorskip("gguf", reason="needs gguf: pip install 'inferometer[webgpu]'")
    blocks, form = random_blocks(name, 11, 768), CODED[name]
    found = take_apart(blocks, name)
    arrays = {**_gathering(20, 768), "table": pack(found.codes, found.scales, found.least, form, found.of_blocks)}

    after = run({"K": 768, "ROWS": 11, "SCALE": 1, "WEIGHTS": form.code}, arrays, (20, 1, 1))

    np.testing.assert_array_equal(after["out"][:20], viewed(blocks, name)[arrays["tokens"][2:22]])


@pytest.mark.parametrize("run", [_gather_on_numpy, _gather_on_device])
def test_gather_of_a_chunk_leaves_the_tokens_of_other_chunks_alone(run: Any) -> None:
    arrays = _gathering(63, 16)
    ids = arrays["tokens"][2 : 2 + 63]
    here = (ids >= 3) & (ids < 7)
    chunk = {**arrays, "table": arrays["table"][3:7]}

    after = run({"K": 16, "ROW0": 3, "ROWS": 4, "SCALE": 1}, chunk, (63, 1, 1))

    np.testing.assert_array_equal(after["out"][:63][here], arrays["table"][ids[here]].astype(np.float32))
    assert np.isnan(after["out"][:63][~here]).all()
    np.testing.assert_array_equal(np.flatnonzero(after["seen"]), [3, 4, 5, 6])
