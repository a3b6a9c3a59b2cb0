"""A program's kernels, compiled for a device of wgpu, and its dispatches bound to their buffers."""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from inferometer.backends.wgsl.source import KernelSource
from inferometer.engines.webgpu.program import Dispatch, Phase, Pipeline, Program
from inferometer.engines.webgpu.run.adapters import import_wgpu
from inferometer.engines.webgpu.run.device_errors import DeviceErrors
from inferometer.engines.webgpu.run.limits import Sources
from inferometer.errors import Unavailable

Step = tuple[Any, Any, Dispatch]
"""Handles of a pipeline and a bind group, and the dispatch that they are of."""


class DevicePipelines:
    """A device's. Compiled ones stay for later programs, and with them what the driver made of them.

    Handles that `make` gives are good until the next `make`, while this is kept.
    """

    def __init__(self, device: Any, adapter_name: str, errors: DeviceErrors, sources: Sources) -> None:
        self._device, self._adapter_name = device, adapter_name
        self._errors, self._sources = errors, sources
        self._wgpu = import_wgpu()
        self._modules: dict[KernelSource, Any] = {}
        self._layouts: dict[tuple[str, ...], tuple[Any, Any]] = {}
        self._pipelines: dict[tuple[KernelSource, tuple[tuple[str, float], ...]], Any] = {}
        self._groups: dict[Any, Any] = {}

    def make(self, program: Program, buffers: Mapping[str, Any]) -> dict[Phase, list[Step]]:
        """What to launch, in order. `buffers`: wgpu's, by name.

        Raises:
            Unavailable: A kernel doesn't compile.
        """
        self._groups = {}
        layouts, compiled = [], []
        for pipeline in program.pipelines:
            source = self._sources(pipeline.kernel)
            group_layout, layout = self._layout(tuple(binding.access for binding in source.bindings))
            key = source, tuple(sorted(pipeline.constants.items()))
            if key not in self._pipelines:
                self._pipelines[key] = self._compile(source, pipeline, layout)
            compiled.append(self._pipelines[key])
            layouts.append(group_layout)
        return {
            phase: [
                (compiled[each.pipeline]._internal, self._group(each, layouts[each.pipeline], buffers), each)
                for each in dispatches
            ]
            for phase, dispatches in program.phases.items()
        }

    def _layout(self, access: tuple[str, ...]) -> tuple[Any, Any]:
        """Of bind group and pipeline. Written out: one that wgpu derives lacks what a kernel happens not to use."""
        if access not in self._layouts:
            kinds = {"read": "read-only-storage", "read_write": "storage"}
            entries = [
                {"binding": number, "visibility": self._wgpu.ShaderStage.COMPUTE, "buffer": {"type": kinds[each]}}
                for number, each in enumerate(access)
            ]
            group = self._device.create_bind_group_layout(entries=entries)
            self._layouts[access] = group, self._device.create_pipeline_layout(bind_group_layouts=[group])
        return self._layouts[access]

    def _compile(self, source: KernelSource, pipeline: Pipeline, layout: Any) -> Any:
        try:
            if source not in self._modules:
                self._modules[source] = self._device.create_shader_module(code=source.text_for("naga"))
            constants = {name: float(value) for name, value in pipeline.constants.items()}
            stage = {"module": self._modules[source], "entry_point": "main", "constants": constants}
            return self._device.create_compute_pipeline(layout=layout, compute=stage)
        except self._wgpu.GPUError as error:
            if self._errors.is_lost():
                raise
            self._refuse(pipeline, source, error)

    def _refuse(self, pipeline: Pipeline, source: KernelSource, error: BaseException) -> NoReturn:
        given = ", ".join(f"{name}={value:g}" for name, value in pipeline.constants.items())
        reason = " ".join(source.name_places(str(error)).split())
        raise Unavailable(
            f"{pipeline.kernel}.wgsl ({given}): does not compile on {self._adapter_name}: {reason}",
            hint="Take another variant in the kernel path.",
        ) from error

    def _group(self, dispatch: Dispatch, layout: Any, buffers: Mapping[str, Any]) -> Any:
        """The handle of a bind group; dispatches that see the same have the same."""
        key = (id(layout), dispatch.bindings)
        if key not in self._groups:
            entries: Sequence[Any] = [
                {
                    "binding": number,
                    "resource": {"buffer": buffers[each.buffer], "offset": each.offset, "size": each.size_bytes},
                }
                for number, each in enumerate(dispatch.bindings)
            ]
            with self._errors.raising(f"{dispatch.label}: bindings"):
                self._groups[key] = self._device.create_bind_group(layout=layout, entries=entries)
        return self._groups[key]._internal
