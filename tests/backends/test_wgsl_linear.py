"""Kernels of products: the device against the NumPy counterpart, and that against float64, at sizes no tile divides."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tests.backends.weight_rows import random_rows
from tests.backends.wgsl_running import run_on_device, run_on_numpy

from inferometer.backends.wgsl.source import read_kernel
from inferometer.backends.wgsl.weight_formats import (
    F16,
    F32,
    Q4,
    Q4K,
    Q5,
    Q5K,
    Q6K,
    Q8,
    WeightFormat,
    decode,
    format_of,
)

TOLERANCE: dict[str, Any] = {"rtol": 1e-5, "atol": 1e-5}  # sums of float32 in another order; results are about 1
GATE_TOLERANCE = {
    "rtol": 1e-4,
    "atol": 1e-5,
}  # and exp and tanh, which WGSL lets be off by some units in the last place
EPS = 1e-6
TILES = {
    "matmul_subgroups": (8, 16),
    "matmul_workgroup": (32, 64),
    "matmul_gate_up_subgroups": (4, 16),
    "matmul_gate_up_workgroup": (16, 64),
}
"""Columns and rows of a workgroup, the columns of subgroups for each thread."""


@dataclass(frozen=True)
class Case:
    """A dispatch with random operands: `tokens` rows, K to N; `out` begins as NaN and is a row larger than needed."""

    kernel: str
    K: int
    N: int
    tokens: int = 1
    constants: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        return "-".join(
            [self.kernel, f"{self.K}x{self.N}", f"{self.tokens}", *(f"{k}{v}" for k, v in self.constants.items())]
        )

    @property
    def has_many_rows(self) -> bool:
        return self.kernel.startswith("matmul_")

    @property
    def form(self) -> WeightFormat:
        return format_of(self.constants.get("WEIGHTS", F16.code))

    @property
    def every(self) -> dict[str, float]:
        given = {"K": self.K, "N": self.N, "STRIDE": self.N, **self.constants}
        return {k: v for k, v in given.items() if k in read_kernel(self.kernel).constants}

    @property
    def grid(self) -> tuple[int, int, int]:
        every = {**read_kernel(self.kernel).defaults, **self.every}
        if self.has_many_rows:
            columns, rows = TILES.get(self.kernel) or (every["TILE_N"], every["TILE_M"])
            return _pieces(self.N, columns * every.get("THREADS", 1)), _pieces(self.tokens, rows), 1
        if "SPLITS" in every and self.kernel == "linear_split":
            return _pieces(self.N, every["THREADS"]), int(every["SPLITS"]), 1
        one_each = self.kernel.endswith("_thread") or self.kernel == "linear_sum"
        per_group = every.get("COLUMNS", 1) * (every["THREADS"] if one_each else 1)
        return _pieces(self.N, per_group), 1, 1

    def arrays(self) -> dict[str, Any]:
        rng = np.random.default_rng(self.K * 1000 + self.N)
        stride, T = int(self.constants.get("STRIDE", self.N)), self.tokens
        splits = int(self.constants.get("SPLITS", 1))
        every = {
            "state": np.array([7, T, 0, 0, 0, 0, 0, 0], np.uint32),
            "x": rng.standard_normal((T, self.K), np.float32),
            "bias": rng.standard_normal(self.N, np.float32),
            "norm": rng.standard_normal(self.K, np.float32),
            "out": np.full((T + 1, stride), np.nan, np.float32),
            "partials": rng.standard_normal((splits, self.N), np.float32),
        }
        if self.constants.get("ADD"):
            first = int(self.constants.get("OUT0", 0))
            every["out"][0, first : first + self.N] = rng.standard_normal(self.N, np.float32)
        for name in ("weight", "gate", "up"):
            every[name] = random_rows(self.form, self.N, self.K, rng)
        if self.kernel == "linear_split":
            every["partials"] = np.full((splits + 1, self.N), np.nan, np.float32)
        return {binding.name: every[binding.name] for binding in read_kernel(self.kernel).bindings}

    def expected(self) -> dict[str, Any]:
        """What is written, by the formulas in float64."""
        arrays = {
            name: decode(array, self.N, self.K, self.form) if name in ("weight", "gate", "up") else array
            for name, array in self.arrays().items()
        }
        arrays = {name: array.astype(np.float64) for name, array in arrays.items()}
        c = {**read_kernel(self.kernel).defaults, **self.every}
        if self.kernel == "linear_sum":
            y = arrays["partials"].sum(0, keepdims=True)
        else:
            y = _product(arrays, c, last=self.tokens - 1, all_rows=self.has_many_rows)
        if self.kernel == "linear_split":
            return {"partials": np.vstack([y, arrays["partials"][:-1]])}
        if c.get("HAS_BIAS"):
            y = y + arrays["bias"]
        first = int(c["OUT0"])
        before = arrays["out"][: len(y), first : first + self.N]
        arrays["out"][: len(y), first : first + self.N] = before + y if c.get("ADD") else y
        return {"out": arrays["out"]}


def _product(arrays: dict[str, Any], c: dict[str, float], last: int, *, all_rows: bool) -> Any:
    row = last if c.get("LAST_ROW") else 0
    x = arrays["x"] if all_rows else arrays["x"][row : row + 1]
    if "norm" in arrays:
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + c["EPS"]) * (c["OFFSET"] + arrays["norm"])
    if "gate" in arrays:
        act = _silu if c["ACTIVATION"] == 0 else _gelu_tanh
        return act(x @ arrays["gate"].T) * (x @ arrays["up"].T)
    return x @ arrays["weight"].T


def _pieces(whole: float, part: float) -> int:
    return -int(-whole // part)


def _silu(x: Any) -> Any:
    return x / (1 + np.exp(-x))


def _gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))


ONE_ROW = [
    Case("linear_thread", 8, 1),
    Case("linear_thread", 64, 63, 1, {"THREADS": 8}),
    Case("linear_thread", 136, 129, 1, {"THREADS": 16, "COLUMNS": 2, "HAS_BIAS": 1}),
    Case("linear_thread", 136, 129, 3, {"THREADS": 4, "COLUMNS": 4, "LAST_ROW": 1}),
    Case("linear_thread", 24, 129, 1, {"THREADS": 2, "COLUMNS": 16, "OUT0": 5, "STRIDE": 150, "HAS_BIAS": 1}),
    Case("linear_thread", 24, 300, 1, {"THREADS": 256}),
    Case("linear_thread", 136, 129, 1, {"COLUMNS": 8, "THREADS": 16, "ADD": 1, "OUT0": 5, "STRIDE": 140}),
    *(
        case
        for kernel in ("linear_workgroup", "linear_subgroups", "linear_f16")
        for case in (
            Case(kernel, 8, 1),
            Case(kernel, 136, 129, 3, {"THREADS": 8, "COLUMNS": 2, "HAS_BIAS": 1, "LAST_ROW": 1}),
            Case(kernel, 264, 63, 1, {"THREADS": 128, "COLUMNS": 1}),
            Case(kernel, 264, 63, 1, {"THREADS": 4, "COLUMNS": 16, "OUT0": 5, "STRIDE": 70}),
            Case(kernel, 2056, 7, 1, {"THREADS": 256}),
            Case(kernel, 136, 129, 1, {"ADD": 1, "HAS_BIAS": 1}),
        )
    ),
    Case("linear_split", 8, 1, 1, {"SPLITS": 1}),
    Case("linear_split", 136, 129, 3, {"SPLITS": 4, "THREADS": 16, "LAST_ROW": 1}),
    Case("linear_split", 24, 63, 1, {"SPLITS": 8, "THREADS": 32}),
    Case("linear_sum", 8, 1, 1, {"SPLITS": 1}),
    Case("linear_sum", 8, 129, 1, {"SPLITS": 8, "THREADS": 8, "HAS_BIAS": 1, "OUT0": 5, "STRIDE": 140}),
    Case("linear_sum", 8, 129, 1, {"SPLITS": 2, "ADD": 1, "HAS_BIAS": 1}),
    Case("norm_linear_thread", 8, 1, 1, {"EPS": EPS}),
    Case("norm_linear_thread", 136, 129, 1, {"EPS": EPS, "OFFSET": 1, "THREADS": 8, "COLUMNS": 4, "HAS_BIAS": 1}),
    Case("norm_linear_thread", 64, 63, 3, {"EPS": EPS, "COLUMNS": 2, "OUT0": 5, "STRIDE": 70}),
]
MANY_ROWS = [
    Case("matmul_tile", 8, 1),
    Case("matmul_tile", 64, 63, 63),
    Case("matmul_tile", 136, 129, 5, {"TILE_M": 4, "TILE_N": 16, "HAS_BIAS": 1}),
    Case("matmul_tile", 24, 17, 129, {"TILE_M": 64, "TILE_N": 64, "OUT0": 3, "STRIDE": 40}),
    Case("matmul_subgroups", 136, 129, 63, {"HAS_BIAS": 1}),
    Case("matmul_workgroup", 8, 1),
    Case("matmul_workgroup", 136, 129, 63, {"HAS_BIAS": 1}),
    Case("matmul_workgroup", 24, 17, 129, {"OUT0": 3, "STRIDE": 40}),
    Case("matmul_f16", 8, 1),
    Case("matmul_f16", 136, 129, 63, {"HAS_BIAS": 1}),
    Case("matmul_f16", 64, 63, 5, {"TILE_M": 8, "TILE_N": 256, "OUT0": 3, "STRIDE": 70}),
]
GATES = [
    Case("gate_up_thread", 8, 1, 1, {"ACTIVATION": 0}),
    Case("gate_up_thread", 136, 129, 2, {"ACTIVATION": 1, "THREADS": 8, "COLUMNS": 2}),
    Case("gate_up_thread", 64, 63, 1, {"ACTIVATION": 0, "COLUMNS": 8, "THREADS": 4, "OUT0": 3, "STRIDE": 70}),
    *(
        case
        for kernel in ("gate_up_workgroup", "gate_up_subgroups", "gate_up_f16")
        for case in (
            Case(kernel, 8, 1, 1, {"ACTIVATION": 0}),
            Case(kernel, 136, 129, 3, {"ACTIVATION": 1, "THREADS": 8, "COLUMNS": 2}),
            Case(kernel, 264, 63, 1, {"ACTIVATION": 0, "THREADS": 128, "COLUMNS": 1}),
            Case(kernel, 264, 63, 1, {"ACTIVATION": 1, "THREADS": 4, "COLUMNS": 16, "OUT0": 5, "STRIDE": 70}),
        )
    ),
    Case("norm_gate_up_thread", 8, 1, 1, {"ACTIVATION": 0, "EPS": EPS}),
    Case("norm_gate_up_thread", 136, 129, 2, {"ACTIVATION": 1, "EPS": EPS, "OFFSET": 1, "THREADS": 8, "COLUMNS": 2}),
    Case("norm_gate_up_thread", 64, 63, 1, {"ACTIVATION": 0, "EPS": EPS, "COLUMNS": 8, "OUT0": 3, "STRIDE": 70}),
    Case("matmul_gate_up_subgroups", 24, 63, 129, {"ACTIVATION": 0, "OUT0": 3, "STRIDE": 70}),
    Case("matmul_gate_up_workgroup", 8, 1, 1, {"ACTIVATION": 0}),
    Case("matmul_gate_up_workgroup", 136, 129, 63, {"ACTIVATION": 1}),
    Case("matmul_gate_up", 8, 1, 1, {"ACTIVATION": 0}),
    Case("matmul_gate_up", 136, 129, 63, {"ACTIVATION": 1}),
    Case("matmul_gate_up", 24, 63, 129, {"ACTIVATION": 0, "TILE_M": 8, "TILE_N": 64, "OUT0": 3, "STRIDE": 70}),
]
FORMATS_OF_WEIGHTS = [
    *(
        Case("linear_thread", 160, 129, 1, {"WEIGHTS": form.code, "THREADS": 16, "COLUMNS": 8, "HAS_BIAS": 1})
        for form in (F32, Q8, Q4)
    ),
    Case("linear_thread", 32, 63, 3, {"WEIGHTS": Q4.code, "COLUMNS": 2, "LAST_ROW": 1}),
    Case("matmul_subgroups", 160, 70, 19, {"WEIGHTS": Q4.code}),
    Case("matmul_workgroup", 160, 70, 67, {"WEIGHTS": Q8.code}),
    Case("matmul_workgroup", 32, 33, 5, {"WEIGHTS": F32.code, "HAS_BIAS": 1}),
    Case("gate_up_thread", 160, 129, 1, {"WEIGHTS": Q4.code, "ACTIVATION": 1, "THREADS": 16, "COLUMNS": 4}),
    Case("matmul_gate_up_subgroups", 160, 70, 19, {"WEIGHTS": Q8.code, "ACTIVATION": 1}),
    Case("matmul_gate_up_workgroup", 160, 70, 67, {"WEIGHTS": Q4.code, "ACTIVATION": 0}),
    *(
        case
        for form in (Q5, Q4K, Q5K, Q6K)
        for case in (
            Case("linear_thread", 768, 129, 1, {"WEIGHTS": form.code, "THREADS": 16, "COLUMNS": 8, "HAS_BIAS": 1}),
            Case("matmul_workgroup", 512, 40, 5, {"WEIGHTS": form.code}),
        )
    ),
    Case("linear_thread", 96, 33, 1, {"WEIGHTS": Q5.code, "COLUMNS": 2}),
    Case("gate_up_thread", 512, 65, 1, {"WEIGHTS": Q4K.code, "ACTIVATION": 0, "THREADS": 16, "COLUMNS": 4}),
    Case("matmul_subgroups", 512, 70, 19, {"WEIGHTS": Q6K.code}),
    Case("matmul_gate_up_subgroups", 256, 70, 19, {"WEIGHTS": Q5K.code, "ACTIVATION": 1}),
    Case("matmul_gate_up_workgroup", 96, 70, 7, {"WEIGHTS": Q5.code, "ACTIVATION": 0}),
]
CASES = [*ONE_ROW, *MANY_ROWS, *GATES, *FORMATS_OF_WEIGHTS]


def _tolerance(case: Case) -> dict[str, Any]:
    return GATE_TOLERANCE if "ACTIVATION" in case.every else TOLERANCE


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_counterpart_is_the_formula_and_writes_nothing_else(case: Case) -> None:
    after = run_on_numpy(case.kernel, case.every, case.arrays(), case.grid)

    for name, expected in case.expected().items():
        found = after[name]
        if name == "partials":  # how K is split is the kernel's choice: only the sum is a fact
            found = np.vstack([found[:-1].sum(0), found[-1:]])
            expected = np.vstack([expected[0], np.full_like(expected[0], np.nan)])
        np.testing.assert_allclose(found, expected, **_tolerance(case))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_device_agrees_with_the_counterpart_and_writes_nothing_else(case: Case) -> None:
    device = run_on_device(case.kernel, case.every, case.arrays(), case.grid)

    numpy = run_on_numpy(case.kernel, case.every, case.arrays(), case.grid)
    for name in case.arrays():
        np.testing.assert_allclose(device[name], numpy[name], **_tolerance(case))


FOLDED = [
    Case("linear_thread", 136, 129, 1, {"THREADS": 4, "COLUMNS": 8}),
    Case("norm_linear_thread", 136, 129, 1, {"EPS": EPS, "THREADS": 4, "COLUMNS": 8}),
    Case("gate_up_thread", 136, 129, 1, {"ACTIVATION": 1, "THREADS": 4, "COLUMNS": 8}),
    Case("norm_gate_up_thread", 136, 129, 1, {"ACTIVATION": 1, "EPS": EPS, "THREADS": 4, "COLUMNS": 8}),
    *(Case(kernel, 136, 129, 1, {"COLUMNS": 32}) for kernel in ("linear_workgroup", "linear_subgroups", "linear_f16")),
    Case("gate_up_workgroup", 136, 129, 1, {"ACTIVATION": 1, "COLUMNS": 32}),
    Case("gate_up_subgroups", 136, 129, 1, {"ACTIVATION": 1, "COLUMNS": 32}),
    Case("gate_up_f16", 136, 129, 1, {"ACTIVATION": 1, "COLUMNS": 32}),
]


@pytest.mark.parametrize("case", FOLDED, ids=str)
def test_more_workgroups_than_one_axis_has_go_over_two(case: Case) -> None:
    assert case.grid == (5, 1, 1)

    device = run_on_device(case.kernel, case.every, case.arrays(), (3, 2, 1))

    np.testing.assert_allclose(device["out"], case.expected()["out"], **_tolerance(case))


@pytest.mark.parametrize("run", [run_on_numpy, run_on_device])
@pytest.mark.parametrize("case", [case for case in CASES if case.N == 1], ids=str)
def test_a_pass_without_rows_writes_nothing(case: Case, run: Any) -> None:
    arrays = case.arrays()
    arrays["state"][1] = 0

    after = run(case.kernel, case.every, arrays, case.grid)

    for name, given in arrays.items():
        np.testing.assert_array_equal(after[name], given)
