"""Copies, casts and joins: what is read and what is written, each in its own type; nothing is calculated.

A copy's own bytes (`launches.bytes`) are measured and never enter here.
"""

from math import prod

from inferometer.operators.framework.call import OpCall, Unmodelled
from inferometer.operators.framework.counting import broadcast, listed_bytes, moved
from inferometer.operators.framework.family import OpFamily
from inferometer.operators.work import Work


def _copy(call: OpCall) -> Work:
    """`copy_(destination, source)`: an expanded source is read once."""
    to, of = call.tensor(0), call.tensor(1)
    return moved(of.bytes, to.bytes)


def _clone(call: OpCall) -> Work:
    x = call.tensor(0)
    return moved(x.bytes, x.numel * x.item_bytes)


def _cat(call: OpCall) -> Work:
    """The parts are read as far as they are touched; their types stand in the kernel's name alone."""
    parts = call.tensors(0)
    size = listed_bytes(call)
    return moved(sum(part.touched for part in parts) * size, sum(part.numel for part in parts) * size)


def _foreach_copy(call: OpCall) -> Work:
    to, of = call.tensors(0), call.tensors(1)
    size = listed_bytes(call)
    return moved(sum(part.touched for part in of) * size, sum(part.touched for part in to) * size)


def _repeat(call: OpCall) -> Work:
    x = call.tensor(0)
    times = prod(call.integers(1))
    return moved(x.bytes, x.numel * times * x.item_bytes)


def _triangle(call: OpCall) -> Work:
    """`x` [..., rows, columns], diagonal: of what becomes 0 nothing is read; in place it alone is written."""
    x = call.tensor(0)
    if len(x.dims) < 2:
        raise Unmodelled(f"expected rows and columns, found {list(x.dims)}")
    rows, columns = x.dims[-2:]
    kept = prod(x.dims[:-2]) * _kept_of_triangle(rows, columns, call.integer(1, 0), upper="triu" in call.op)
    if call.op.endswith("_"):
        return moved(0, (x.numel - kept) * x.item_bytes)
    return moved(min(x.touched, kept) * x.item_bytes, x.numel * x.item_bytes)


def _kept_of_triangle(rows: int, columns: int, diagonal: int, *, upper: bool) -> int:
    """Elements on the diagonal and above it, or below."""
    if not upper:
        return _kept_of_triangle(columns, rows, -diagonal, upper=True)
    full = min(rows, max(0, 1 - diagonal))  # rows that are kept whole
    until = max(full, min(rows, columns - diagonal))
    return full * columns + sum(columns - diagonal - row for row in (full, until - 1)) * (until - full) // 2


def _complex(call: OpCall) -> Work:
    """Real and imaginary parts."""
    real, imaginary = call.tensor(0), call.tensor(1)
    numel = prod(broadcast((real, imaginary)))
    return moved(real.bytes + imaginary.bytes, 2 * numel * real.item_bytes)


def _scalar(call: OpCall) -> Work:
    """One element to the host."""
    x = call.tensor(0)
    return moved(x.item_bytes, x.item_bytes)


def _resized(call: OpCall) -> Work:
    raise Unmodelled("how much of the tensor stays isn't recorded")


FAMILY = OpFamily(
    name="copies",
    models={
        "aten::copy_": _copy,
        "aten::_foreach_copy_": _foreach_copy,
        "aten::clone": _clone,
        "aten::contiguous": _clone,
        "aten::cat": _cat,
        "aten::stack": _cat,
        **dict.fromkeys(("aten::flip", "aten::roll"), _clone),
        **dict.fromkeys(("aten::triu", "aten::triu_", "aten::tril", "aten::tril_"), _triangle),
        "aten::complex": _complex,
        "aten::repeat": _repeat,
        "aten::_local_scalar_dense": _scalar,
        "aten::resize_": _resized,
    },
)
