"""CuTe-DSL's kernels, compiled as a candidate asks for them and not run: NVIDIA's `cutlass.cute`, without a GPU.

Source: nvidia-cutlass-dsl 4.8.1, tried. It compiles for `CUTE_DSL_ARCH` and keeps the machine code of every function
in a file; launches are in the host code that it makes, with their sizes where these are constants. Tensors are said to
lie in a GPU's memory, since code for others differs. Left out: spills (its compiler doesn't print them; the stack is
there), clusters, and launches whose sizes are known at run time only: those have no occupancy.
"""

import ctypes
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from inferometer.bench.builds.limits import ArchitectureLimits, occupancy_of
from inferometer.bench.builds.machine_code import Resources, count_sass
from inferometer.bench.builds.record import KernelBuild

PACKAGE = "nvidia-cutlass-dsl"
_TOOL_SECONDS = 60
_CUDA_DEVICE = 2  # kDLCUDA of DLPack
_DEVICE_OFFSET = ctypes.sizeof(ctypes.c_void_p)  # in a DLTensor: after the address
_RESERVED_BYTES = 1024  # of shared memory, by the system, counted by cuobjdump from sm_90 on

_USED = re.compile(r"Function (\S+):\s*\n\s*REG:(\d+) STACK:(\d+) SHARED:(\d+)")
_TEXT = re.compile(r"^\.text\.(\S+):$", re.MULTILINE)
_CONFIG = re.compile(r"^\s*(%\S+) = llvm\.alloca .*struct<\(array<3 x i32>, array<3 x i32>, i64, ptr, ptr, i32\)>")
_FIELD = re.compile(r"^\s*(%\S+) = llvm\.getelementptr (%\S+)\[0, (\d)(?:, (\d))?\]")
_STORE = re.compile(r"^\s*llvm\.store (%\S+), (%\S+) : i(?:32|64),")
_CONSTANT = re.compile(r"^\s*(%\S+) = llvm\.mlir\.constant\((-?\d+) : i(?:32|64)\)")
_SYMBOL = re.compile(r"addressof @kernels_(\S+) : ")


@dataclass(frozen=True)
class CuteLaunch:
    """One launch of the host code; None where a size isn't a constant."""

    kernel: str
    grid: tuple[int, ...] | None
    block: tuple[int, ...] | None
    shared_bytes: int | None


def arch_of(limits: ArchitectureLimits) -> str:
    """As CuTe-DSL calls it: from sm_90 on with the instructions of that architecture alone."""
    return f"sm_{limits.target}{'a' if limits.capability >= (9, 0) else ''}"


def is_used(text: bytes) -> bool:
    """Whether a candidate's file imports it."""
    return re.search(rb"^\s*(?:import|from)\s+cutlass\b", text, re.MULTILINE) is not None


def install(limits: ArchitectureLimits, folder: Path, report: Callable[[str, Mapping[str, Any] | None], None]) -> None:
    """From here on nothing of CuTe-DSL's is run in this process.

    Args:
        limits: Of the architecture.
        folder: Where it keeps what it compiles.
        report: Called with a key for each kernel that was compiled, and its record; without one, where a kernel that is
            known is launched.
    """
    folder.mkdir()
    os.environ |= {
        "CUTE_DSL_ARCH": arch_of(limits), "CUTE_DSL_KEEP": "cubin", "CUTE_DSL_NO_CACHE": "1",
        "CUTE_DSL_DUMP_DIR": str(folder),
    }  # fmt: skip
    from cutlass.base_dsl.jit_executor import JitCompiledFunction, JitExecutor
    from cutlass.cute import runtime
    from cutlass.cutlass_dsl.cuda_jit_executor import CudaDialectJitCompiledFunction

    own = CudaDialectJitCompiledFunction.__init__

    def made(function: Any, *args: Any, **kwargs: Any) -> None:
        own(function, *args, **kwargs)
        binary = getattr(function.artifacts, "CUBIN", None)
        function.inferometer_keys = []
        if isinstance(binary, bytes):
            for key, record in records_of(limits, binary, str(function.ir_module)):
                function.inferometer_keys.append(key)
                report(key, record)

    def run(function: Any, *args: Any, **kwargs: Any) -> None:
        for key in getattr(function, "inferometer_keys", ()):
            report(key, None)

    CudaDialectJitCompiledFunction.__init__ = made
    CudaDialectJitCompiledFunction.to = lambda function, device=None: lambda *args, **kwargs: run(function)
    for kind in (JitCompiledFunction, CudaDialectJitCompiledFunction, JitExecutor):
        kind.run_compiled_program = run
        kind.__call__ = run
    runtime.from_dlpack = _from_device(runtime.from_dlpack)


def records_of(limits: ArchitectureLimits, binary: bytes, host: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """For each kernel in a file of machine code a key, and the fields of a `KernelBuild` that don't name the call."""
    launches = {launch.kernel: launch for launch in read_launches(host)}
    code, usage = _inspect(binary)
    digest = hashlib.sha256(binary).hexdigest()
    for kernel, resources in read_usage(usage, limits).items():
        launch = launches.get(kernel)
        yield f"{digest} {kernel}", _record(limits, kernel, resources, launch, code.get(kernel, ""))


def _record(
    limits: ArchitectureLimits, kernel: str, resources: Resources, launch: CuteLaunch | None, code: str
) -> dict[str, Any]:
    block = None if launch is None else launch.block
    threads = 0 if block is None else block[0] * block[1] * block[2]
    dynamic = None if launch is None else launch.shared_bytes
    warps = -(-threads // limits.warp_size)
    occupancy = None
    if warps and dynamic is not None and resources.registers is not None:
        shared = dynamic + (resources.static_shared_bytes or 0)
        occupancy = occupancy_of(limits, num_warps=warps, registers=resources.registers, shared_bytes=shared)
    instructions = count_sass(code)
    return {
        **asdict(resources),
        "kernel": kernel.removeprefix("kernel_cutlass_"),
        "arguments": {},
        "grid": None if launch is None else launch.grid,
        "tuned": False,
        "triton": f"{PACKAGE} {version(PACKAGE)}",
        "num_warps": warps,
        "num_stages": 0,
        "num_ctas": 1,
        "dynamic_shared_bytes": dynamic or 0,
        "tensor_memory_columns": 0,
        "occupancy": occupancy,
        "instructions": instructions.total,
        "matrix": instructions.matrix,
        "loads": instructions.loads,
    }


def build_of(record: Mapping[str, Any], architecture: str, case: int | None) -> KernelBuild:
    """The record of a kernel that a call compiled."""
    return KernelBuild(architecture=architecture, cases=() if case is None else (case,), **record)


def read_usage(text: str, limits: ArchitectureLimits) -> dict[str, Resources]:
    """What `cuobjdump -res-usage` prints for each kernel."""
    reserved = _RESERVED_BYTES if limits.capability >= (9, 0) else 0
    return {
        kernel: Resources(
            registers=int(registers), stack_bytes=int(stack), static_shared_bytes=max(0, int(shared) - reserved)
        )
        for kernel, registers, stack, shared in _USED.findall(text)
    }


def read_launches(host: str) -> list[CuteLaunch]:
    """The launches in host code, in LLVM's dialect: configurations that are filled one after the other."""
    constants: dict[str, int] = {}
    fields: dict[str, tuple[str, tuple[int, int | None]]] = {}
    configs: dict[str, dict[tuple[int, int | None], int]] = {}
    kernels: list[str] = []
    symbol = ""
    for line in host.splitlines():
        if match := _CONSTANT.match(line):
            constants[match[1]] = int(match[2])
        elif match := _CONFIG.match(line):
            configs[match[1]] = {}
        elif match := _FIELD.match(line):
            fields[match[1]] = (match[2], (int(match[3]), None if match[4] is None else int(match[4])))
        elif (match := _STORE.match(line)) and match[2] in fields and match[1] in constants:
            config, field = fields[match[2]]
            if config in configs:
                configs[config][field] = constants[match[1]]
        elif match := _SYMBOL.search(line):
            symbol = match[1]
        elif "llvm.call @_cudaLaunchKernelEx" in line:
            kernels.append(symbol)
    return [
        CuteLaunch(kernel, _three(sizes, 0), _three(sizes, 1), sizes.get((2, None)))
        for kernel, sizes in zip(kernels, configs.values(), strict=False)
    ]


def _three(sizes: Mapping[tuple[int, int | None], int], field: int) -> tuple[int, ...] | None:
    found = [sizes.get((field, place)) for place in range(3)]
    return None if None in found else tuple(size for size in found if size is not None)


def _inspect(binary: bytes) -> tuple[dict[str, str], str]:
    """Disassembled code by kernel, and the kernels' resources as printed."""
    from triton import knobs

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(binary)
        listing = _run(knobs.nvidia.nvdisasm.path, "-c", file.name)
        usage = _run(knobs.nvidia.cuobjdump.path, "-res-usage", file.name)
    parts = _TEXT.split(listing)
    return dict(zip(parts[1::2], parts[2::2], strict=True)), usage


def _run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=_TOOL_SECONDS, check=True).stdout


def _from_device(own: Callable[..., Any]) -> Callable[..., Any]:
    """`from_dlpack` that takes a host's tensor for one of a GPU's."""

    class OnDevice:
        def __init__(self, tensor: Any) -> None:
            self._tensor = tensor

        def __dlpack_device__(self) -> tuple[int, int]:
            return _CUDA_DEVICE, 0

        def __dlpack__(self, **kwargs: Any) -> Any:
            capsule = self._tensor.detach().__dlpack__()
            pointer = ctypes.pythonapi.PyCapsule_GetPointer
            pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            address = pointer(capsule, b"dltensor")
            ctypes.c_int32.from_address(address + _DEVICE_OFFSET).value = _CUDA_DEVICE
            return capsule

    def from_dlpack(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        return own(OnDevice(tensor) if hasattr(tensor, "detach") else tensor, *args, **kwargs)

    return from_dlpack
