"""Every backend: what it declares, what it says where it can't run, and that its kernels can be had where it can."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from inferometer.backends import backends, require_backend
from inferometer.backends.backend import Backend
from inferometer.backends.compile import compiler
from inferometer.backends.torch import catalogue
from inferometer.bench.comparison import compare_outputs
from inferometer.errors import UnknownName
from inferometer.operators import operators
from inferometer.operators.operator import Operator

DEVICES = ("cpu", "cuda", "cuda:99", "mps")
SMOKE = "rms_norm"
OURS = ("torch", "compile", "reference", "triton")


def is_sentence(words: str) -> bool:
    """Whether a user can be known so: some words on one line."""
    return len(words) > 10 and "\n" not in words and words == words.strip()


@pytest.mark.parametrize("backend", backends().values(), ids=backends())
def test_declarations_are_whole(backend: Backend) -> None:
    assert backend.name == backend.name.lower()
    assert " " not in backend.name
    assert backend.summary.endswith(".")
    assert is_sentence(backend.summary)
    assert set(backend.operators) <= set(operators())
    assert len(set(backend.operators)) == len(backend.operators) > 0
    assert backend.packages
    assert all(isinstance(text, str) for pair in backend.settings.items() for text in pair)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("backend", backends().values(), ids=backends())
def test_what_is_missing_is_said_in_words(backend: Backend, device: str) -> None:
    why = backend.unavailable(device)
    assert why is None or is_sentence(why)
    if device == "cuda:99":
        assert why is not None


@pytest.mark.parametrize("name", OURS)
def test_without_torch_none_of_ours_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "find_spec", lambda name: None)
    assert require_backend(name).unavailable("cpu") == "torch is not installed: pip install 'inferometer[torch]'"


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("device", ["mps", "cuda:99", "cuda:x"])
def test_devices_that_are_not_here_are_named(name: str, device: str) -> None:
    pytest.importorskip("torch", reason="torch isn't installed")
    why = require_backend(name).unavailable(device)
    assert why is not None
    assert device in why


@pytest.mark.parametrize("backend", backends().values(), ids=backends())
def test_a_kernel_can_be_had_where_the_backend_runs(backend: Backend) -> None:
    pytest.importorskip("torch", reason="torch isn't installed")
    why = backend.unavailable("cpu")
    if why is not None:
        pytest.skip(why)
    name = SMOKE if SMOKE in backend.operators else min(backend.operators)
    assert callable(backend.load(name))


@pytest.mark.parametrize("name", OURS)
def test_an_unknown_operator_is_refused(name: str) -> None:
    with pytest.raises(UnknownName, match="rms_nrom"):
        require_backend(name).load("rms_nrom")


def test_what_would_be_compiled_for_every_routing_is_left_out() -> None:
    backend = require_backend("compile")
    assert set(require_backend("torch").operators) - set(backend.operators) == compiler.LEFT_OUT
    with pytest.raises(UnknownName, match="fp8_blockscale_fused_moe"):
        backend.load("fp8_blockscale_fused_moe")


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(UnknownName, match='unknown backend "tritn"'):
        require_backend("tritn")


def draw(operator: Operator, args: Any) -> dict[str, Any]:
    tensors: dict[str, Any] = operator.inputs(**args, seed=1)
    return tensors


@pytest.mark.parametrize("name", ["torch", "reference"])
def test_its_kernel_answers_as_the_operator_does(name: str) -> None:
    pytest.importorskip("torch", reason="torch isn't installed")
    operator = operators()[SMOKE]
    kernel = require_backend(name).load(SMOKE)
    for args in operator.tiny:
        tensors = draw(operator, args)
        found = kernel(*tensors.values(), **operator.settings_of(args))
        checks = compare_outputs(operator, found, operator.answer(tensors, args))
        assert all(check.is_right for check in checks)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own compiler
def test_torch_compile_makes_a_right_kernel_on_a_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    backend = require_backend("compile")
    why = backend.unavailable("cpu")
    if why is not None:
        pytest.skip(why)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    operator = operators()[SMOKE]
    tensors = draw(operator, operator.tiny[0])
    with torch.no_grad():
        found = backend.load(SMOKE)(*tensors.values(), **operator.settings_of(operator.tiny[0]))
    (check,) = compare_outputs(operator, found, operator.answer(tensors, operator.tiny[0]))
    assert check.reason is None
    assert list(tmp_path.rglob("*.cpp"))  # compiled, not run eagerly


def test_how_it_compiles_is_what_it_records(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    asked: list[dict[str, Any]] = []

    def remember(kernel: Any, **how: Any) -> Any:
        asked.append(how)
        return kernel

    monkeypatch.setattr(torch, "compile", remember)
    for kind in ("cuda", "cpu"):
        compiler.compile_kernel(SMOKE, catalogue.load_kernel(SMOKE), kind)
    compiler.compile_kernel("attention_forward", catalogue.load_kernel(SMOKE), "cuda")
    gpu, cpu, in_parts = asked
    settings = require_backend("compile").settings
    assert gpu == {"dynamic": False, "fullgraph": True, "mode": compiler.GPU_MODE}
    assert "mode" not in cpu
    assert not in_parts["fullgraph"]
    assert torch._dynamo.config.cache_size_limit >= compiler.SHAPES
    assert settings["mode"].startswith(f"{compiler.GPU_MODE} on a GPU")
    assert settings["fullgraph"] == "True, but for attention_forward, moe_align_block_size"


def test_without_a_compiler_nothing_is_compiled_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="torch isn't installed")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    why = require_backend("compile").unavailable("cpu")
    assert why == "torch.compile needs a C++ compiler for a CPU: set CXX, or have g++ or c++ or clang++ on PATH"
    monkeypatch.setenv("CXX", "/opt/cc")
    monkeypatch.setattr(shutil, "which", lambda name: name if name == "/opt/cc" else None)
    assert require_backend("compile").unavailable("cpu") is None
