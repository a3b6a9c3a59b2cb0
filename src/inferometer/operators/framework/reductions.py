"""Reductions, scans and sorts: the input is read once; sorting passes and second readings aren't compulsory.

Which dimensions are reduced stands among the values. Where a file has none, results count as one element: a bound
stays below the truth.
"""

from collections.abc import Callable
from math import prod

from inferometer.operators.framework.call import OpCall, Tensor, Unmodelled
from inferometer.operators.framework.counting import is_whole, moved
from inferometer.operators.framework.family import Model, OpFamily
from inferometer.operators.work import Work

_UNKNOWN = "its result is one element: which dimensions are reduced isn't recorded"
_INDEX_BYTES = 8


def _first(call: OpCall) -> Tensor:
    """The first tensor: some redispatched calls have an empty place before it."""
    if not call.all_tensors:
        raise Unmodelled("it has no tensor")
    return call.all_tensors[0]


def _reducing(*, dims_at: int | None, item: Callable[[Tensor], int], vector: int = 1, special: int = 0) -> Model:
    """A reduction over the dimensions at `dims_at` (all where that is None or empty)."""

    def work(call: OpCall) -> Work:
        x = _first(call)
        kept, assumes = _kept(call, x, dims_at)
        size = item(x)
        return moved(x.bytes, kept * size, vector=vector * x.numel, special=special * x.numel, assumes=assumes)

    return work


def _kept(call: OpCall, x: Tensor, dims_at: int | None) -> tuple[int, tuple[str, ...]]:
    """Elements of the result, and what is assumed of them."""
    if dims_at is None or dims_at >= len(call.inputs) or call.inputs[dims_at] is None:
        values = any(isinstance(each, str) and each for each in call.inputs)
        return (1, ()) if values or dims_at is None or len(x.dims) < 2 else (1, (_UNKNOWN,))
    try:
        dims = call.integers(dims_at)
    except Unmodelled:
        return 1, (_UNKNOWN,)
    if not dims:
        return 1, ()
    if any(not -len(x.dims) <= dim < max(len(x.dims), 1) for dim in dims):
        raise Unmodelled(f"it reduces dimensions {list(dims)} of a tensor {list(x.dims)}")
    gone = {dim % max(len(x.dims), 1) for dim in dims}
    return prod(size for at, size in enumerate(x.dims) if at not in gone), ()


def _same(x: Tensor) -> int:
    return x.item_bytes


def _summed(x: Tensor) -> int:
    """Sums of integers and truths are of 8 bytes."""
    return 8 if is_whole(x.dtype) else x.item_bytes


def _two(x: Tensor) -> int:
    return 2 * x.item_bytes


def _one_byte(_: Tensor) -> int:
    return 1


def _index(_: Tensor) -> int:
    return _INDEX_BYTES


def _and_index(x: Tensor) -> int:
    return x.item_bytes + _INDEX_BYTES


def _extreme(call: OpCall) -> Work:
    """`max` and `min`: of all, of a dimension with its indices, or of two tensors."""
    if call.maybe_tensor(1) is not None:
        a, b = call.all_tensors[:2]
        return moved(a.bytes + b.bytes, max(a.numel, b.numel) * a.item_bytes, vector=max(a.numel, b.numel))
    dims_at = 1 if len(call.inputs) > 1 else None
    return _reducing(dims_at=dims_at, item=_and_index if dims_at else _same)(call)


def _scan(call: OpCall) -> Work:
    """Sums along a dimension; of integers they are of 8 bytes unless a type is given."""
    x = _first(call)
    dtype = [at for at in range(2, len(call.inputs)) if call.inputs[at]]
    size = x.item_bytes if dtype else _summed(x)
    return moved(x.bytes, x.numel * size, vector=x.numel)


def _sort(call: OpCall) -> Work:
    x = _first(call)
    return moved(x.bytes, x.numel * (x.item_bytes + _INDEX_BYTES))


def _topk(call: OpCall) -> Work:
    """`x`, k, dimension: the values and their indices."""
    x = _first(call)
    k = call.integer(1)
    rows = x.numel // x.dims[call.integer(2, -1)] if x.dims and x.numel else 0
    return moved(x.bytes, rows * k * (x.item_bytes + _INDEX_BYTES), vector=x.numel)


def _repeat_interleave(call: OpCall) -> Work:
    """How often each index is repeated decides the length of the result: at least nothing."""
    repeats = _first(call)
    return moved(repeats.bytes, 0, assumes=("nothing is written: the sum of the repeats isn't recorded",))


_sum = _reducing(dims_at=1, item=_summed)
FAMILY = OpFamily(
    name="reductions and sorts",
    models={
        "aten::sum": _sum,
        "aten::nansum": _sum,
        "aten::count_nonzero": _reducing(dims_at=1, item=_index),
        **dict.fromkeys(("aten::mean", "aten::amax", "aten::amin", "aten::prod"), _reducing(dims_at=1, item=_same)),
        **dict.fromkeys(("aten::all", "aten::any"), _reducing(dims_at=1, item=_one_byte)),
        **dict.fromkeys(("aten::argmax", "aten::argmin"), _reducing(dims_at=1, item=_index)),
        **dict.fromkeys(("aten::var", "aten::std"), _reducing(dims_at=1, item=_same, vector=3)),
        **dict.fromkeys(("aten::var_mean", "aten::std_mean"), _reducing(dims_at=1, item=_two, vector=3)),
        "aten::aminmax": _reducing(dims_at=1, item=_two, vector=2),
        "aten::linalg_vector_norm": _reducing(dims_at=2, item=_same, vector=2),
        "aten::norm": _reducing(dims_at=2, item=_same, vector=2),
        "aten::logsumexp": _reducing(dims_at=1, item=_same, vector=2, special=1),
        **dict.fromkeys(("aten::max", "aten::min"), _extreme),
        **dict.fromkeys(
            ("aten::cumsum", "aten::cumsum_", "aten::_cumsum", "aten::cumprod", "aten::logcumsumexp"), _scan
        ),
        **dict.fromkeys(("aten::sort", "aten::argsort"), _sort),
        "aten::topk": _topk,
        "aten::repeat_interleave": _repeat_interleave,
    },
)
