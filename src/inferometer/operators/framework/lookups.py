"""Rows and elements by their indices: gather, index, embedding, scatter. What is read counts, not a table's size.

Indices may repeat, and what repeats is read from a cache: a call can be faster than its bound.
"""

from math import prod

from inferometer.operators.framework.call import OpCall, Tensor, Unmodelled
from inferometer.operators.framework.counting import moved, read_bytes
from inferometer.operators.framework.family import OpFamily
from inferometer.operators.work import Work

_NO_INDEX = "the sizes of its indices weren't recorded"


def _rows(table: Tensor, index: Tensor, dim: int = 0) -> int:
    """Elements of the rows that an index names along a dimension."""
    if not table.dims:
        raise Unmodelled("its table has no dimension")
    return index.numel * (table.numel // table.dims[dim] if table.dims[dim] else 0)


def _index_select(call: OpCall) -> Work:
    """`x`, dimension, index."""
    x, index = call.tensor(0), call.tensor(2)
    selected = _rows(x, index, _dim(call, 1)) * x.item_bytes
    return moved(selected + index.bytes, selected)


def _dim(call: OpCall, at: int) -> int:
    """The dimension; the first where the file has no values, as lookups of rows have it."""
    try:
        return call.integer(at, 0)
    except Unmodelled:
        return 0


def _embedding(call: OpCall) -> Work:
    """Weight [V, H], indices."""
    table, index = call.tensor(0), call.tensor(1)
    rows = _rows(table, index) * table.item_bytes
    return moved(rows + index.bytes, rows)


def _gather(call: OpCall) -> Work:
    """`x`, dimension, index: an element for each index; an expanded index is read once."""
    x, index = call.tensor(0), call.tensor(2)
    elements = index.numel * x.item_bytes
    return moved(elements + index.bytes, elements)


def _index(call: OpCall) -> Work:
    """`x` and a list of indices, whose sizes profilers leave out: those of an index of all of the first dimension."""
    selection = next((each for each in call.inside if each.op == "aten::index_select"), None)
    if selection is not None:
        return _index_select(selection)
    indices = call.inputs[1] if len(call.inputs) > 1 else None
    if not isinstance(indices, tuple) or not indices:
        raise Unmodelled(_NO_INDEX)
    x = call.tensor(0)
    rest = prod(x.dims[len(indices) :])
    numel = max(index.numel for index in indices) * rest
    return moved(numel * x.item_bytes + sum(8 * index.touched for index in indices), numel * x.item_bytes)


def _index_put(call: OpCall) -> Work:
    """`x`, indices (not recorded), values: an element is written for each value, and an index of 8 bytes read."""
    x, values = call.tensor(0), call.tensor(2)
    row = x.numel // x.dims[0] if x.dims and x.dims[0] else 1
    indices = max(1, values.numel // row) if len(values.dims) > 1 else values.numel
    return moved(values.bytes + 8 * indices, values.numel * x.item_bytes)


def _scatter(call: OpCall) -> Work:
    """`x`, dimension, index, source: in place, an element for each index is written; others stay."""
    x, index = call.tensor(0), call.tensor(2)
    source = call.maybe_tensor(3)
    of_source = index.numel * source.item_bytes if source is not None else 0
    in_place = call.op.endswith("_")
    whole = 0 if in_place else x.bytes
    written = (index if in_place else x).numel * x.item_bytes
    return moved(index.bytes + of_source + whole, written, vector=index.numel if "add" in call.op else 0)


def _taken(call: OpCall) -> Work:
    """`x`, index: elements of `x` as if it had one dimension."""
    x, index = call.tensor(0), call.tensor(1)
    elements = index.numel * x.item_bytes
    return moved(elements + index.bytes, elements)


def _put(call: OpCall) -> Work:
    """`x`, index, source: elements of `x` as if it had one dimension are written."""
    x, index, source = call.tensor(0), call.tensor(1), call.tensor(2)
    return moved(index.bytes + source.bytes, index.numel * x.item_bytes)


def _filled_rows(call: OpCall) -> Work:
    """`x`, dimension, index, number."""
    x, index = call.tensor(0), call.tensor(2)
    return moved(index.bytes, _rows(x, index, _dim(call, 1)) * x.item_bytes)


def _table_gradient(call: OpCall) -> Work:
    """Gradient [..., H], indices, rows of the table: another op clears it, and each row that was looked up is written.

    At least one row was.
    """
    grad, index = call.tensor(0), call.tensor(1)
    row = grad.dims[-1] * grad.item_bytes if grad.dims and index.numel else 0
    return moved(grad.bytes + index.bytes, row, vector=grad.numel, assumes=(_ONE_ROW,))


def _bags(call: OpCall) -> Work:
    """Weight [V, H], indices, where each bag begins, and at 6 weights, at 7 whether the end is listed, too."""
    table, index, starts = call.tensor(0), call.tensor(1), call.tensor(2)
    bags = max(0, starts.numel - bool(call.value(7)))
    row = table.dims[-1] * table.item_bytes if table.dims else 0
    read = index.numel * row + index.bytes + starts.bytes + read_bytes([call.maybe_tensor(6)])
    return moved(read, bags * row, vector=index.numel * (table.dims[-1] if table.dims else 0))


_ONE_ROW = "one row is written: how many different ones were looked up isn't recorded"
FAMILY = OpFamily(
    name="lookups",
    models={
        "aten::index_select": _index_select,
        "aten::embedding": _embedding,
        "aten::gather": _gather,
        "aten::index": _index,
        **dict.fromkeys(("aten::index_put_", "aten::_index_put_impl_", "aten::index_put"), _index_put),
        **dict.fromkeys(("aten::scatter_", "aten::scatter", "aten::scatter_add_", "aten::scatter_add"), _scatter),
        **dict.fromkeys(("aten::index_add_", "aten::index_copy_"), _scatter),
        "aten::take": _taken,
        "aten::put_": _put,
        "aten::index_fill_": _filled_rows,
        **dict.fromkeys(("aten::embedding_dense_backward", "aten::_embedding_bag_dense_backward"), _table_gradient),
        **dict.fromkeys(("aten::_embedding_bag", "aten::_embedding_bag_forward_only"), _bags),
    },
    covering=frozenset({"aten::embedding"}),
    looks_inside=frozenset({"aten::index"}),
)
