"""What an adapter reaches is measured on it; one without timestamps has no rates."""

from dataclasses import replace

import numpy as np
import pytest
from tests.backends.wgsl_running import run_on_device

from inferometer.backends.wgsl.numpy_kernels import find_reference
from inferometer.engines.webgpu.run.adapter_rates import measure_rates
from inferometer.engines.webgpu.run.numpy_executor import NumpyExecutor


def test_rates_are_those_of_the_best_way() -> None:
    rates = measure_rates(NumpyExecutor())
    assert rates is not None
    assert rates.bytes_per_s > 1e8  # any memory of this century
    assert rates.how in ("copying 67.109 MB", "reading 67.109 MB")
    assert 0 < rates.empty_pass_ns < 1e8


def test_without_timestamps_there_are_none() -> None:
    executor = NumpyExecutor()
    executor.adapter = replace(executor.adapter, features=frozenset())
    assert measure_rates(executor) is None


@pytest.mark.parametrize(("kernel", "words", "groups"), [("copy", 1, 1), ("copy", 1000, 3), ("read_sum", 1000, 3)])
def test_the_kernels_do_what_they_say(kernel: str, words: int, groups: int) -> None:
    x = np.random.default_rng(1).integers(0, 2**32, 4 * words, np.uint32)
    arrays = {"x": x, "out": np.zeros(max(4 * words, 4 * 64 * groups), np.uint32)}
    constants = {"WORDS": words, "THREADS": 64}
    wanted = {name: array.copy() for name, array in arrays.items()}
    find_reference(kernel)(wanted, constants, (groups, 1, 1))
    if kernel == "copy":
        assert (wanted["out"][: 4 * words] == x).all()
    else:
        sums = [sum(int(each) for each in x.reshape(-1, 4)[i :: 64 * groups, 0]) % 2**32 for i in range(64 * groups)]
        assert wanted["out"].reshape(-1, 4)[:, 0][: 64 * groups].tolist() == sums
    found = run_on_device(kernel, constants, arrays, (groups, 1, 1))
    assert (found["out"] == wanted["out"]).all()
