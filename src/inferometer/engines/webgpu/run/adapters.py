"""Which GPU runs a program: those that wgpu finds, and the one that is taken.

Vulkan, Metal and Direct3D 12 count. Where there is no Vulkan driver, wgpu still finds an OpenGL one that has neither
f16 nor subgroups and other limits; taking it silently would measure something else, so it is refused.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from inferometer.engines.webgpu.run.driver_order import load_triton_first
from inferometer.engines.webgpu.run.executor import Adapter
from inferometer.errors import Unavailable

BACKENDS = ("Vulkan", "Metal", "D3D12")
_KINDS = ("DiscreteGPU", "IntegratedGPU", "VirtualGPU", "CPU")
"""In the order in which they are preferred; what wgpu calls otherwise comes last."""
_FEATURES = {"shader-f16": "shader-f16", "subgroup": "subgroups", "subgroups": "subgroups"}
"""wgpu's names to ours."""
_DRIVERS = (
    "Install a driver for the GPU; without a GPU a Vulkan driver for the CPU: make webgpu-deps, or\n"
    "apt-get install mesa-vulkan-drivers libvulkan1"
)


def import_wgpu() -> Any:
    """The package.

    Raises:
        Unavailable: It isn't installed, or is a version without what we need.
    """
    try:
        import wgpu
        import wgpu.backends.wgpu_native
    except ImportError as error:
        raise Unavailable(f"wgpu: {error}", hint="pip install 'inferometer[webgpu]'") from error
    return wgpu


def find_adapter(name: str | None = None) -> Any:
    """The adapter of wgpu: the one with `name` in its name or driver, in any case; else the fastest kind that there is.

    Raises:
        Unavailable: None, or none of that name; those that there are are listed.
    """
    wgpu = import_wgpu()
    load_triton_first()
    with _runtime_folder():
        found = list(wgpu.gpu.enumerate_adapters_sync())
    return choose_adapter(found, name)


def choose_adapter(found: Sequence[Any], name: str | None) -> Any:
    """As `find_adapter`, of these."""
    listed = ", ".join(_title(each) for each in found) or "no adapters"
    usable = [each for each in found if each.info["backend_type"] in BACKENDS]
    if not usable:
        raise Unavailable(f"WebGPU: expected an adapter of {', '.join(BACKENDS)}, found {listed}", hint=_DRIVERS)
    if name is not None:
        usable = [each for each in usable if name.casefold() in _title(each).casefold()]
        if not usable:
            raise Unavailable(f'WebGPU: expected an adapter with "{name}" in its name, found {listed}')
    return min(usable, key=lambda each: _rank(each.info["adapter_type"]))


def describe(found: Any, ticks: bool) -> Adapter:
    """What our programs must know of an adapter of wgpu. `ticks`: its timestamps are known in ns."""
    limits, info = found.limits, found.info
    features = {_FEATURES[each] for each in found.features if each in _FEATURES}
    if ticks and "timestamp-query" in found.features:
        features.add("timestamp-query")
    return Adapter(
        name=info["device"],
        backend=info["backend_type"],
        kind=info["adapter_type"],
        features=frozenset(features),
        most_binding_bytes=limits["max-storage-buffer-binding-size"],
        most_buffer_bytes=limits["max-buffer-size"],
        most_storage_buffers=limits["max-storage-buffers-per-shader-stage"],
        most_workgroup_threads=limits["max-compute-invocations-per-workgroup"],
        description=" ".join(part for part in (info["vendor"], info["description"]) if part),
    )


def open_device(found: Any) -> Any:
    """Its device, with all of its limits and those features that our kernels may use."""
    wanted = [each for each in found.features if each in _FEATURES or each == "timestamp-query"]
    with _runtime_folder():
        try:
            return found.request_device_sync(required_features=wanted, required_limits=dict(found.limits))
        except RuntimeError as error:
            raise Unavailable(f"{_title(found)}: no device: {error}") from error


def _title(found: Any) -> str:
    info = found.info
    return f"{info['device']} ({info['backend_type']}, {info['adapter_type']}: {info['description']})"


def _rank(kind: str) -> int:
    return _KINDS.index(kind) if kind in _KINDS else len(_KINDS)


@contextmanager
def _runtime_folder() -> Iterator[None]:
    """Mesa complains on stderr, once for each library, where XDG_RUNTIME_DIR isn't set: set it for these calls only."""
    if os.name != "posix" or "XDG_RUNTIME_DIR" in os.environ:
        yield
        return
    os.environ["XDG_RUNTIME_DIR"] = tempfile.gettempdir()
    try:
        yield
    finally:
        del os.environ["XDG_RUNTIME_DIR"]
