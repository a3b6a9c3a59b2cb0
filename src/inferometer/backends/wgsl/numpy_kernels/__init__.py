"""What each WGSL kernel computes, in NumPy: the reference of tests, and what `engines.webgpu.run.numpy_executor` runs.

A module has one function:

    run(arrays, constants, grid)

`arrays` are flat views of the bindings by name, in the type of the binding (float32 for f32 and its vectors, uint32,
float16 for f16); written in place. `constants` holds every override, defaults included. `grid` are the workgroups.
float32 is added up in NumPy's order, so the last digits differ from a device's.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol, cast


class NumpyKernel(Protocol):
    """As the module says."""

    def __call__(self, arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
        """Run one dispatch."""


def find_reference(name: str) -> NumpyKernel:
    """The counterpart that a kernel's `reference` names."""
    return cast("NumpyKernel", import_module(f"inferometer.backends.wgsl.numpy_kernels.{name}").run)
