"""`chat --engine webgpu`: an answer of our WebGPU engine, and what it took."""

from typing import Annotated

from msgspec import UNSET, UnsetType

from inferometer.reports.schemas.chat import ChatParts, OperatorUse, Sampling
from inferometer.reports.schemas.fields import Part, SchemaMark, says
from inferometer.reports.schemas.webgpu_overhead import OverheadParts
from inferometer.reports.schemas.webgpu_profile import HostParts, ProfileParts, PurposeMemory


class Adapter(Part):
    """What runs the kernels, and what it allows."""

    name: Annotated[str, says("As the driver says.")]
    backend: Annotated[str, says("`Vulkan`, `Metal`, `D3D12`, `NumPy` or `browser`.")]
    kind: Annotated[str, says("`CPU`, `IntegratedGPU`, `DiscreteGPU` or `unknown`.")]
    features: Annotated[list[str], says("Those that are used and usable.")]
    most_binding_bytes: Annotated[int, says("Largest part of a buffer that one binding may be.")]
    most_buffer_bytes: Annotated[int, says("Largest buffer.")]
    most_storage_buffers: Annotated[int, says("Bindings of storage that one kernel may have.")]
    most_workgroup_threads: Annotated[int, says("Threads of a workgroup.")]
    description: Annotated[str, says("What else the driver says.")]


class LoadPhase(Part):
    """A phase of getting ready."""

    name: Annotated[str, says("Which.")]
    start_ns: Annotated[int, says("Its beginning on the host's clock, ns.")]
    dur_ns: Annotated[int, says("How long, ns.")]
    bytes: Annotated[int, says("Bytes that it moves; 0: none.")]
    gb_per_s: Annotated[float | None, says("The one over the other; null where nothing moves.")]


class ReadPart(Part):
    """Reading and decoding of weights in one phase."""

    part: Annotated[str, says("The phase.")]
    source_bytes: Annotated[int, says("Bytes of the file.")]
    bytes: Annotated[int, says("Bytes that they became.")]
    dur_ns: Annotated[int, says("How long, ns.")]
    gb_per_s: Annotated[float | None, says("The one over the other; null where nothing moves.")]


class Selection(Part):
    """The kernel that an operator of a phase got, and why."""

    phase: Annotated[str, says("The phase.")]
    op: Annotated[str, says("The operator.")]
    role: Annotated[str | None, says("Its part in the model.")]
    kernel: Annotated[str, says("The kernel.")]
    constants: Annotated[dict[str, float], says("What it was specialised with.")]
    reason: Annotated[str, says("Why. Its words may change.")]


class PlanDifference(Part):
    """An operator of a phase that didn't run as planned."""

    phase: Annotated[str, says("The phase.")]
    op: Annotated[str, says("The operator.")]
    role: Annotated[str | None, says("Its part in the model.")]
    planned: Annotated[str | None, says("The kernel planned; null: none.")]
    executed: Annotated[str | None, says("The kernel that ran; null: none.")]
    planned_count: Annotated[int, says("Launches planned.")]
    executed_count: Annotated[int, says("Launches that ran.")]
    reason: Annotated[str, says("Why. Its words may change.")]


class DeviceSampling(Sampling):
    """How tokens were chosen."""

    repetition_penalty: Annotated[float, says("1: none.")]


class DeviceOperatorUse(OperatorUse):
    """What ran an operator of a phase."""

    phase: Annotated[str, says("The phase.")]


class Submits(HostParts):
    """Wall time of the answer's submits in parts."""

    count: Annotated[int, says("Submits.")]


class WebGpuChat(ChatParts, kw_only=True):
    """An answer of our WebGPU engine, and what it took."""

    schema: SchemaMark
    sampling: DeviceSampling
    operators: list[DeviceOperatorUse]
    adapter: Adapter
    context: Annotated[int, says("Positions of the KV cache.")]
    cache_dtype: Annotated[str, says("Type of keys and values in it.")]
    batch: Annotated[int, says("Decode steps of a submit.")]
    timing: Annotated[str, says("The form of the submits.")]
    load_phases: list[LoadPhase]
    reads: list[ReadPart]
    memory: list[PurposeMemory]
    selections: list[Selection]
    matrix_bytes: Annotated[dict[str, int], says("What matrices take, by format.")]
    fetched_bytes: Annotated[int | None, says("Of weights, what a browser got from Python; null without a browser.")]
    cached_bytes: Annotated[int | None, says("Of weights, what a browser had kept; null without a browser.")]
    kernel_path: Annotated[str, says("The path of kernels.")]
    device_bytes: Annotated[int, says("What all buffers take.")]
    submits: Submits
    plan_differences: list[PlanDifference]
    definitions: Annotated[dict[str, str], says("What each metric is, in words that may change.")]
    profile: Annotated[ProfileParts | UnsetType, says("With `--profile`.")] = UNSET
    overhead: Annotated[OverheadParts | UnsetType, says("With `--overhead`.")] = UNSET


DOCUMENT = WebGpuChat
