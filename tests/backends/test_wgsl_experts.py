"""Experts: their choice and their products, kernels on a device, NumPy counterparts, and the definition in float64."""

from typing import Any

import numpy as np
import pytest
from tests.backends.wgsl_running import run_on_device, run_on_numpy

from inferometer.backends.wgsl.weight_formats import F16, FORMATS, WeightFormat, decode, encode

RUNS = pytest.mark.parametrize("run", [run_on_numpy, run_on_device])
ROWS, EXPERTS, EACH, HIDDEN, SIZE = 3, 5, 2, 64, 32
CHOSEN = np.array([[4, 0], [2, 4], [1, 3]], np.uint32)
WEIGHTS = np.array([[0.75, 0.25], [0.5, 0.125], [1.0, 0.0]], np.float32)
ROUTES = np.concatenate([CHOSEN, WEIGHTS.view(np.uint32)], axis=-1)
ROUTES = np.concatenate([ROUTES, np.full((1, 2 * EACH), 2**31, np.uint32)])  # behind the pass: of no expert
WAYS = [
    *(("thread", form, 4, (5,)) for form in FORMATS.values()),
    ("thread", F16, 1, (2, 2, 1)),
    ("thread", F16, 8, (1, 3, 1)),
    *(("workgroup", form, 4, (5,)) for form in FORMATS.values()),
    ("workgroup", F16, 2, (1, 4)),
]
"""Kernels, formats, columns, experts of each part of the matrices."""
STATE = np.array([7, ROWS, 0, 0], np.uint32)


def scores(experts: int, rows: int = ROWS) -> Any:
    return np.random.default_rng(experts).normal(0, 2, (rows, experts)).astype(np.float32)


def routed(run: Any, score_TE: Any, each: int, *, renormalize: bool, more: int = 0, threads: int = 64) -> Any:
    """Experts and weights; `more`: columns that aren't experts'."""
    wide = np.concatenate([score_TE, np.full((len(score_TE), more), 99, np.float32)], axis=-1)
    arrays = {"state": np.array([0, len(wide), 0, 0], np.uint32), "scores": wide,
              "out": np.full((len(wide) + 1, 2 * each), 7, np.uint32)}  # fmt: skip
    constants = {"EXPERTS": score_TE.shape[1], "EACH": each, "STRIDE": wide.shape[1], "RENORMALIZE": renormalize}
    out = run("moe_route", {**constants, "THREADS": threads}, arrays, (len(wide) + 1, 1, 1))["out"]
    assert (out[-1] == 7).all()
    return out[:-1, :each], np.ascontiguousarray(out[:-1, each:]).view(np.float32)


@RUNS
@pytest.mark.parametrize(("experts", "each", "renormalize", "more"), [(8, 2, True, 0), (70, 6, False, 1)])
def test_the_greatest_scores_are_chosen_and_weighed_by_the_softmax(
    run: Any, experts: int, each: int, renormalize: bool, more: int
) -> None:
    score_TE = scores(experts)
    expert_Tk, weight_Tk = routed(run, score_TE, each, renormalize=renormalize, more=more)
    probability_TE = np.exp(score_TE.astype(np.float64)) / np.exp(score_TE.astype(np.float64)).sum(-1, keepdims=True)
    wanted_Tk = np.sort(probability_TE, axis=-1)[:, ::-1][:, :each]
    np.testing.assert_array_equal(np.take_along_axis(probability_TE, expert_Tk.astype(int), -1), wanted_Tk)
    np.testing.assert_allclose(
        weight_Tk, wanted_Tk / (wanted_Tk.sum(-1, keepdims=True) if renormalize else 1), rtol=1e-5
    )


@RUNS
def test_of_equal_scores_the_first_is_chosen_and_nan_goes_on(run: Any) -> None:
    score_TE = np.array([[1, 3, 3, 3], [-np.inf, 0, -np.inf, -np.inf]], np.float32)
    expert_Tk, weight_Tk = routed(run, score_TE, 2, renormalize=True, threads=1)
    assert expert_Tk.tolist() == [[1, 2], [1, 0]]
    assert weight_Tk.tolist() == [[0.5, 0.5], [1.0, 0.0]]
    _, weight_Tk = routed(run, np.array([[1, np.nan, 3, 2]], np.float32), 2, renormalize=False)
    assert np.isnan(weight_Tk).all()


def matrices(n: int, k: int, form: WeightFormat, seed: int) -> tuple[Any, Any]:
    """Experts' matrices [EXPERTS, n, k] as float64, and as they lie on the device."""
    weight = np.random.default_rng(seed).normal(0, 0.3, (EXPERTS * n, k)).astype(np.float32)
    data = encode(weight, form)
    return decode(data, EXPERTS * n, k, form).astype(np.float64).reshape(EXPERTS, n, k), data.view(np.uint32)


def parts_of(data: Any, parts: tuple[int, ...]) -> list[tuple[int, int, Any]]:
    """First expert, number of experts and rows of each part."""
    found, first = [], 0
    for count in parts:
        rows = len(data) // EXPERTS
        found.append((first, count, data[first * rows : (first + count) * rows]))
        first += count
    return found


def of_experts(k: int, n: int, form: WeightFormat, columns: int) -> dict[str, float]:
    return {"K": k, "N": n, "EACH": EACH, "WEIGHTS": form.code, "THREADS": 4, "COLUMNS": columns}


@RUNS
@pytest.mark.parametrize(("how", "form", "columns", "parts"), WAYS)
def test_gate_and_up_of_the_chosen_experts(
    run: Any, how: str, form: WeightFormat, columns: int, parts: tuple[int, ...]
) -> None:
    (gate_ENK, gate), (up_ENK, up) = (matrices(SIZE, HIDDEN, form, seed) for seed in (1, 2))
    x_TK = np.random.default_rng(3).normal(size=(ROWS + 1, HIDDEN)).astype(np.float32)
    out = np.full((ROWS + 1, EACH, SIZE), np.nan, np.float32)
    for (first, count, of_gate), (_, _, of_up) in zip(parts_of(gate, parts), parts_of(up, parts), strict=True):
        arrays = {"state": STATE, "x": x_TK, "routes": ROUTES, "gate": of_gate, "up": of_up, "out": out}
        constants = {**of_experts(HIDDEN, SIZE, form, columns), "ACTIVATION": 0, "EXPERT0": first, "EXPERTS": count}
        grid = (-(-SIZE // (columns * (4 if how == "thread" else 1))), EACH, ROWS + 1)
        out = run(f"expert_gate_up_{how}", constants, arrays, grid)["out"]
    assert np.isnan(out[ROWS:]).all()
    for row, slot in np.ndindex(ROWS, EACH):
        gate_N, up_N = (matrix[CHOSEN[row, slot]] @ x_TK[row].astype(np.float64) for matrix in (gate_ENK, up_ENK))
        np.testing.assert_allclose(out[row, slot], gate_N / (1 + np.exp(-gate_N)) * up_N, atol=2e-5)


@RUNS
@pytest.mark.parametrize(("how", "form", "columns", "parts"), WAYS)
def test_down_of_the_chosen_experts_is_weighed_and_summed(
    run: Any, how: str, form: WeightFormat, columns: int, parts: tuple[int, ...]
) -> None:
    down_ENK, down = matrices(HIDDEN, SIZE, form, 4)
    x_TkK = np.random.default_rng(5).normal(size=(ROWS + 1, EACH, SIZE)).astype(np.float32)
    out = np.full((ROWS + 1, HIDDEN), np.nan, np.float32)
    for first, count, weight in parts_of(down, parts):
        arrays = {"state": STATE, "x": x_TkK, "routes": ROUTES, "weight": weight, "out": out}
        constants = {**of_experts(SIZE, HIDDEN, form, columns), "EXPERT0": first, "EXPERTS": count, "ADD": first > 0}
        grid = (-(-HIDDEN // (columns * (4 if how == "thread" else 1))), ROWS + 1, 1)
        out = run(f"expert_down_{how}", constants, arrays, grid)["out"]
    assert np.isnan(out[ROWS:]).all()
    for row in range(ROWS):
        wanted_N = sum(
            WEIGHTS[row, j] * (down_ENK[CHOSEN[row, j]] @ x_TkK[row, j].astype(np.float64)) for j in range(2)
        )
        np.testing.assert_allclose(out[row], wanted_N, atol=2e-5)


@RUNS
def test_the_shared_expert_is_added_by_its_score(run: Any) -> None:
    x_TN, shared_TN = (np.random.default_rng(seed).normal(size=(ROWS + 1, 6)).astype(np.float32) for seed in (6, 7))
    scores_T = np.array([0.0, 3.0, -90.0, 1.0], np.float32)
    arrays = {
        "state": STATE,
        "x": x_TN,
        "shared_out": shared_TN,
        "scores": np.stack([shared_TN[:, 0], scores_T], axis=-1),
    }
    out = run("shared_expert_add", {"N": 6, "STRIDE": 2, "COLUMN": 1, "THREADS": 4}, arrays, (2, ROWS + 1, 1))["x"]
    wanted_TN = x_TN + shared_TN / (1 + np.exp(-scores_T.astype(np.float64)))[:, None]
    np.testing.assert_allclose(out[:ROWS], wanted_TN[:ROWS], atol=1e-6)
    np.testing.assert_array_equal(out[ROWS:], x_TN[ROWS:])
