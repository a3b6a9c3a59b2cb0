"""Faults that any kernel can have: one output of a right answer is spoiled, the others stay right.

Each is `spoil(right, stale, inputs)`: that output of the right answer, of other inputs, and the tensors of the call. It
gives what a candidate would return, or None where the output's kind or shape has no room for the fault.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from tests.bench.mutants.shared import cut, fp8, halves, moved, shifted
from torch import Tensor

from inferometer.operators.hard_cases import HardCase

Spoil = Callable[[Tensor, Tensor, Sequence[Tensor]], Any]


def _identity(right: Tensor, stale: Tensor, inputs: Sequence[Tensor]) -> Any:
    """The first input of the output's kind and shape."""
    del stale
    return next((x for x in inputs if (x.shape, x.dtype) == (right.shape, right.dtype)), None)


def _flipped(right: Tensor, *_: Any) -> Any:
    return (-right.float()).to(right.dtype) if right.dtype.is_floating_point else None


def _doubled(right: Tensor, *_: Any) -> Any:
    if not right.dtype.is_floating_point:
        return right * 2
    most = torch.finfo(right.dtype).max
    return (right.float() * 2).clamp(-most, most).to(right.dtype)


def _with(value: float) -> Spoil:
    """One number of the output replaced, the middle one."""

    def spoil(right: Tensor, *_: Any) -> Any:
        if not right.dtype.is_floating_point or (value in (float("inf"), float("-inf")) and right.itemsize == 1):
            return None  # e4m3 has no infinity
        if right.dtype.itemsize == 1:
            flat = right.float().flatten()
            flat[flat.numel() // 2] = value
            return flat.to(right.dtype).view(right.shape)
        flat = right.clone().flatten()
        flat[flat.numel() // 2] = value
        return flat.view(right.shape)

    return spoil


def _one_off(right: Tensor, *_: Any) -> Any:
    if right.dtype.is_floating_point:
        return None
    flat = right.clone().flatten()
    flat[flat.numel() // 2] += 1
    return flat.view(right.shape)


def _rows_swapped(right: Tensor, *_: Any) -> Any:
    """The first and last of the first dimension."""
    if right.shape[0] < 2:
        return None
    order = torch.arange(right.shape[0])
    order[[0, -1]] = order[[-1, 0]]
    return moved(right, lambda bits: bits[order])


def _last_never_written(right: Tensor, *_: Any) -> Any:
    """NaN, which outputs are filled with before a run; integers are filled with -1."""
    if right.dtype.is_floating_point:
        nan = torch.full_like(right, 1.0).float().mul(float("nan")).to(right.dtype)
        return moved(right, lambda bits: torch.cat([bits[:-1], moved_bits(nan)[-1:]]))
    return torch.cat([right[:-1], torch.full_like(right[-1:], -1)])


def moved_bits(x: Tensor) -> Tensor:
    """fp8 as bytes, all else as it is."""
    return x.view(torch.uint8) if x.dtype.itemsize == 1 and x.dtype.is_floating_point else x


def _fewer_bits(right: Tensor, *_: Any) -> Any:
    """Through e4m3, and e4m3 itself through e5m2."""
    if not right.dtype.is_floating_point or not right.float().isfinite().all():
        return None
    if right.dtype.itemsize == 1:
        return right.float().to(torch.float8_e5m2).float().to(right.dtype)
    return fp8(right.float()).to(right.dtype)


def _other_dtype(right: Tensor, *_: Any) -> Any:
    other = {torch.float32: torch.bfloat16, torch.int32: torch.int64}
    return right.to(other.get(right.dtype, torch.float32))


def _turned(right: Tensor, *_: Any) -> Any:
    """The same numbers with other strides."""
    if right.dim() < 2 or min(right.shape[0], right.shape[-1]) < 2:
        return None
    return moved(right, lambda bits: bits.transpose(0, -1).contiguous().transpose(0, -1))


class _Subclass(Tensor):  # type: ignore[misc]  # torch has no types here
    """What could answer a comparison as it likes."""


GENERIC: dict[str, Spoil] = {
    "zero output: zeros": lambda right, *_: torch.zeros_like(right),
    "stale output: of other inputs": lambda right, stale, _: stale if stale.shape == right.shape else None,
    "identity: an input": _identity,
    "swapped: first and last row": _rows_swapped,
    "swapped: halves of rows": lambda right, *_: halves(right) if right.shape[-1] > 1 else None,
    "position: rows off by one": lambda right, *_: shifted(right) if right.shape[0] > 1 else None,
    "missing part: last row zero": lambda right, *_: cut(right, 1, 0),
    "missing part: last columns zero": lambda right, *_: cut(right, max(1, right.shape[-1] // 8)),
    "missing part: last row never written": _last_never_written,
    "contract: a row too few": lambda right, *_: right[:-1].clone(),
    "scale: sign flipped": _flipped,
    "scale: twice as large": _doubled,
    "rounding: too few bits": _fewer_bits,
    "contract: another dtype": _other_dtype,
    "padding: NaN in one place": _with(float("nan")),
    "padding: infinity in one place": _with(float("inf")),
    "position: one integer off by one": _one_off,
    "contract: other strides": _turned,
    "contract: a dimension more": lambda right, *_: right[None].clone(),
    "contract: a subclass of Tensor": lambda right, *_: right.as_subclass(_Subclass),
}


SpoilHard = Callable[[Tensor, HardCase], Any]


def _where(found: Callable[[Tensor], Tensor], value: float, *kinds: str) -> SpoilHard:
    """Places of the right answer to a case of these kinds replaced, where there are any."""

    def spoil(right: Tensor, case: HardCase) -> Any:
        if not right.dtype.is_floating_point or not right.numel() or case.kind not in kinds:
            return None
        places = found(right.float())
        if not places.any() or (right.itemsize == 1 and value == float("inf")):
            return None
        return right.float().masked_fill(places, value).to(right.dtype)

    return spoil


def _first_row(right: Tensor) -> Tensor:
    rows = torch.zeros_like(right, dtype=torch.bool)
    rows[0] = True
    return rows & right.isfinite()


def _for_no_tokens(make: Callable[[Tensor], Any]) -> SpoilHard:
    return lambda right, case: make(right) if case.kind == "no tokens" and not right.numel() else None


_LARGE = ("large numbers", "offset")
GENERIC_HARD: dict[str, SpoilHard] = {
    "NaN: 0 in its place": _where(torch.isnan, 0.0, "NaN", "infinity"),
    "NaN: the largest number in its place": _where(torch.isnan, 240.0, "NaN", "infinity"),
    "NaN: infinity in its place": _where(torch.isnan, float("inf"), "NaN", "infinity"),
    "NaN: in place of infinity": _where(torch.isinf, float("nan"), "infinity"),
    "NaN: 0 in place of infinity": _where(torch.isinf, 0.0, "infinity"),
    "overflow: infinity for the largest": _where(lambda x: x == x.max(), float("inf"), *_LARGE),
    "overflow: NaN for the largest": _where(lambda x: x == x.max(), float("nan"), *_LARGE),
    "overflow: 0 for all": _where(lambda x: x != 0, 0.0, *_LARGE),
    "zeros: NaN in the first row": _where(_first_row, float("nan"), "zeros", "tiny numbers", "masked", "ties"),
    "zeros: infinity in the first row": _where(_first_row, float("inf"), "zeros", "tiny numbers", "masked", "ties"),
    "no tokens: a row for none": _for_no_tokens(lambda right: right.new_zeros(1, *right.shape[1:])),
    "no tokens: None": _for_no_tokens(lambda _: None),
    "no tokens: another dtype": _for_no_tokens(lambda right: right.to(torch.float64)),
}
"""Faults of the answer to a hard case."""
