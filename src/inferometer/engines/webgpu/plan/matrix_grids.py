"""Grids of kernels that multiply with a matrix, and the cuts of a matrix that is too large for one dispatch."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from inferometer.backends.wgsl.source import read_kernel
from inferometer.engines.webgpu.plan.layout import ALIGNMENT, F32_BYTES, ROWS_OF_A_CUT, MatrixPart
from inferometer.engines.webgpu.plan.step_context import StepContext
from inferometer.engines.webgpu.program import Binding, Extent, Grid
from inferometer.errors import InferometerError

MOST_GROUPS = 65_535
"""Workgroups along one axis: what WebGPU promises."""
_COLUMNS_OF: Mapping[str, tuple[str | int, ...]] = {  # whose product is the columns that a workgroup makes
    "linear_thread": ("THREADS", "COLUMNS"),
    "norm_linear_thread": ("THREADS", "COLUMNS"),
    "linear_split": ("THREADS", "COLUMNS"),
    "linear_sum": ("THREADS",),
    "linear_workgroup": ("COLUMNS",),
    "linear_subgroups": ("COLUMNS",),
    "linear_f16": ("COLUMNS",),
    "matmul_tile": ("TILE_N",),
    "matmul_f16": ("TILE_N",),
    "matmul_subgroups": ("THREADS", 8),
    "matmul_workgroup": (32,),
    "gate_up_thread": ("THREADS", "COLUMNS"),
    "norm_gate_up_thread": ("THREADS", "COLUMNS"),
    "gate_up_workgroup": ("COLUMNS",),
    "gate_up_subgroups": ("COLUMNS",),
    "gate_up_f16": ("COLUMNS",),
    "expert_gate_up_thread": ("THREADS", "COLUMNS"),
    "expert_down_thread": ("THREADS", "COLUMNS"),
    "expert_gate_up_workgroup": ("COLUMNS",),
    "expert_down_workgroup": ("COLUMNS",),
    "matmul_gate_up": ("TILE_N",),
    "matmul_gate_up_subgroups": ("THREADS", 4),
    "matmul_gate_up_workgroup": (16,),
}
_ROWS_OF: Mapping[str, str | int] = {  # rows that a workgroup makes, of kernels of many
    "matmul_tile": "TILE_M",
    "matmul_f16": "TILE_M",
    "matmul_subgroups": 16,
    "matmul_workgroup": 64,
    "matmul_gate_up": "TILE_M",
    "matmul_gate_up_subgroups": 16,
    "matmul_gate_up_workgroup": 64,
}


def columns(ctx: StepContext, kernel: str) -> int:
    """Columns that a workgroup makes."""
    columns = 1
    for name in _COLUMNS_OF[kernel]:
        columns *= name if isinstance(name, int) else ctx.chosen.constant(kernel, name)
    return columns


def most_columns(ctx: StepContext, kernel: str) -> int:
    """Columns of one dispatch: of a grid's one axis, in whole cuts, or of its two."""
    most = MOST_GROUPS * columns(ctx, kernel) // ROWS_OF_A_CUT * ROWS_OF_A_CUT
    return most if _has_own_y(kernel) else most * MOST_GROUPS


def matrix_grid(ctx: StepContext, kernel: str, n: int) -> Grid:
    """Columns along x, and over y where there are too many; of many rows, tiles of them along y."""
    groups = -(-n // columns(ctx, kernel))
    if kernel in _ROWS_OF:
        rows = _ROWS_OF[kernel]
        per = rows if isinstance(rows, int) else ctx.chosen.constant(kernel, rows)
        return (groups, Extent("tokens", per=per), 1)
    y = -(-groups // MOST_GROUPS)
    return (-(-groups // y), y, 1)


def cut_parts(parts: tuple[MatrixPart, ...], most: int) -> Iterator[MatrixPart]:
    """Parts of at most so many rows, within the same buffers."""
    for part in parts:
        for start in range(0, part.rows, most):
            rows = min(most, part.rows - start)
            at = part.binding.offset + start * part.row_bytes
            binding = Binding(part.binding.buffer, at, rows * part.row_bytes)
            yield replace(part, binding=binding, first=part.first + start, rows=rows)


def rows_of_bias(bias: Binding, part: MatrixPart) -> Binding:
    """The bias of these rows; it begins at a multiple of 256 bytes, as cuts are of 64 rows."""
    offset = bias.offset + part.first * F32_BYTES
    if offset % ALIGNMENT:
        raise InferometerError(f"a part of a matrix begins at row {part.first}: expected a multiple of {ROWS_OF_A_CUT}")
    return Binding(bias.buffer, offset, part.rows * F32_BYTES)


def _has_own_y(kernel: str) -> bool:
    """Whether y of its grid means something else than more columns: tiles of rows, or splits of K."""
    return kernel in _ROWS_OF or "SPLITS" in read_kernel(kernel).constants
