"""The record of one compiled kernel, and of what didn't compile: plain data, the same for every architecture."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from inferometer.bench.builds.limits import Occupancy


@dataclass(frozen=True, kw_only=True)
class KernelBuild:
    """One kernel, as one specialisation and configuration of it was compiled for one architecture.

    Attributes:
        kernel: The function's name.
        architecture: `sm_90`, `gfx942`.
        arguments: By name: Triton's type (`*bf16`; with `:16` where 16 divides the value or address), or `=` and the
            value that was compiled in.
        cases: Which of the calls launched it, counted from 0.
        grid: Of its first launch; None where none was asked for (declared, or only warmed up).
        tuned: One of several configurations of an autotuner, which leaves out what doesn't fit.
        triton: Its version; of CuTe-DSL's kernels that package's, with its name.
        num_warps: Of a block; 0 where it is known at run time only.
        num_stages: What was asked for; loops may be pipelined less. 0 of CuTe-DSL's.
        num_ctas: Blocks of a cluster.
        registers: Of a lane; on AMD vector and accumulator registers together.
        scalar_registers: Of a wavefront, AMD only.
        stack_bytes: Of a lane, in device memory.
        spill_store_bytes: Of a lane, summed over the instructions that spill. NVIDIA only.
        spill_load_bytes: The same, read back. NVIDIA only.
        spilled_registers: Vector registers that were spilled. AMD only.
        spilled_scalar_registers: Scalar ones. AMD only; into vector registers, mostly.
        static_shared_bytes: Of a block, compiled in.
        dynamic_shared_bytes: Of a block, asked for at launch.
        tensor_memory_columns: Of a block, on sm_100.
        occupancy: None where the registers aren't known.
        instructions: Of the machine code, each counted once however often it runs.
        matrix: Those for matrix units, by their name.
        loads: Those that load from memory, by kind; `LDGSTS`, `UTMALDG` copy to shared memory on their own.
    """

    kernel: str
    architecture: str
    arguments: Mapping[str, str]
    cases: tuple[int, ...]
    grid: tuple[int, ...] | None
    tuned: bool
    triton: str
    num_warps: int
    num_stages: int
    num_ctas: int
    registers: int | None
    scalar_registers: int | None
    stack_bytes: int | None
    spill_store_bytes: int | None
    spill_load_bytes: int | None
    spilled_registers: int | None
    spilled_scalar_registers: int | None
    static_shared_bytes: int | None
    dynamic_shared_bytes: int
    tensor_memory_columns: int
    occupancy: Occupancy | None
    instructions: int
    matrix: Mapping[str, int]
    loads: Mapping[str, int]

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block, static and dynamic."""
        return (self.static_shared_bytes or 0) + self.dynamic_shared_bytes

    @property
    def spills(self) -> bool:
        """Whether registers go to memory because there are too few; spilled scalar registers rarely do."""
        return any((self.spill_store_bytes, self.spill_load_bytes, self.spilled_registers))

    @property
    def label(self) -> str:
        """Its name with what was compiled in: what tells it from its siblings."""
        stages = [f"stages={self.num_stages}"] if self.num_stages else []
        constants = [f"{name}{text}" for name, text in self.arguments.items() if text.startswith("=")]
        return f"{self.kernel}({', '.join((*constants, f'warps={self.num_warps}', *stages))})"

    def as_json(self) -> dict[str, Any]:
        """Plain data under the fields' names, with the shared bytes added up and the occupancy as a share."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        data["shared_bytes"] = self.shared_bytes
        if self.occupancy is not None:
            data["occupancy"]["share"] = self.occupancy.share
        return data


@dataclass(frozen=True)
class FailedKernel:
    """A kernel that doesn't compile; `message` is the compiler's, several lines.

    `configuration` is what it was launched with by name: constants and options.
    """

    kernel: str
    architecture: str
    configuration: str
    case: int | None
    tuned: bool
    message: str


@dataclass(frozen=True)
class ArchitectureBuild:
    """All that came of one architecture.

    `error` is why the candidate couldn't be called to its end: what was launched until then is there. None: it was.
    `torch_products` are the functions of PyTorch's that it had matrices multiplied by.
    """

    architecture: str
    kernels: tuple[KernelBuild, ...]
    failed: tuple[FailedKernel, ...]
    error: str | None
    triton: str | None
    torch: str | None
    torch_products: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain data under the fields' names."""
        return {
            "architecture": self.architecture,
            "error": self.error,
            "triton": self.triton,
            "torch": self.torch,
            "torch_products": list(self.torch_products),
            "kernels": [build.as_json() for build in self.kernels],
            "failed": msgspec.to_builtins(self.failed),
        }


def gist(message: str) -> str:
    """The first line, which has the place, and the last, which has the cause: compilers put code between."""
    lines = message.splitlines()
    return f"{lines[0]} … {lines[-1].strip()}" if len(lines) > 1 else message
