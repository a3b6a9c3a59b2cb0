"""Occupancy, against CUDA's occupancy calculator, a machine that is filled block by block, and what LLVM prints."""

import re
from itertools import product

import pytest

from inferometer.bench.builds.limits import ARCHITECTURES, SOURCES, ArchitectureLimits, occupancy_of


@pytest.mark.parametrize(
    ("architecture", "warps", "registers", "shared_bytes", "blocks", "limited_by"),
    [
        ("sm_90", 8, 32, 0, 8, "warps"),
        ("sm_90", 8, 33, 0, 6, "registers"),  # 40 a lane: 12 warps a scheduler
        ("sm_90", 4, 168, 0, 3, "registers"),
        ("sm_90", 4, 64, 98_304, 2, "shared memory"),
        ("sm_90", 4, 64, 232_448, 1, "shared memory"),
        ("sm_90", 4, 64, 232_449, 0, "shared memory"),
        ("sm_90", 1, 16, 0, 32, "blocks"),
        ("sm_90", 1, 255, 0, 8, "registers"),
        ("sm_90", 64, 32, 0, 0, "threads"),
        ("sm_80", 8, 32, 81_920, 2, "shared memory"),
        ("sm_80", 4, 32, 166_912, 1, "shared memory"),
        ("sm_89", 8, 32, 0, 6, "warps"),
        ("sm_89", 4, 32, 101_377, 0, "shared memory"),
        ("sm_120", 8, 32, 0, 6, "warps"),
        ("sm_120", 1, 16, 0, 24, "blocks"),
        ("sm_120", 4, 64, 50_176, 2, "shared memory"),  # 49 KiB and 1 KiB reserved: half of 100 KiB
        ("sm_120", 4, 64, 50_177, 1, "shared memory"),
        ("sm_120", 4, 32, 101_377, 0, "shared memory"),
        ("gfx942", 4, 140, 49_152, 1, "shared memory"),
        ("gfx942", 4, 140, 0, 3, "registers"),  # LLVM prints "Occupancy: 3" for 140 registers
        ("gfx942", 1, 64, 0, 32, "warps"),
        ("gfx942", 2, 64, 0, 16, "warps"),
        ("gfx950", 4, 140, 49_152, 3, "shared memory"),
        ("gfx950", 4, 140, 81_920, 2, "shared memory"),  # 64 granules of 1,280 bytes: half of 128
        ("gfx950", 4, 64, 81_921, 1, "shared memory"),
        ("gfx950", 4, 64, 163_840, 1, "shared memory"),
        ("gfx950", 4, 64, 163_841, 0, "shared memory"),
        ("gfx950", 2, 64, 0, 16, "warps"),
    ],
)
def test_the_scarcest_resource_limits_the_blocks(
    architecture: str, warps: int, registers: int, shared_bytes: int, blocks: int, limited_by: str
) -> None:
    limits = ARCHITECTURES[architecture]
    found = occupancy_of(limits, num_warps=warps, registers=registers, shared_bytes=shared_bytes)
    assert (found.blocks, found.limited_by) == (blocks, limited_by)
    assert found.warps == blocks * warps


def test_tensor_memory_limits_blocks_too() -> None:
    found = occupancy_of(
        ARCHITECTURES["sm_100"], num_warps=4, registers=64, shared_bytes=1024, tensor_memory_columns=256
    )
    assert (found.blocks, found.limited_by) == (2, "tensor memory")


def blocks_of_cuda(limits: ArchitectureLimits, warps: int, registers: int, shared_bytes: int) -> int:
    """As CUDA's occupancy calculator has it: 65,536 registers in units of 256 for a warp, warps in units of 4."""
    if warps > 32:
        return 0
    for_a_warp = -(-registers * 32 // 256) * 256
    of_registers = (65_536 // for_a_warp // 4 * 4) // warps
    for_a_block = -(-(shared_bytes + 1024) // 128) * 128
    of_shared = limits.shared_bytes // for_a_block if shared_bytes + 1024 <= limits.shared_bytes else 0
    return min(limits.warps // warps, limits.blocks, of_registers, of_shared)


def blocks_placed(limits: ArchitectureLimits, warps: int, registers: int, shared_bytes: int) -> int:
    """Blocks put into a CDNA compute unit one after the other, wave by wave onto the emptiest of four SIMDs."""
    if warps > 16:  # 1,024 threads
        return 0
    waves, free, memory, barriers, blocks = [0] * 4, [512] * 4, limits.shared_bytes, 16, 0
    granules = -(-shared_bytes // limits.shared_granule_bytes) * limits.shared_granule_bytes
    taken = -(-registers // 8) * 8
    while shared_bytes <= limits.shared_block_bytes and granules <= memory and (warps == 1 or barriers):
        for _ in range(warps):
            at = min(range(4), key=lambda simd: waves[simd])
            if waves[at] == 8 or free[at] < taken:
                return blocks
            waves[at], free[at] = waves[at] + 1, free[at] - taken
        memory, barriers, blocks = memory - granules, barriers - (warps > 1), blocks + 1
        if blocks == 32:
            break
    return blocks


@pytest.mark.parametrize("name", ["sm_80", "sm_89", "sm_90", "sm_100", "sm_120"])
def test_occupancy_is_that_of_cudas_calculator(name: str) -> None:
    limits = ARCHITECTURES[name]
    for warps, registers, shared in product((1, 2, 4, 8, 16, 32, 64), range(1, 256, 13), range(0, 240_000, 17_777)):
        found = occupancy_of(limits, num_warps=warps, registers=registers, shared_bytes=shared)
        assert found.blocks == blocks_of_cuda(limits, warps, registers, shared), (warps, registers, shared)


@pytest.mark.parametrize("name", ["gfx942", "gfx950"])
def test_occupancy_is_that_of_a_compute_unit_filled_block_by_block(name: str) -> None:
    limits = ARCHITECTURES[name]
    for warps, registers, shared in product((1, 2, 4, 8, 16, 32), range(1, 513, 19), range(0, 170_000, 7_777)):
        found = occupancy_of(limits, num_warps=warps, registers=registers, shared_bytes=shared)
        assert found.blocks == blocks_placed(limits, warps, registers, shared), (warps, registers, shared)


def test_every_figure_has_a_source() -> None:
    for name, limits in ARCHITECTURES.items():
        assert limits.source, name
        assert set(limits.source) <= set(SOURCES), name
        assert re.fullmatch(r"sm_\d+|gfx\w+", name)


@pytest.mark.parametrize(
    ("name", "facts"),
    [  # warps, blocks, KiB of a multiprocessor and of a block, multiprocessors; as published
        ("sm_80", (64, 32, 164, 163, 108)),
        ("sm_89", (48, 24, 100, 99, 142)),
        ("sm_90", (64, 32, 228, 227, 132)),
        ("sm_100", (64, 32, 228, 227, 148)),
        ("sm_120", (48, 24, 100, 99, 188)),  # 24,064 FP32 cores, 128 each
        ("gfx942", (32, 16, 64, 64, 304)),
        ("gfx950", (32, 16, 160, 160, 256)),
    ],
)
def test_limits_are_as_published(name: str, facts: tuple[int, ...]) -> None:
    limits = ARCHITECTURES[name]
    kib = (limits.shared_bytes // 1024, limits.shared_block_bytes // 1024)
    assert (limits.warps, limits.blocks, *kib, limits.multiprocessors) == facts
