"""Attention over the cache: kernels on a device, their NumPy counterparts, and the definition in float64."""

from typing import Any

import numpy as np
import pytest
from tests.backends.wgsl_running import run_on_device, run_on_numpy

from inferometer.backends.wgsl.cache_formats import CACHE_F16, CACHE_F32, CacheFormat, stored

CAPACITY = 200
# query heads, kv heads, head size, window: groups of 1, 4, 10 and 12; sizes that no workgroup divides
MODELS = [(4, 1, 256, 0), (8, 2, 64, 70), (3, 3, 16, 4), (20, 2, 24, 0), (12, 1, 80, 100)]
SMALL = (6, 2, 16, 0)
TILED = ("attention_tiled", "attention_tiled_subgroups")
# (cached before, rows): nothing cached, a chunk exactly, one more; windows that begin inside a chunk
PASSES = [(0, 1), (63, 1), (64, 1), (150, 1), (0, 5), (60, 9)]
Case = tuple[dict[str, float], dict[str, Any]]
# a compiler takes long for a kernel's constants, so that tests share them


def _case(model: tuple[int, int, int, int], position: int, rows: int = 1, form: CacheFormat = CACHE_F16) -> Case:
    """Random numbers where a row may look, NaN everywhere else; answers begin as NaN."""
    heads, kv_heads, size, window = model
    rng = np.random.default_rng(heads * 1000 + position)
    k, v = (np.full((CAPACITY, kv_heads, size), np.nan, np.float32) for _ in range(2))
    k[: position + rows] = rng.normal(size=(position + rows, kv_heads, size))
    v[: position + rows] = rng.normal(size=(position + rows, kv_heads, size))
    if window:
        k[: max(0, position + 1 - window)] = np.nan
        v[: max(0, position + 1 - window)] = np.nan
    q = np.full((rows + 2, heads, size), np.nan, np.float32)
    q[:rows] = rng.normal(size=(rows, heads, size))
    state = np.array([position, rows, 0, 0], np.uint32)
    arrays = {"state": state, "q": q, "k": stored(k, form), "v": stored(v, form)}
    constants = {"HEADS": heads, "KV_HEADS": kv_heads, "DH": size, "SCALE": size**-0.5, "WINDOW": window}
    return constants | {"CACHE": form.code}, arrays


def _attended(constants: dict[str, float], arrays: dict[str, Any]) -> Any:
    """[rows, heads, size] in float64, by the definition."""
    position, rows = (int(number) for number in arrays["state"][:2])
    group = int(constants["HEADS"] / constants["KV_HEADS"])
    k_PHD, v_PHD = (np.repeat(arrays[name].astype(np.float64), group, axis=1) for name in ("k", "v"))
    answer = []
    for row in range(rows):
        end = position + row + 1
        begin = max(0, end - int(constants["WINDOW"])) if constants["WINDOW"] else 0
        score_HP = (arrays["q"][row].astype(np.float64) * k_PHD[begin:end]).sum(-1).T * constants["SCALE"]
        if cap := constants.get("SOFTCAP"):
            score_HP = cap * np.tanh(score_HP / cap)
        weight_HP = np.exp(score_HP - score_HP.max(-1, keepdims=True))
        weight_HP /= weight_HP.sum(-1, keepdims=True)
        answer.append(np.matmul(weight_HP[:, None], v_PHD[begin:end].transpose(1, 0, 2))[:, 0])
    return np.array(answer)


def _whole(run: Any, kernel: str, case: Case, **settings: float) -> Any:
    """The answer of a kernel that takes every position itself; rows beyond the pass stay NaN, two of them."""
    constants, arrays = case
    arrays = arrays | {"out": np.full(arrays["q"].shape, np.nan, np.float32)}
    rows = int(arrays["state"][1])
    out = run(kernel, constants | settings, arrays, (int(constants["HEADS"]), rows + 1, 1))["out"]
    assert np.isnan(out[rows:]).all()
    return out[:rows]


def _tiled(run: Any, kernel: str, case: Case, **settings: float) -> Any:
    """The answer of a kernel whose workgroups have 16 queries: tokens by heads. Rows beyond the pass stay NaN."""
    constants, arrays = case
    arrays = arrays | {"out": np.full(arrays["q"].shape, np.nan, np.float32)}
    rows, group = int(arrays["state"][1]), int(constants["HEADS"] / constants["KV_HEADS"])
    tokens, blocks = max(1, 16 // group), -(-group // 16)
    grid = (int(constants["KV_HEADS"]) * blocks, -(-rows // tokens) + 1, 1)
    out = run(kernel, constants | settings, arrays, grid)["out"]
    assert np.isnan(out[rows:]).all()
    return out[:rows]


def _split(run: Any, case: Case, *, chunk: int = 64, beyond: int = 0, **settings: float) -> Any:
    """The answer of `attention_split` and `attention_merge`. `beyond`: workgroups that find no position."""
    constants, arrays = case
    heads, size = int(constants["HEADS"]), int(constants["DH"])
    position, window = int(arrays["state"][0]), int(constants["WINDOW"])
    chunks = -(-min(position + 1, window or position + 1) // chunk)
    chunked = {"CHUNK": chunk, "MAX_CHUNKS": CAPACITY // chunk + 1}
    partial = np.full((heads, CAPACITY // chunk + 1, size + 2), np.nan, np.float32)
    grid = (int(constants["KV_HEADS"]), chunks + beyond, 1)
    partial = run("attention_split", constants | chunked | settings, arrays | {"partials": partial}, grid)["partials"]
    assert np.isnan(partial[:, chunks:]).all()
    merging = {"HEADS": heads, "DH": size, "WINDOW": window, **chunked, **settings}
    out = np.full((1, heads, size), np.nan, np.float32)
    merged = {"state": arrays["state"], "partials": partial, "out": out}
    return run("attention_merge", merging, merged, (heads, 1, 1))["out"]


@pytest.mark.parametrize("form", [CACHE_F16, CACHE_F32], ids=lambda form: form.name)
@pytest.mark.parametrize("model", MODELS)
def test_numpy_counterparts_are_the_definition(model: Any, form: CacheFormat) -> None:
    for position, rows in PASSES:
        case = _case(model, position, rows, form)
        wanted = _attended(*case)
        np.testing.assert_allclose(_whole(run_on_numpy, "attention_streaming", case), wanted, atol=2e-5)
        np.testing.assert_allclose(_tiled(run_on_numpy, "attention_tiled", case), wanted, atol=2e-5)
        if rows == 1:
            np.testing.assert_allclose(_split(run_on_numpy, case), wanted, atol=2e-5)


@pytest.mark.parametrize(("model", "form"), [*((each, CACHE_F16) for each in MODELS), (MODELS[2], CACHE_F32)])
def test_attention_on_the_device_is_numpys(model: Any, form: CacheFormat) -> None:
    for position, rows in PASSES:
        case = _case(model, position, rows, form)
        wanted = _whole(run_on_numpy, "attention_streaming", case)
        np.testing.assert_allclose(_whole(run_on_device, "attention_streaming", case), wanted, atol=2e-5)
        if rows == 1:
            np.testing.assert_allclose(_split(run_on_device, case, beyond=2), wanted, atol=2e-5)


@pytest.mark.parametrize("model", [SMALL, MODELS[1]])
def test_serial_attention_on_the_device_is_numpys(model: Any) -> None:
    for position, rows in PASSES:
        case = _case(model, position, rows)
        wanted = _whole(run_on_numpy, "attention_serial", case)
        np.testing.assert_allclose(_whole(run_on_device, "attention_serial", case), wanted, atol=2e-5)


@pytest.mark.parametrize("threads", [1, 8, 256])
def test_any_power_of_two_of_threads_gives_the_same(threads: int) -> None:
    case = _case(SMALL, 150)
    wanted = _attended(*case)
    for kernel in ("attention_streaming", "attention_serial"):
        np.testing.assert_allclose(_whole(run_on_device, kernel, case, THREADS=threads), wanted, atol=2e-5)
    np.testing.assert_allclose(_split(run_on_device, case, THREADS=threads), wanted, atol=2e-5)


@pytest.mark.parametrize(
    ("model", "kernel", "form", "softcap"),
    [
        ((20, 1, 16, 30), TILED[0], CACHE_F16, 0),
        ((20, 1, 16, 30), TILED[1], CACHE_F16, 0),
        ((3, 3, 24, 0), TILED[1], CACHE_F32, 0.5),
    ],
)  # few: a driver compiles them for seconds
def test_tiles_on_the_device_are_the_definition(model: Any, kernel: str, form: CacheFormat, softcap: float) -> None:
    """A kv head with more heads than a tile, and one with one; more tokens than a tile, several tiles of positions."""
    for position, rows in ((0, 1), (60, 9), (150, 21)):
        constants, arrays = _case(model, position, rows, form)
        case = constants | {"SOFTCAP": softcap}, arrays
        np.testing.assert_allclose(_tiled(run_on_device, kernel, case, THREADS=8), _attended(*case), atol=2e-5)


@pytest.mark.parametrize("run", [run_on_numpy, run_on_device])
def test_scores_pass_a_soft_cap(run: Any) -> None:
    constants, arrays = _case(SMALL, 60, 9)
    case = constants | {"SOFTCAP": 0.5}, arrays
    wanted = _attended(*case)
    assert np.abs(wanted - _attended(constants, arrays)).max() > 0.1
    for kernel in ("attention_streaming", "attention_serial"):
        np.testing.assert_allclose(_whole(run, kernel, case), wanted, atol=2e-5)
    single = _case(SMALL, 150)[0] | {"SOFTCAP": 0.5}, _case(SMALL, 150)[1]
    np.testing.assert_allclose(_split(run, single), _attended(*single), atol=2e-5)


@pytest.mark.parametrize("run", [run_on_numpy, run_on_device])
def test_a_soft_cap_squeezes_numbers_of_any_size_in_place(run: Any) -> None:
    numbers = np.array([0.0, 1.0, -30.0, 1e4, -1e30, np.nan, 7.0], np.float32)
    arrays = {"state": np.array([0, 1, 0, 0], np.uint32), "x": numbers}
    found = run("soft_cap", {"N": 6, "SOFTCAP": 30.0, "THREADS": 4}, arrays, (1, 1, 1))["x"]
    np.testing.assert_allclose(found[:5], 30 * np.tanh(numbers[:5].astype(np.float64) / 30), rtol=1e-6)
    assert np.isnan(found[5]) or run is run_on_device  # which NaN a device's clamp gives is its own matter
    assert found[6] == 7.0


@pytest.mark.parametrize(("chunk", "threads"), [(8, 64), (128, 16), (256, 32)])
def test_any_size_of_chunks_gives_the_same(chunk: int, threads: int) -> None:
    for position in (0, 127, 150):
        case = _case(SMALL, position)
        np.testing.assert_allclose(
            _split(run_on_device, case, chunk=chunk, THREADS=threads), _attended(*case), atol=2e-5
        )


@pytest.mark.parametrize("run", [run_on_numpy, run_on_device])
@pytest.mark.parametrize("position", [3, 100])
def test_keys_of_minus_infinity_weigh_nothing_and_nothing_but_them_gives_zeros(run: Any, position: int) -> None:
    constants, arrays = _case(SMALL, position)
    arrays["q"] = np.abs(arrays["q"]) + 1  # every product with -inf is -inf
    arrays["k"][0:3] = -np.inf
    wanted = _attended(constants, arrays)
    for answer in _every(run, (constants, arrays)):
        np.testing.assert_allclose(answer, wanted, atol=2e-5)
    arrays["k"][:] = -np.inf
    for answer in _every(run, (constants, arrays)):
        assert not answer.any()


@pytest.mark.parametrize("run", [run_on_numpy, run_on_device])
def test_scores_beyond_what_exp_can_hold_give_the_one_value(run: Any) -> None:
    constants, arrays = _case(SMALL, 90)
    arrays["k"][:91] = 0
    arrays["k"][40, 0] = 1e4 * arrays["q"][0, 0]
    wanted = _attended(constants, arrays)[0, 0]
    assert np.array_equal(wanted, arrays["v"][40, 0].astype(np.float64))
    for answer in _every(run, (constants, arrays)):
        np.testing.assert_allclose(answer[0, 0], wanted, atol=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_rounding_keys_and_values_costs_what_float16s_step_allows(model: Any) -> None:
    """A key's number is 2^-11 of it off, at most (or 2^-25): so are scores s, weights by e^2s; values as keys."""
    case, (constants, exact) = _case(model, 150), _case(model, 150, form=CACHE_F32)
    k_PHD, v_PHD = (np.repeat(np.nan_to_num(exact[name]), model[0] // model[1], axis=1) for name in "kv")
    off_PHD = np.maximum(np.abs(k_PHD) * 2.0**-11, 2.0**-25)
    s = (np.abs(exact["q"][0]) * off_PHD).sum(-1).max() * constants["SCALE"]
    most = np.abs(v_PHD).max()

    moved = np.abs(_whole(run_on_numpy, "attention_streaming", case) - _attended(constants, exact)).max()

    assert 2e-5 < moved <= np.expm1(2 * s) * most + most * 2.0**-11 + 2e-5


def _every(run: Any, case: Case) -> list[Any]:
    """The answers of all kernels, in one form."""
    return [
        _whole(run, "attention_streaming", case),
        _whole(run, "attention_serial", case),
        *(_tiled(run, kernel, case, THREADS=8) for kernel in TILED),
        _split(run, case),
    ]
