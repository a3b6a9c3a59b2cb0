"""What the functions that launch kernels share: where a kernel runs, and tensors as rows.

When interpreted, a program takes about a millisecond however large its tile is, so tiles are larger there.
"""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np
import torch
import triton
from torch import Tensor

_TILE = 2_048
_INTERPRETED_TILE = 65_536
_WARP_ELEMENTS = 512  # of a tile, for one warp: 16 per lane


def interpreted(kernel: Any) -> bool:
    """Whether Triton runs this kernel on the CPU, in Python."""
    return not isinstance(kernel, triton.JITFunction)


def on_device_of(tensor: Tensor) -> AbstractContextManager[Any]:
    """Makes the tensor's GPU the current one, on which Triton launches.

    On a CPU, NumPy interprets: its warnings of overflow and of 0 / 0 are kept quiet, as a GPU has none.
    """
    if tensor.device.type == "cpu":
        return np.errstate(all="ignore")
    guard: AbstractContextManager[Any] = torch.cuda.device(tensor.device)
    return guard


@cache
def is_amd() -> bool:
    """Whether kernels are compiled for AMD's GPUs, whose blocks have less shared memory."""
    return str(triton.runtime.driver.active.get_current_target().backend) == "hip"


def rows_in_tile(rows: int, columns: int, kernel: Any) -> int:
    """How many rows of `columns`, a power of 2, one program takes: a power of 2."""
    most = (_INTERPRETED_TILE if interpreted(kernel) else _TILE) // columns
    return max(1, min(most, int(triton.next_power_of_2(rows))))


def warps_for(elements: int) -> int:
    """Warps for a tile with that many elements, a power of 2."""
    return max(1, min(16, elements // _WARP_ELEMENTS))


def as_rows(x: Tensor) -> Tensor:
    """[rows, last] of [..., last] with columns side by side: a view where one distance leads from row to row."""
    rows = x if x.dim() == 2 else x.reshape(x.numel() // max(x.shape[-1], 1), x.shape[-1])
    return rows if rows.stride(1) == 1 or rows.shape[1] == 1 else rows.contiguous()


def rows_and_answer(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`x` as rows, a new tensor like `x`, and that as rows: row i of one belongs to row i of the other.

    Rows are in the order of memory where `x` has no gaps, so heads that were swapped with tokens aren't copied.
    """
    answer = torch.empty_like(x)
    if x.dim() > 2 and not x.is_contiguous() and x.stride(-1) == 1:
        order = (*sorted(range(x.dim() - 1), key=lambda dim: -x.stride(dim)), x.dim() - 1)
        found, given = x.permute(order), answer.permute(order)
        if found.is_contiguous() and given.is_contiguous():
            return as_rows(found), answer, as_rows(given)
    if not answer.is_contiguous():
        answer = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    return as_rows(x), answer, as_rows(answer)
