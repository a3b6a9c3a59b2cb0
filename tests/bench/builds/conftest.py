"""Every sample is compiled once for all tests, side by side, in processes that needn't load PyTorch."""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec

import pytest
from tests.bench.builds import samples
from tests.warm_python import WarmPython

from inferometer.bench.builds.building import build_candidate
from inferometer.bench.builds.result import Builds
from inferometer.operators.catalogue import linear_sigmoid_mul, rms_norm
from inferometer.operators.operator import Operator

NORM, GATE = rms_norm.OPERATOR, linear_sigmoid_mul.OPERATOR
NORM_CASES = [{"token_count": T, "hidden_size": H} for T, H in ((16, 4096), (7, 4096), (3, 1001))]
GATE_CASES = [{"token_count": 64, "hidden_size": 512, "out_features": 256}]
ALL = ("sm_80", "sm_90", "sm_100", "sm_120", "gfx942", "gfx950")
HANG_S = 4.0

SAMPLES: Mapping[str, tuple[str, Operator, tuple[str, ...]]] = {
    "hanging": (samples.HANGING, NORM, ("sm_90",)),
    "matmul": (samples.MATMUL, GATE, ALL),
    "norm": ((samples.CANDIDATES / "triton_rms_norm.py").read_text("utf-8"), NORM, ("sm_90",)),
    "published_form": (samples.PUBLISHED_FORM, NORM, ("sm_90",)),
    "spilling": (samples.SPILLING, GATE, ("sm_90",)),
    "over_shared": (samples.OVER_SHARED, GATE, ("sm_90",)),
    "autotuned": (samples.AUTOTUNED, GATE, ("sm_90",)),
    "without_matrix": (samples.WITHOUT_MATRIX, GATE, ("sm_90",)),
    "syntax_error": (samples.SYNTAX_ERROR, NORM, ("sm_90",)),
    "wrong_name": (samples.WRONG_NAME, NORM, ("sm_90",)),
    "crashing": (samples.CRASHING, NORM, ("sm_90",)),
    "raising": (samples.RAISING, NORM, ("sm_90",)),
    "asks_for_a_gpu": (samples.ASKS_FOR_A_GPU, NORM, ("sm_90",)),
    "declared": (samples.DECLARED, GATE, ("sm_80",)),
}


@pytest.fixture(scope="session")
def built(warm_python: WarmPython, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Builds]:
    """The builds of a sample by its name."""
    if find_spec("triton") is None:
        pytest.skip("triton isn't installed")
    folder = tmp_path_factory.mktemp("candidates")

    def build(name: str) -> Builds:
        text, operator, architectures = SAMPLES[name]
        path = folder / f"{name}.py"
        path.write_text(text, "utf-8")
        cases = NORM_CASES if operator is NORM else GATE_CASES
        limit_s = HANG_S if name == "hanging" else 300.0
        return build_candidate(path, operator, cases, architectures, time_limit_s=limit_s)

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(os.cpu_count()) as pool:
        patch.setattr("inferometer.bench.builds.processes.Supervised", warm_python.start)
        patch.setenv("TRITON_INTERPRET", "1")  # must not reach the processes that compile
        running: dict[str, Future[Builds]] = {name: pool.submit(build, name) for name in SAMPLES}
    return lambda name: running[name].result()
