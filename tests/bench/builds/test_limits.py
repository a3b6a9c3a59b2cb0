"""Occupancy, against CUDA's occupancy calculator and what LLVM prints for AMD."""

import pytest

from inferometer.bench.builds.limits import ARCHITECTURES, occupancy_of


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
        ("gfx942", 4, 140, 49_152, 1, "shared memory"),
        ("gfx942", 4, 140, 0, 3, "registers"),  # LLVM prints "Occupancy: 3" for 140 registers
        ("gfx942", 1, 64, 0, 32, "warps"),
        ("gfx942", 2, 64, 0, 16, "warps"),
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
