"""How far an answer is from the right one: as a whole, in its worst row, and in its worst number."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

SMALL_ROW = 0.1
"""Rows count as at least this much of the usual row: what is nearly nothing can't be compared with itself."""

_PIECE = 1 << 24  # elements compared at once, in float64


@dataclass(frozen=True)
class Deviation:
    """Errors as shares of what is right; 0 where there is nothing.

    Attributes:
        whole: Norm of the error over norm of the answer.
        row: The same of the worst row (last dimension; of outputs with one dimension a single number).
        row_at: Which that is, the other dimensions flattened.
        number: The worst number's error over its size, or over the root mean square of its row if that is larger.
        number_at: Its place in its row.
        number_row: Its row.
    """

    whole: float = 0.0
    row: float = 0.0
    row_at: int = 0
    number: float = 0.0
    number_at: int = 0
    number_row: int = 0


def measure_deviation(found: "Tensor", wanted: "Tensor") -> Deviation:
    """Of tensors of one shape; infinities and NaN, which must agree, count as 0."""
    import torch

    if not wanted.numel():
        return Deviation()
    width = wanted.shape[-1] if wanted.dim() > 1 else 1
    own, other = found.reshape(-1, width), wanted.reshape(-1, width)
    step = max(1, _PIECE // width)
    parts = [slice(start, start + step) for start in range(0, own.shape[0], step)]
    wrong_R, size_R = (
        torch.cat([_plain(own[part], other[part])[place].square().sum(-1) for part in parts]) for place in (0, 1)
    )
    if not size_R.sum():
        return Deviation(float(wrong_R.sum().sqrt()), float(wrong_R.max().sqrt()), int(wrong_R.argmax()))
    least_R = size_R.sqrt().clamp(min=float(SMALL_ROW * size_R.mean().sqrt()))
    row_R = wrong_R.sqrt() / least_R
    worst = (0.0, 0)
    for part in parts:
        wrong_rW, right_rW = _plain(own[part], other[part])
        share_rW = wrong_rW.abs() / torch.maximum(right_rW.abs(), least_R[part, None] * width**-0.5)
        worst = max(worst, (float(share_rW.max()), part.start * width + int(share_rW.argmax())))
    at = int(row_R.argmax())
    return Deviation(
        float((wrong_R.sum() / size_R.sum()).sqrt()),
        float(row_R[at]),
        at,
        worst[0],
        worst[1] % width,
        worst[1] // width,
    )


def _plain(found: "Tensor", wanted: "Tensor") -> "tuple[Tensor, Tensor]":
    """The error and the answer in float64."""
    right = wanted.double().nan_to_num(0, 0, 0)
    return found.double().nan_to_num(0, 0, 0) - right, right
