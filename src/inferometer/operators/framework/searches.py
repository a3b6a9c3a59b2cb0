"""Searches, draws and counts: how much is found stands in values, so that of some results nothing must be written.

The input is read once. Of a sorted sequence in which something is looked up, no more is read than was looked up.
"""

from math import prod

from inferometer.operators.framework.call import OpCall, Unmodelled
from inferometer.operators.framework.counting import moved, read_bytes
from inferometer.operators.framework.family import Model, OpFamily
from inferometer.operators.work import Work

_INDEX_BYTES = 8
_NOTHING_FOUND = "nothing is written: how much is found isn't recorded"


def _found(call: OpCall) -> Work:
    """`x`: how much of it is other than 0, or different, decides how long the result is."""
    x = call.tensor(0)
    return moved(x.bytes, 0, vector=x.numel, assumes=(_NOTHING_FOUND,))


def _masked(call: OpCall) -> Work:
    """`x`, mask: nothing of x needs to be read or written where the mask is empty."""
    mask = call.tensor(1)
    return moved(mask.bytes, 0, vector=mask.numel, assumes=(_NOTHING_FOUND,))


def _places(sorted_at: int, values_at: int, narrow_at: int) -> Model:
    """A sorted sequence, and values whose places in it are written: of 4 bytes if the argument there says so."""

    def work(call: OpCall) -> Work:
        sequence, values = call.tensor(sorted_at), call.tensor(values_at)
        size = 4 if call.value(narrow_at) else _INDEX_BYTES
        read = values.bytes + min(sequence.touched, values.numel) * sequence.item_bytes
        return moved(read, values.numel * size, vector=values.numel)

    return work


def _nth(call: OpCall) -> Work:
    """`x`, which, dimension: one value of each row, and its index."""
    x = call.tensor(0)
    rows = x.numel // x.dims[call.integer(2, -1)] if x.dims and x.numel else 0
    return moved(x.bytes, rows * (x.item_bytes + _INDEX_BYTES), vector=x.numel)


def _middle(call: OpCall) -> Work:
    """`x`, and a dimension, or that of all."""
    x = call.tensor(0)
    if len(call.inputs) < 2 or call.inputs[1] is None:
        return moved(x.bytes, x.item_bytes, vector=x.numel)
    rows = x.numel // x.dims[call.integer(1)] if x.dims and x.numel else 0
    return moved(x.bytes, rows * (x.item_bytes + _INDEX_BYTES), vector=x.numel)


def _drawn(call: OpCall) -> Work:
    """Weights [..., V] of what is drawn, how many: their indices."""
    x = call.tensor(0)
    if not x.dims:
        raise Unmodelled("its weights have no dimension")
    return moved(x.bytes, prod(x.dims[:-1]) * call.integer(1) * _INDEX_BYTES, vector=x.numel)


def _counted(call: OpCall) -> Work:
    """Whole numbers, weights of them: how many there are of each, up to the greatest or a least number."""
    x = call.tensor(0)
    read = x.bytes + read_bytes([call.maybe_tensor(1)])
    return moved(read, call.integer(2, 0) * _INDEX_BYTES, vector=x.numel, assumes=(_NOTHING_FOUND,))


def _histogram(call: OpCall) -> Work:
    """`x`, bins."""
    x = call.tensor(0)
    return moved(x.bytes, call.integer(1, 100) * x.item_bytes, vector=x.numel)


FAMILY = OpFamily(
    name="searches and draws",
    models={
        **dict.fromkeys(("aten::nonzero", "aten::_unique", "aten::_unique2", "aten::unique_dim"), _found),
        "aten::unique_consecutive": _found,
        **dict.fromkeys(("aten::masked_select", "aten::masked_scatter_"), _masked),
        "aten::searchsorted": _places(0, 1, 2),
        "aten::bucketize": _places(1, 0, 2),
        "aten::kthvalue": _nth,
        **dict.fromkeys(("aten::median", "aten::nanmedian"), _middle),
        "aten::multinomial": _drawn,
        "aten::bincount": _counted,
        "aten::histc": _histogram,
    },
)
