"""What the adapters of vendor libraries share: why one is unavailable, what is kept for a batch."""

import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from inferometer.backends import require_backend
from inferometer.backends.vendor import load_from, once_a_batch, part
from inferometer.errors import Unavailable, UnknownName
from inferometer.operators import operators

BACKENDS = ("flashinfer", "vllm", "sgl-kernel", "aiter")


def installed(monkeypatch: pytest.MonkeyPatch, *names: str, places: tuple[str, ...] = ()) -> None:
    """Only these modules are found, in these folders."""

    def find_spec(name: str) -> ModuleSpec | None:
        if name not in names:
            return None
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = list(places)
        return spec

    monkeypatch.setattr("inferometer.backends.vendor.find_spec", find_spec)


@pytest.mark.parametrize("name", BACKENDS)
def test_operators_are_the_catalogues(name: str) -> None:
    backend = require_backend(name)
    assert backend.name == name
    assert set(backend.operators) <= set(operators())
    assert list(backend.operators) == sorted(set(backend.operators))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("flashinfer", "flashinfer is not installed: pip install flashinfer-python"),
        ("vllm", "vllm is not installed: pip install vllm"),
        ("sgl-kernel", "sgl-kernel is not installed: pip install sglang-kernel"),
        ("aiter", "aiter is not installed: built from source, github.com/ROCm/aiter"),
    ],
)
def test_what_is_not_installed_is_told_with_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    installed(monkeypatch, "torch")
    assert require_backend(name).unavailable("cuda") == words
    assert require_backend(name).unavailable("cpu") == words
    installed(monkeypatch)
    assert require_backend(name).unavailable("cuda") == "torch is not installed: pip install 'inferometer[torch]'"


def test_another_package_called_aiter_is_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    installed(monkeypatch, "torch", "aiter", places=(str(tmp_path),))
    found = require_backend("aiter").unavailable("cuda")
    assert found is not None
    assert found.startswith("the aiter that is installed is another package")


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch isn't installed")
def test_a_gpu_of_the_right_vendor_is_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import torch

    (tmp_path / "ops").mkdir()
    modules = ("torch", "flashinfer", "vllm", "sgl_kernel", "aiter")
    installed(monkeypatch, *modules, places=(str(tmp_path),))
    backends = {name: require_backend(name).unavailable for name in BACKENDS}
    needs = "{}: its kernels need a GPU"
    for name, unavailable in backends.items():
        assert unavailable("cpu") == f"{needs.format(name)}, and cpu is none"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "hip", None)
    assert backends["vllm"]("cuda") == f"{needs.format('vllm')}, and torch finds none"
    assert backends["aiter"]("cuda") == f"{needs.format('aiter')} of AMD, and torch is not built for ROCm"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert backends["vllm"]("cuda:2") == "vllm: torch finds no cuda:2 here, of 2"
    assert [backends[name]("cuda:1") for name in ("flashinfer", "vllm", "sgl-kernel")] == [None] * 3
    monkeypatch.setattr(torch.version, "hip", "6.4")
    assert backends["flashinfer"]("cuda") == f"{needs.format('flashinfer')} of NVIDIA, and torch is not built for CUDA"
    assert [backends[name]("cuda") for name in ("vllm", "sgl-kernel", "aiter")] == [None] * 3


def test_what_a_library_lacks_is_refused() -> None:
    with pytest.raises(Unavailable, match=r"no_such_library\.norm can't be imported: No module named"):
        part("no_such_library.norm", "rms_norm")
    with pytest.raises(Unavailable, match="math has no log3 in the version of math that is installed"):
        part("math", "log3")
    with pytest.raises(UnknownName, match='unknown kernel "topk_filter"'):
        load_from({"rms_norm": lambda: len}, "topk_filter")


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch isn't installed")
def test_what_is_made_of_tensors_is_kept_until_they_are_written_to() -> None:
    import torch

    made: list[Any] = []

    def make(*arguments: Any) -> int:
        made.append(arguments)
        return len(made)

    get = once_a_batch(make)
    one, other = torch.tensor([1]), torch.tensor([1])
    assert [get(one, 7), get(one, 7), get(one, 8), get(one, 7)] == [1, 1, 2, 1]
    assert [get(other, 7), get(one, 8), get(one, 7)] == [3, 2, 4]  # two are kept; other's took the place of (one, 7)
    assert [old for old, *_ in made] == [None, None, 1, 2]
    one += 1
    assert [get(one, 7), get(one, 7)] == [5, 5]
    with torch.inference_mode():
        uncounted = torch.tensor([1])
    assert [get(uncounted, 7), get(uncounted, 7)] == [6, 7]


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch isn't installed")
def test_no_graph_captures_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    on_gpu = type("OnGpu", (torch.Tensor,), {"is_cuda": True})
    get = once_a_batch(lambda old, tensor: int(tensor))
    tensor = torch.tensor(3).as_subclass(on_gpu)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    assert get(tensor) == 3
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with pytest.raises(RuntimeError, match="a graph can't hold that"):
        get(tensor)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch isn't installed")
def test_a_tensor_that_is_gone_is_never_taken_for_another() -> None:
    import torch

    get = once_a_batch(lambda old, tensor: int(tensor))
    assert [get(torch.tensor(value)) for value in range(20)] == list(range(20))
