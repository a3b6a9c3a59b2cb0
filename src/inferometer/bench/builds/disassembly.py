"""What is in a compiled kernel: its resources and instructions, by the tools that come with Triton."""

import subprocess
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inferometer.bench.builds.limits import ArchitectureLimits, occupancy_of
from inferometer.bench.builds.machine_code import (
    Instructions,
    Resources,
    count_amd,
    count_sass,
    read_amd_metadata,
    read_ptxas_log,
)

_TOOL_SECONDS = 60  # a kernel of 10,000 instructions takes half a second


def measured(limits: ArchitectureLimits, found: Any, log: str) -> dict[str, Any]:
    """The fields of a `KernelBuild` that the binary gives.

    Args:
        limits: Of the architecture.
        found: Triton's compiled kernel.
        log: What ptxas printed while it was compiled.
    """
    resources, instructions = _read(limits, found, log)
    metadata = found.metadata
    occupancy = None if resources.registers is None else occupancy_of(
        limits,
        num_warps=metadata.num_warps,
        registers=resources.registers,
        shared_bytes=metadata.shared + (resources.static_shared_bytes or 0),
        tensor_memory_columns=getattr(metadata, "tmem_size", None) or 0,
    )  # fmt: skip
    return {
        **asdict(resources),
        "occupancy": occupancy,
        "instructions": instructions.total,
        "matrix": instructions.matrix,
        "loads": instructions.loads,
    }


def _read(limits: ArchitectureLimits, found: Any, log: str) -> tuple[Resources, Instructions]:
    if limits.backend == "hip":
        assembly = found.asm["amdgcn"]
        return read_amd_metadata(assembly), count_amd(assembly)
    return read_ptxas_log(log), count_sass(_disassemble(found.asm["cubin"]))


def _disassemble(binary: bytes) -> str:
    from triton import knobs

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(binary)
        return subprocess.run(
            [knobs.nvidia.nvdisasm.path, "-c", file.name],
            capture_output=True, text=True, timeout=_TOOL_SECONDS, check=True,
        ).stdout  # fmt: skip
