"""What a multiprocessor of each architecture holds, and how many blocks of a kernel fit into it.

Sources: CUDA programming guide 12.9, table of technical specifications by compute capability; CUDA occupancy
calculator (granularities); for gfx942 the CDNA 3 ISA, chapters 3 and 11, and LLVM's AMDGPU target (waves, barriers).

Left out: clusters of blocks, which must fit together, and scalar registers of AMD's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Resource = Literal["shared memory", "registers", "tensor memory", "warps", "blocks", "threads"]

REGISTERS = 512
"""Of 32 bits, for one lane, that the warps of one scheduler share: 65,536 / 4 / 32 on NVIDIA's, 512 on CDNA."""

REGISTER_GRANULE = 8
SCHEDULERS = 4
BLOCK_THREADS = 1024
TENSOR_MEMORY_COLUMNS = 512


@dataclass(frozen=True, kw_only=True)
class ArchitectureLimits:
    """Of one architecture.

    Attributes:
        backend: Triton's name of it: `cuda`, `hip`.
        target: What Triton compiles for: 90, or `gfx942`.
        warp_size: Lanes of a warp, or of a wavefront.
        warps: Resident on a multiprocessor at once.
        blocks: Resident at once.
        lone_warp_blocks: The same for blocks of a single warp, which on AMD need no barrier.
        shared_block_bytes: The most that a block may ask for.
        shared_bytes: Of a multiprocessor.
        shared_reserved_bytes: What the system takes in each block.
        shared_granule_bytes: Blocks are given whole ones.
        multiprocessors: Of the device named in `device`: what persistent kernels ask for.
        device: The architecture's device of data centres.
    """

    backend: Literal["cuda", "hip"]
    target: int | str
    warp_size: int
    warps: int
    blocks: int
    lone_warp_blocks: int
    shared_block_bytes: int
    shared_bytes: int
    shared_reserved_bytes: int
    shared_granule_bytes: int
    multiprocessors: int
    device: str


def _nvidia(
    target: int, *, warps: int, blocks: int, shared_KiB: int, multiprocessors: int, device: str
) -> ArchitectureLimits:
    return ArchitectureLimits(
        backend="cuda", target=target, warp_size=32, warps=warps, blocks=blocks, lone_warp_blocks=blocks,
        shared_block_bytes=(shared_KiB - 1) * 1024, shared_bytes=shared_KiB * 1024, shared_reserved_bytes=1024,
        shared_granule_bytes=128, multiprocessors=multiprocessors, device=device,
    )  # fmt: skip


ARCHITECTURES: Mapping[str, ArchitectureLimits] = {
    "sm_80": _nvidia(80, warps=64, blocks=32, shared_KiB=164, multiprocessors=108, device="A100"),
    "sm_89": _nvidia(89, warps=48, blocks=24, shared_KiB=100, multiprocessors=142, device="L40S"),
    "sm_90": _nvidia(90, warps=64, blocks=32, shared_KiB=228, multiprocessors=132, device="H100 SXM"),
    "sm_100": _nvidia(100, warps=64, blocks=32, shared_KiB=228, multiprocessors=148, device="B200"),
    "gfx942": ArchitectureLimits(
        backend="hip", target="gfx942", warp_size=64, warps=32, blocks=16, lone_warp_blocks=32,
        shared_block_bytes=65_536, shared_bytes=65_536, shared_reserved_bytes=0, shared_granule_bytes=512,
        multiprocessors=304, device="MI300X",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Occupancy:
    """What is resident on a multiprocessor at once; `limited_by` is what has no room for one block more.

    No block: the kernel can't be launched at all.
    """

    blocks: int
    warps: int
    most_warps: int
    limited_by: Resource

    @property
    def share(self) -> float:
        """Of the warps that could be resident."""
        return self.warps / self.most_warps


def occupancy_of(
    limits: ArchitectureLimits, *, num_warps: int, registers: int, shared_bytes: int, tensor_memory_columns: int = 0
) -> Occupancy:
    """Blocks of a kernel that fit into a multiprocessor, by the first of the scarcest resources.

    Args:
        limits: Of the architecture.
        num_warps: Of a block.
        registers: Of a lane; on AMD vector and accumulator registers together.
        shared_bytes: Of a block, static and dynamic, without what the system reserves.
        tensor_memory_columns: Of a block, on sm_100.
    """
    rooms: dict[Resource, int] = {
        "warps": limits.warps // num_warps,
        "shared memory": _shared_blocks(limits, shared_bytes),
        "registers": SCHEDULERS * (REGISTERS // _rounded(max(registers, 1), REGISTER_GRANULE)) // num_warps,
        "blocks": limits.blocks if num_warps > 1 else limits.lone_warp_blocks,
    }
    if tensor_memory_columns:
        rooms["tensor memory"] = TENSOR_MEMORY_COLUMNS // tensor_memory_columns
    if num_warps * limits.warp_size > BLOCK_THREADS:
        rooms["threads"] = 0
    limited_by = min(rooms, key=lambda resource: rooms[resource])
    blocks = rooms[limited_by]
    return Occupancy(blocks, blocks * num_warps, limits.warps, limited_by)


def _shared_blocks(limits: ArchitectureLimits, shared_bytes: int) -> int:
    if shared_bytes > limits.shared_block_bytes:
        return 0
    asked = _rounded(shared_bytes + limits.shared_reserved_bytes, limits.shared_granule_bytes)
    return limits.shared_bytes // asked if asked else limits.warps


def _rounded(value: int, granule: int) -> int:
    return -(-value // granule) * granule
