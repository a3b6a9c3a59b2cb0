"""Faults that any kernel can have: it reads one of its inputs wrong, and computes what it should of that.

`READ` are wrong with usual inputs; `HARD` with hard ones alone: numbers of a wide range held in fp16, or a NaN that is
taken for a number. Each gives the tensor that the kernel would have meant to read, or None where the input has no room
for the fault. What can't matter, as an operator's module knows (`HARMLESS`), isn't tried.
"""

from collections.abc import Callable

import torch
from tests.bench.mutants.shared import cut, fp8, halves, moved, shifted
from torch import Tensor

Misread = Callable[[Tensor, Tensor], Tensor | None]
"""Of the input, and of the same input of another call."""

_SMALL, _LARGE = 1e-20, 1e4


def _is_float(x: Tensor) -> bool:
    return x.dtype.is_floating_point


def _floats(change: Callable[[Tensor], Tensor]) -> Misread:
    """Of numbers, within their type's range."""

    def misread(x: Tensor, _: Tensor) -> Tensor | None:
        if not _is_float(x):
            return None
        most = torch.finfo(x.dtype).max
        return change(x.float()).clamp(-most, most).to(x.dtype)

    return misread


def _wide(change: Callable[[Tensor], Tensor]) -> Misread:
    """Of real numbers of 16 bits or more, whatever becomes of them."""

    def misread(x: Tensor, _: Tensor) -> Tensor | None:
        return change(x.float()).to(x.dtype) if _is_float(x) and x.itemsize > 1 else None

    return misread


def _numbers(change: Callable[[Tensor], Tensor]) -> Misread:
    """Moved, of real numbers alone."""
    return lambda x, _: moved(x, change) if _is_float(x) else None


READ: dict[str, Misread] = {
    "dropped term: zeros for {}": lambda x, _: torch.zeros_like(x) if _is_float(x) else None,
    "stale input: {} of other inputs": lambda x, stale: stale if stale.shape == x.shape else None,
    "position: {}, rows off by one": lambda x, _: shifted(x) if len(x) > 1 else None,
    "position: {}, columns off by one": lambda x, _: (
        shifted(x, dim=-1) if _is_float(x) and x.dim() > 1 and x.shape[-1] > 1 else None
    ),
    "swapped: {}, halves": _numbers(halves),
    "missing part: {}, last columns": lambda x, _: cut(x, max(1, x.shape[-1] // 8)) if _is_float(x) else None,
    "missing part: {}, last row": lambda x, _: cut(x, 1, 0) if _is_float(x) and len(x) > 1 else None,
    "scale: {} twice as large": _floats(lambda x: x * 2),
    "scale: {} negated": _floats(lambda x: -x),
    "scale: magnitudes of {}": _floats(torch.abs),
    "rounding: {} in fp8": lambda x, _: fp8(x.float()).to(x.dtype) if _is_float(x) and x.itemsize > 1 else None,
    "rounding: {} in whole numbers": _floats(torch.round),
}

HARD: dict[str, Misread] = {
    "NaN: taken for 0 in {}": _wide(lambda x: torch.where(x.isnan(), 0.0, x)),
    "NaN: taken for the least of {}": _wide(lambda x: torch.where(x.isnan(), -_LARGE, x)),
    "overflow: {} in fp16": _wide(lambda x: x.half().float()),
    "overflow: {} cut off at 10,000": _wide(lambda x: torch.where(x.isfinite(), x.clamp(-_LARGE, _LARGE), x)),
    "overflow: infinity cut off in {}": _wide(lambda x: torch.where(x.isinf(), x.sign() * _LARGE, x)),
    "zeros: numbers below 1e-20 of {}": _wide(lambda x: torch.where(x.abs() < _SMALL, 0.0, x)),
    "zeros: 1 for 0 in {}": _wide(lambda x: torch.where(x == 0, 1.0, x)),
}
