"""Is an answer right: kind, shape and layout of every output; its error by norm, by row, in units of the last place.

One tolerance for every element would let a zero tensor pass where outputs are small, and refuse a right kernel where an
fp8 value is rounded the other way. So errors are measured against the size of what is right:

- real numbers: norm of the error over norm of the answer, at most the output's tolerance, or three times what plain
  PyTorch in the same dtypes gets wrong on that shape, if that is more (`calibration.json`); and the same of every row
  (last dimension), at most `ROW` times as much, so that one wrong token among thousands is seen; and of every number
  against itself or its row, at most `NUMBER` times as much;
- fp8 values that round an exactly defined number (`Operator.quantised`): at most `FLIPPED` of them, and the ties
  of two rows, to a neighbour;
- integers and `Operator.exact`: to the bit. Infinities and NaN must be where they are wanted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inferometer.bench.calibration import calibrated
from inferometer.bench.deviation import measure_deviation
from inferometer.operators.operator import TOLERANCE, Operator

if TYPE_CHECKING:
    from torch import Tensor

    from inferometer.operators.hard_cases import LeftOpen

ROW = 8
"""Times the tolerance that a single row may be off: rounding errors of few numbers vary more than those of many."""

NUMBER = 16
"""Times the tolerance that a single number may be off: right kernels reach 7."""

FLIPPED = 0.01
"""Share of fp8 values that may be their neighbours: x * (1 / s) in place of x / s flips about 1e-4 of them."""

TIES, TIED_ROWS = 1 / 16, 2
"""So many values of so many rows may be more: bf16 has four bits more than e4m3, so where a row's largest value makes a
scale of few bits, up to a 16th of the row lies on ties, which the scale's last bit decides. One row of 50 is such a
row: in outputs of few rows, right kernels flip more than `FLIPPED`."""

_SHORT = {"torch.float32": "fp32", "torch.float16": "fp16", "torch.bfloat16": "bf16", "torch.float64": "fp32"}
_PIECE = 1 << 24  # elements compared at once


@dataclass(frozen=True)
class OutputCheck:
    """One output of one case.

    Attributes:
        output: Its name.
        reason: Why it is wrong; None where it is right.
        error: Norm of the error over norm of the answer; None where kind or shape is wrong already.
        row_error: The greatest of all rows.
        tolerance: What `error` may be; 0: exact.
    """

    output: str
    reason: str | None
    error: float | None = None
    row_error: float | None = None
    tolerance: float | None = None

    @property
    def is_right(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.reason is None


def compare_outputs(
    operator: Operator,
    found: Any,
    wanted: "Mapping[str, Tensor]",
    args: Mapping[str, Any] | None = None,
    tensors: "Mapping[str, Tensor] | None" = None,
    left_open: "LeftOpen | None" = None,
) -> list[OutputCheck]:
    """Every output of an answer; `found` is what a candidate returned: a tensor, or a tuple or list of them.

    `args`: of the shape, whose calibrated tolerances hold; None: those of operator and dtype. With the `tensors` of the
    call, what is left open (by the operator, and by `left_open` in this case) is wanted as it was found.
    """
    values = list(found) if isinstance(found, tuple | list) else [found]
    if len(values) != len(wanted):
        reason = f"expected {len(wanted)} outputs ({', '.join(wanted)}), found {len(values)}"
        return [OutputCheck(next(iter(wanted)), reason)]
    if operator.judge is not None:
        return operator.judge(values, wanted)
    if tensors is not None and all(not list(wrong_kind(*pair)) for pair in zip(values, wanted.values(), strict=True)):
        named = dict(zip(wanted, values, strict=True))
        for settle in (operator.left_open, left_open):
            wanted = wanted if settle is None else settle(named, wanted, tensors, args or {})
    least = {} if args is None else calibrated(operator, args)
    return [
        _compare(
            operator, name, value, wanted[name], max(tolerance_of(operator, name, wanted[name]), least.get(name, 0.0))
        )
        for name, value in zip(wanted, values, strict=True)
    ]


def tolerance_of(operator: Operator, output: str, wanted: "Tensor") -> float:
    """Of the norm of an output's error: the operator's own, or that of the dtype; 0 where it must be exact."""
    if output in operator.exact or not wanted.dtype.is_floating_point:
        return 0.0
    return operator.tolerance.get(output, TOLERANCE[_SHORT.get(str(wanted.dtype), "fp8")])


def flips_allowed(wanted: "Tensor") -> float:
    """How many of an output's rounded values may be their neighbours."""
    width = int(wanted.shape[-1]) if wanted.dim() else 1
    rows = int(wanted.numel()) // max(1, width)
    return FLIPPED * rows * width + TIES * width * min(rows, TIED_ROWS)


def _compare(operator: Operator, name: str, found: Any, wanted: "Tensor", allowed: float) -> OutputCheck:
    kind = next(wrong_kind(found, wanted), None)
    if kind is not None:
        return OutputCheck(name, kind)
    if wanted.dtype.is_floating_point:
        odd = _odd_places(found, wanted)
        if odd:
            return OutputCheck(name, odd, tolerance=allowed)
    if not allowed:
        wrong = int((found != wanted).sum() - ((found != found) & (wanted != wanted)).sum())
        reason = f"{wrong:,} of {wanted.numel():,} values differ, and must be exact" if wrong else None
        return OutputCheck(name, reason, float(wrong > 0), float(wrong > 0), 0.0)
    if name in operator.quantised:
        return _compare_rounded(name, found, wanted, allowed)
    off = measure_deviation(found, wanted)
    reason = None
    if not off.whole <= allowed:
        reason = f"the error is {off.whole:.3g} of the answer, expected at most {allowed:g}"
    elif not off.row <= ROW * allowed:
        reason = f"row {off.row_at:,} is {off.row:.3g} off, expected at most {ROW * allowed:g}"
    elif not off.number <= NUMBER * allowed:
        where = f"number {off.number_at:,} of row {off.number_row:,}"
        reason = f"{where} is {off.number:.3g} off, expected at most {NUMBER * allowed:g}"
    return OutputCheck(name, reason, off.whole, off.row, allowed)


def wrong_kind(found: Any, wanted: "Tensor") -> Iterator[str]:
    """What is wrong with type, dtype, shape, device and layout."""
    import torch

    if type(found) is not torch.Tensor:
        yield f"expected a plain torch.Tensor, found {type(found).__name__}"
        return
    for fact in ("dtype", "shape", "device", "layout"):
        own, other = getattr(found, fact), getattr(wanted, fact)
        if own != other:
            yield f"expected {fact} {_text(other)}, found {_text(own)}"
    if wanted.is_contiguous() and not found.is_contiguous():
        yield f"expected a dense tensor, found strides {tuple(found.stride())}"


def _text(fact: Any) -> str:
    return str(tuple(fact)) if isinstance(fact, tuple) else str(fact).removeprefix("torch.")


def _odd_places(found: "Tensor", wanted: "Tensor") -> str | None:
    """What is wrong with infinities and NaN: the first place, by its row."""
    width = int(wanted.shape[-1]) if wanted.dim() > 1 else 1
    for piece, (own, other) in enumerate(_in_pieces(found, wanted)):
        odd = ~other.isfinite()
        differ = (own.isfinite() == odd) | (odd & (own != other) & ~(own.isnan() & other.isnan()))
        if differ.any():
            at = int(differ.nonzero()[0])
            row, count = (piece * _PIECE + at) // width, int(differ.sum())
            words = f"{_said(own[at].item())} in row {row:,}, the reference has {_said(other[at].item())}"
            return words if count == 1 else f"{words} ({count:,} such numbers at least)"
    return None


def _said(value: float) -> str:
    return "NaN" if value != value else f"{value:g}".replace("inf", "infinity")


def _compare_rounded(name: str, found: "Tensor", wanted: "Tensor", allowed: float) -> OutputCheck:
    """Distances in units of the last place: of fp8, bits in order of value."""
    apart = (_ordered(found) - _ordered(wanted)).abs()
    unlike, most = int((apart > 0).sum()), int(apart.max()) if apart.numel() else 0
    off = measure_deviation(found, wanted)
    reason = None
    if most > 1:
        reason = f"a value is {most} units of the last place off, expected at most 1"
    elif unlike > flips_allowed(wanted):
        share, most_share = unlike / apart.numel(), flips_allowed(wanted) / apart.numel()
        reason = f"{share:.2%} of the values are rounded the other way, expected at most {most_share:.2%}"
    return OutputCheck(name, reason, off.whole, off.row, allowed)


def _ordered(values: "Tensor") -> "Tensor":
    """fp8 bits as integers that rise with the value; both zeros are 0."""
    import torch

    bits = values.view(torch.uint8).to(torch.int16)
    return torch.where(bits >= 128, 128 - bits, bits)


def _in_pieces(found: "Tensor", wanted: "Tensor") -> "Iterator[tuple[Tensor, Tensor]]":
    own, other = found.reshape(-1), wanted.reshape(-1)
    for start in range(0, own.numel(), _PIECE):
        yield own[start : start + _PIECE].float(), other[start : start + _PIECE].float()
