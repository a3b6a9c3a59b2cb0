"""Norms and softmax of the framework: rows are read once and written once; what is read again comes from a cache.

FLOPs of an element as the catalogue counts: 7 of a layer norm, 4 of an RMS norm; 4 and one exp of a softmax.
"""

from math import prod

from inferometer.operators.framework.call import OpCall, Tensor, Unmodelled
from inferometer.operators.framework.counting import item_bytes, moved, read_bytes
from inferometer.operators.framework.family import OpFamily
from inferometer.operators.work import Work

_STATISTIC_BYTES = 4  # of a mean or a deviation, in float32 on GPUs


def _layer_norm(call: OpCall) -> Work:
    """`x`, shape, weight, bias: the result, and mean and reciprocal deviation of each row, in float32 on GPUs."""
    x = call.tensor(0)
    weights = [call.maybe_tensor(2), call.maybe_tensor(3)]
    rows = _rows(call)
    return moved(x.bytes + read_bytes(weights), x.numel * x.item_bytes + rows * 8, vector=7 * x.numel, special=rows)


def _rows(call: OpCall) -> int:
    """How many rows are normalised: by the shape at 1, or without values by the weight's, or the last dimension."""
    x, weight = call.tensor(0), call.maybe_tensor(2)
    if weight is not None:
        length = weight.numel
    else:
        try:
            length = prod(call.integers(1))
        except Unmodelled:
            length = x.dims[-1] if x.dims else 1
    return x.numel // length if length else 0


def _rms_norm(call: OpCall) -> Work:
    """`x`, shape, weight: the result, and the fused op keeps the reciprocal of each row's root mean square."""
    x, rows = call.tensor(0), _rows(call)
    kept = rows * _STATISTIC_BYTES if call.op == "aten::_fused_rms_norm" else 0
    read = x.bytes + read_bytes([call.maybe_tensor(2)])
    return moved(read, x.numel * x.item_bytes + kept, vector=4 * x.numel, special=rows)


def _group_norm(call: OpCall) -> Work:
    """`x`, weight, bias, N, C, the rest, groups: mean and reciprocal deviation of each group are written, too."""
    x = call.tensor(0)
    groups = _integer_or_0(call, 3) * _integer_or_0(call, 6)
    read = x.bytes + read_bytes([call.maybe_tensor(1), call.maybe_tensor(2)])
    return moved(read, (x.numel + 2 * groups) * x.item_bytes, vector=7 * x.numel, special=groups)


def _integer_or_0(call: OpCall, at: int) -> int:
    """0 where the file has no values: nothing counts then."""
    try:
        return call.integer(at)
    except Unmodelled:
        return 0


def _batch_norm(call: OpCall) -> Work:
    """`x` [N, C, …], weight, bias, mean, variance. What training reads a second time isn't compulsory.

    Training also writes mean and reciprocal deviation of each channel, and averages over batches where it keeps such.
    """
    x = call.tensor(0)
    averages = read_bytes([call.maybe_tensor(3), call.maybe_tensor(4)])
    read = x.bytes + read_bytes([call.maybe_tensor(1), call.maybe_tensor(2)]) + averages
    kept = averages + 2 * _channels(x) * _STATISTIC_BYTES if _is_training(call, 5) else 0
    return moved(read, x.numel * x.item_bytes + kept, vector=4 * x.numel)


def _is_training(call: OpCall, at: int) -> bool:
    """By the flag there; of ops that have none, and files without values, as is the least."""
    if call.op == "aten::_batch_norm_with_update":
        return True
    try:
        return call.value(at) is True
    except Unmodelled:
        return False


def _channels(x: Tensor) -> int:
    return x.dims[1] if len(x.dims) > 1 else 1


def _batch_norm_backward(call: OpCall) -> Work:
    """Gradient, x [N, C, …], weight, averages over batches, those of the batch: which are read, where they are there.

    The gradient of x is written, and those of weight and bias where there is a weight.
    """
    grad, x, weight = call.tensor(0), call.tensor(1), call.maybe_tensor(2)
    of_batch = call.maybe_tensor(5)
    used = (5, 6) if of_batch and of_batch.numel else (3, 4)
    rest = read_bytes([weight, *(call.maybe_tensor(at) for at in used)])
    written = x.numel * x.item_bytes + 2 * read_bytes([weight])
    return moved(grad.bytes + x.bytes + rest, written, vector=8 * x.numel)


def _layer_norm_backward(call: OpCall) -> Work:
    """Gradient, x, shape, mean, reciprocal deviation, weight, bias."""
    grad, x = call.tensor(0), call.tensor(1)
    weights = [call.maybe_tensor(5), call.maybe_tensor(6)]
    rest = read_bytes([call.maybe_tensor(3), call.maybe_tensor(4), weights[0]])
    written = x.numel * x.item_bytes + read_bytes(weights)
    return moved(grad.bytes + x.bytes + rest, written, vector=8 * x.numel)


def _group_norm_backward(call: OpCall) -> Work:
    """Gradient, x, mean, reciprocal deviation, weight; the gradient of x is written."""
    grad, x = call.tensor(0), call.tensor(1)
    rest = read_bytes(call.maybe_tensor(at) for at in range(2, 5))
    return moved(grad.bytes + x.bytes + rest, x.numel * x.item_bytes, vector=8 * x.numel)


def _rms_norm_backward(call: OpCall) -> Work:
    """Gradient, x, shape, reciprocal of the root mean square, weight; the gradients of x and weight are written."""
    grad, x, weight = call.tensor(0), call.tensor(1), call.maybe_tensor(4)
    rest = read_bytes([call.maybe_tensor(3), weight])
    return moved(grad.bytes + x.bytes + rest, x.numel * x.item_bytes + read_bytes([weight]), vector=6 * x.numel)


def _masked_softmax(call: OpCall) -> Work:
    x, mask = call.tensor(0), call.tensor(1)
    return moved(x.bytes + mask.bytes, x.numel * x.item_bytes, vector=4 * x.numel, special=x.numel)


def _softmax(call: OpCall) -> Work:
    """`x`, dimension, and whether 16 bits become 32."""
    x = call.tensor(0)
    item = item_bytes("float") if call.inputs[2:3] == ("True",) else x.item_bytes
    return moved(x.bytes, x.numel * item, vector=4 * x.numel, special=x.numel)


def _softmax_backward(call: OpCall) -> Work:
    grad, result = call.tensor(0), call.tensor(1)
    return moved(grad.bytes + result.bytes, grad.numel * grad.item_bytes, vector=3 * grad.numel)


_BATCH_NORMS = (
    *("aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::miopen_batch_norm"),
    *("aten::_batch_norm_with_update", "aten::_native_batch_norm_legit"),
)
FAMILY = OpFamily(
    name="norms and softmax",
    models={
        "aten::native_layer_norm": _layer_norm,
        "aten::layer_norm": _layer_norm,
        "aten::native_layer_norm_backward": _layer_norm_backward,
        "aten::rms_norm": _rms_norm,
        "aten::_fused_rms_norm": _rms_norm,
        "aten::native_group_norm": _group_norm,
        **dict.fromkeys(_BATCH_NORMS, _batch_norm),
        **dict.fromkeys((f"{op}_backward" for op in _BATCH_NORMS), _batch_norm_backward),
        "aten::batch_norm_backward": _batch_norm_backward,
        "aten::native_group_norm_backward": _group_norm_backward,
        "aten::_fused_rms_norm_backward": _rms_norm_backward,
        "aten::_masked_softmax": _masked_softmax,
        "aten::_softmax": _softmax,
        "aten::_safe_softmax": _softmax,
        "aten::_log_softmax": _softmax,
        "aten::_softmax_backward_data": _softmax_backward,
        "aten::_log_softmax_backward_data": _softmax_backward,
    },
    covering=frozenset({"aten::layer_norm", "aten::rms_norm"}),
)
