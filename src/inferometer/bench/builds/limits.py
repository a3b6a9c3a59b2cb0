"""What a multiprocessor of each architecture holds, and how many blocks of a kernel fit into it.

The figures and their sources are in `architectures.json`. Left out: clusters of blocks, which must fit together, and
scalar registers of AMD's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

Resource = Literal["shared memory", "registers", "tensor memory", "warps", "blocks", "threads"]

REGISTERS = 512
"""Of 32 bits, for one lane, that the warps of one scheduler share: 65,536 / 4 / 32 on NVIDIA's, 512 on CDNA."""

REGISTER_GRANULE = 8
SCHEDULERS = 4
BLOCK_THREADS = 1024


@dataclass(frozen=True, kw_only=True)
class ArchitectureLimits:
    """Of one architecture.

    Attributes:
        backend: Triton's name of it: `cuda`, `hip`.
        target: What Triton compiles for: 90, or `gfx942`.
        capability: What PyTorch says of the device: 9.0 of sm_90, 9.4 of gfx942.
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
        source: Names of the file's `sources`.
        tensor_memory_columns: Of a multiprocessor; 0 where it has no such memory.
    """

    backend: Literal["cuda", "hip"]
    target: int | str
    capability: tuple[int, int]
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
    source: tuple[str, ...]
    tensor_memory_columns: int = 0


class _File(msgspec.Struct, frozen=True):
    """`architectures.json`."""

    sources: Mapping[str, str]
    architectures: Mapping[str, ArchitectureLimits]


_KNOWN = msgspec.json.decode(Path(__file__).with_name("architectures.json").read_bytes(), type=_File)

ARCHITECTURES: Mapping[str, ArchitectureLimits] = _KNOWN.architectures
SOURCES: Mapping[str, str] = _KNOWN.sources
"""What each name in `ArchitectureLimits.source` stands for."""


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
        """Resident warps as a share of those that could be."""
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
        rooms["tensor memory"] = limits.tensor_memory_columns // tensor_memory_columns
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
