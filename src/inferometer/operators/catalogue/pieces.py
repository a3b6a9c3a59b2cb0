"""References in pieces: so that float32 copies of the largest shapes fit next to them."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

_ELEMENTS = 1 << 26  # 256 MiB of float32


def pieces(rows: int, elements_a_row: int) -> Iterator[slice]:
    """Slices of `rows` that hold at most 2^26 elements each, at least one row; none where there are no rows."""
    step = max(1, _ELEMENTS // max(1, elements_a_row))
    for start in range(0, rows, step):
        yield slice(start, min(rows, start + step))


def by_rows(compute: "Callable[..., Any]", *tensors: "Tensor", out: "tuple[Tensor, ...]") -> "tuple[Tensor, ...]":
    """Fill `out` piece by piece: `compute` gets the same rows of each of `tensors` and gives those of each of `out`."""
    rows = out[0].shape[0]
    widest = max((tensor.numel() // max(1, rows) for tensor in (*tensors, *out)), default=1)
    for part in pieces(rows, widest):
        found = compute(*(tensor[part] for tensor in tensors))
        for whole, each in zip(out, found if isinstance(found, tuple) else (found,), strict=True):
            whole[part] = each.to(whole.dtype)
    return out
