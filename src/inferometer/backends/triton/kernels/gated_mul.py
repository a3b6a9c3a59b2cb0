# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""A gate's activation times the up-projection, element by element. Sources: arXiv:2002.05202, arXiv:1606.08415."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from inferometer.backends.triton.kernels._launching import as_rows, interpreted, on_device_of, rows_in_tile, warps_for
from inferometer.backends.triton.kernels._rounding import rounded

_WIDEST = 1_024


@triton.jit
def gated_rows(
    gate, up, out, rows, columns, gate_stride, up_stride,
    GELU: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    """`out` is dense. The activation is rounded before the product, as PyTorch does."""
    row = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    column = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK))[None, :]
    inside = (row < rows) & (column < columns)
    gates = tl.load(gate + row * gate_stride + column, mask=inside, other=0.0).to(tl.float32)
    ups = tl.load(up + row * up_stride + column, mask=inside, other=0.0).to(tl.float32)
    curve = gates
    if GELU:  # (1 + tanh(u)) / 2 is the logistic function of 2 u, with u = sqrt(2 / pi) (x + 0.044715 x^3)
        curve = 1.5957691216057308 * gates * (1.0 + 0.044715 * gates * gates)
    active = rounded(gates / (1.0 + tl.exp(-curve)), out.dtype.element_ty, INTERPRETED).to(tl.float32)
    answer = rounded(active * ups, out.dtype.element_ty, INTERPRETED)
    tl.store(out + row * columns + column, answer, mask=inside)


def silu_mul(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up, new and dense, of the shape and dtype of `gate`."""
    return _launch(gate, up, gelu=False)


def gelu_mul(gate: Tensor, up: Tensor) -> Tensor:
    """gelu(gate) * up, in the tanh form; new and dense, of the shape and dtype of `gate`."""
    return _launch(gate, up, gelu=True)


def _launch(gate: Tensor, up: Tensor, *, gelu: bool) -> Tensor:
    gate_RI, up_RI = as_rows(gate), as_rows(up)
    R, width = gate_RI.shape
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    is_wide = not interpreted(gated_rows)
    block = min(triton.next_power_of_2(width), _WIDEST) if is_wide else triton.next_power_of_2(width)
    rows = rows_in_tile(R, block, gated_rows)
    with on_device_of(gate):
        gated_rows[(triton.cdiv(R, rows), triton.cdiv(width, block))](
            gate_RI, up_RI, out, R, width, gate_RI.stride(0), up_RI.stride(0), GELU=gelu, ROWS=rows, BLOCK=block,
            INTERPRETED=interpreted(gated_rows), num_warps=warps_for(rows * block),
        )  # fmt: skip
    return out
