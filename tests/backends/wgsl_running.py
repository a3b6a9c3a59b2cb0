"""One dispatch of a WGSL kernel on a real device, and of its NumPy counterpart: the same arguments, the same answer.

Both take every binding's array by name, leave those alone, and return what the bindings hold afterwards, in the
shapes and types that were given. The device has the limits that WebGPU promises everywhere, not the adapter's own.
"""

import os
import re
import tempfile
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

from inferometer.backends.wgsl.numpy_kernels import find_reference
from inferometer.backends.wgsl.source import KernelSource, read_kernel

WGPU_FEATURES = {"shader-f16": "shader-f16", "subgroups": "subgroup"}
"""Our names of features, and wgpu's."""
_TYPES = {"f32": np.float32, "u32": np.uint32, "i32": np.int32, "f16": np.float16}

Arrays = Mapping[str, Any]


def needs_device(kernel: str | None = None) -> Any:
    """The wgpu device of this process; the test skips where there is none, or none with the features of the kernel."""
    pytest.importorskip("wgpu", reason="needs wgpu: pip install 'inferometer[webgpu]'")
    device = _device()
    if device is None:
        pytest.skip("needs a Vulkan adapter: make webgpu-deps installs one for CPUs")
    for feature in sorted(read_kernel(kernel).requires) if kernel else ():
        if WGPU_FEATURES[feature] not in device.features:
            pytest.skip(f"{kernel} needs {feature}, which this adapter lacks")
    return device


def run_on_device(
    kernel: str, constants: Mapping[str, float], arrays: Arrays, grid: tuple[int, int, int]
) -> dict[str, Any]:
    """What the bindings hold after one dispatch on the device; the test skips where it can't run.

    Args:
        kernel: The stem of a file in `backends/wgsl`.
        constants: Overrides; those left out have their defaults.
        arrays: One for each binding, by its name; bytes as the kernel reads them.
        grid: Workgroups along x, y, z.
    """
    device = needs_device(kernel)
    source = read_kernel(kernel)
    _check_names(source, arrays)
    usage = 0x80 | 0x4  # STORAGE, COPY_SRC
    buffers = {
        b.name: device.create_buffer_with_data(data=_bytes(arrays[b.name]), usage=usage) for b in source.bindings
    }
    pipeline = compile_kernel(kernel, tuple(sorted(constants.items())))
    group = device.create_bind_group(
        layout=pipeline.get_bind_group_layout(0),
        entries=[
            {"binding": b.number, "resource": {"buffer": buffers[b.name], "offset": 0, "size": buffers[b.name].size}}
            for b in source.bindings
        ],
    )
    encoder = device.create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(pipeline)
    compute.set_bind_group(0, group)
    compute.dispatch_workgroups(*grid)
    compute.end()
    device.queue.submit([encoder.finish()])
    after = {}
    for name, buffer in buffers.items():
        given = np.asarray(arrays[name])
        read = np.frombuffer(device.queue.read_buffer(buffer), np.uint8)[: given.nbytes]
        after[name] = read.view(given.dtype).reshape(given.shape).copy()
        buffer.destroy()
    return after


def run_on_numpy(
    kernel: str, constants: Mapping[str, float], arrays: Arrays, grid: tuple[int, int, int]
) -> dict[str, Any]:
    """What the bindings hold after the kernel's NumPy counterpart; arguments as of `run_on_device`."""
    source = read_kernel(kernel)
    _check_names(source, arrays)
    after = {name: np.array(array, order="C") for name, array in arrays.items()}
    views = {b.name: after[b.name].reshape(-1).view(_element(b.type)) for b in source.bindings}
    for binding in source.bindings:
        views[binding.name].flags.writeable = binding.access == "read_write"
    find_reference(source.reference)(views, {**source.defaults, **constants}, grid)
    return after


@cache
def compile_kernel(kernel: str, constants: tuple[tuple[str, float], ...]) -> Any:
    """The pipeline of a kernel on the shared device; skips as `needs_device`, raises what the compiler says."""
    device = needs_device(kernel)
    source = read_kernel(kernel)
    module = device.create_shader_module(code=source.text_for("naga"))
    group = device.create_bind_group_layout(
        entries=[
            {
                "binding": b.number,
                "visibility": 4,  # COMPUTE
                "buffer": {"type": "read-only-storage" if b.access == "read" else "storage"},
            }
            for b in source.bindings
        ]
    )
    return device.create_compute_pipeline(
        layout=device.create_pipeline_layout(bind_group_layouts=[group]),
        compute={"module": module, "entry_point": "main", "constants": dict(constants)},
    )


@cache
def _device() -> Any:
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())  # else the drivers' loader complains on stderr
    import wgpu

    from inferometer.engines.webgpu.run.driver_order import load_triton_first

    load_triton_first()
    try:
        adapter = wgpu.gpu.request_adapter_sync()
    except RuntimeError:  # what wgpu raises where there is no adapter of any kind
        return None
    if adapter.info["backend_type"] != "Vulkan":  # without a Vulkan driver it is OpenGL, with other features
        return None
    wanted = {*WGPU_FEATURES.values(), "timestamp-query"}
    return adapter.request_device_sync(required_features=sorted(wanted.intersection(adapter.features)))


def _check_names(source: KernelSource, arrays: Arrays) -> None:
    wanted = {binding.name for binding in source.bindings}
    assert set(arrays) == wanted, f"{source.name}: bindings {sorted(wanted)}, arrays {sorted(arrays)}"


def _bytes(array: Any) -> bytes:
    data = np.ascontiguousarray(array).tobytes()
    return data + bytes(-len(data) % 16 or (16 if not data else 0))  # whole vec4s: a binding holds one element at least


def _element(binding_type: str) -> Any:
    match = re.search(r"[fui](?:32|16)", binding_type.removeprefix("array").removeprefix("<atomic"))
    assert match, f"no element type in {binding_type}"
    return _TYPES[match.group()]
