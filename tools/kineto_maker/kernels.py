"""The catalogue of kernels: what a launch says of its kernel, and how long one takes on an H100.

It is `kernels.json`, with `fault_kernels.json` for those that planted faults alone have.

Durations are modelled, not measured: a floor plus the larger of compute time and memory time at rates that
well-tuned kernels reach. So no launch is faster than the card's peaks allow (989 TFLOP/s bf16, 3.35 TB/s).
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple, TypedDict, cast

from .nodes import MAIN_STREAM, Launch
from .options import Options

FLOOR_NS: Final = 1_350
FLOPS_PER_S: Final = 620 * 10**12
BYTES_PER_S: Final = 2_500 * 10**9

SMS: Final = 132
_WARPS_PER_SM: Final = 64
_BLOCKS_PER_SM: Final = 32
_REGISTERS_PER_SM: Final = 65_536
_SHARED_BYTES_PER_SM: Final = 233_472
_RESERVED_SHARED_BYTES: Final = 1_024  # CUDA's own, for every block
_CATALOGUES: Final = ("kernels.json", "fault_kernels.json")
_DECODE_TILE: Final = re.compile(r"^(nvjet_tst_\d+x)32(?=_)")


class Geometry(NamedTuple):
    """What Kineto derives from grid and block: averages over the SMs, and an estimate of the occupancy."""

    blocks_per_sm: float
    warps_per_sm: float
    occupancy_percent: int


class Kernels:
    """The catalogue with its `$WORDS` filled in for one model.

    Given the rows of its inputs, a GEMM of decode has a tile that suits them; else the catalogue's, which suits 32.
    """

    def __init__(self, options: Options, gemm_rows: int | None = None) -> None:
        self._tile = None if gemm_rows is None else min(max(8, 1 << (gemm_rows - 1).bit_length()), 128)
        shape = options.shape
        threads_per_head = shape.head_dim // 8  # FlashInfer: each thread holds 8 values
        self._words = {
            "$HEAD_DIM": str(shape.head_dim),
            "$BDX": str(threads_per_head),
            "$BDZ": str(32 // threads_per_head),
            "$KV_ROW_BYTES": str(shape.kv_heads // options.world * shape.head_dim * 2),
            "$WORLD": str(options.world),
        }

    def launch(
        self, key: str, grid: tuple[int, int, int], *, flops: int = 0, moved_bytes: int = 0, stream: int = MAIN_STREAM
    ) -> Launch:
        """A launch of the catalogue's kernel `key` that takes as long as its work does."""
        entry = _catalogue()[key]
        ns = FLOOR_NS + max(flops * 10**9 // FLOPS_PER_S, moved_bytes * 10**9 // BYTES_PER_S)
        x, y, z = (int(self._fill(str(size))) for size in entry["block"])
        name = self._fill(entry["name"])
        if self._tile is not None:
            name = _DECODE_TILE.sub(rf"\g<1>{self._tile}", name)
        return Launch(entry["api"], name, ns, grid, (x, y, z), entry["registers"], entry["shared_bytes"], stream)

    def _fill(self, text: str) -> str:
        for word, value in self._words.items():
            text = text.replace(word, value)
        return text


def geometry(launch: Launch) -> Geometry:
    """Kineto's averages for a launch; the occupancy is that of the resident blocks, rounded down."""
    grid_x, grid_y, grid_z = launch.grid
    block_x, block_y, block_z = launch.block
    warps = -(-block_x * block_y * block_z // 32)
    blocks_per_sm = grid_x * grid_y * grid_z / SMS
    resident = min(
        _BLOCKS_PER_SM,
        _WARPS_PER_SM // warps,
        _REGISTERS_PER_SM // (launch.registers * warps * 32),
        _SHARED_BYTES_PER_SM // (launch.shared_bytes + _RESERVED_SHARED_BYTES),
    )
    occupancy = 100 * min(resident, blocks_per_sm) * warps / _WARPS_PER_SM
    return Geometry(blocks_per_sm, blocks_per_sm * warps, min(100, int(occupancy)))


class _Entry(TypedDict):
    name: str
    api: str
    registers: int
    shared_bytes: int
    block: list[int | str]


@cache
def _catalogue() -> dict[str, _Entry]:
    texts = (Path(__file__).with_name(name).read_text(encoding="utf-8") for name in _CATALOGUES)
    kernels, of_faults = (cast("dict[str, _Entry]", json.loads(text)["kernels"]) for text in texts)
    return kernels | of_faults
