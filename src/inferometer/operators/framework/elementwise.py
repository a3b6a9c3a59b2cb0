"""Element-wise ops: every touched element of the inputs is read once, every element of the broadcast result written.

Arithmetic is counted for each element of the result, as vector instructions and as special functions (exp, rsqrt and
the like); an op in place (`add_`) writes its first tensor. Of ops that fill a tensor, nothing is read. Backward ops of
autograd are element-wise where each gradient needs its own element alone.
"""

from math import ceil, prod

from inferometer.operators.framework.call import OpCall, Tensor, Unmodelled, read_value
from inferometer.operators.framework.counting import (
    DEFAULT_FLOAT,
    broadcast,
    is_whole,
    item_bytes,
    moved,
    promoted,
    read_bytes,
)
from inferometer.operators.framework.family import Model, OpFamily
from inferometer.operators.work import Work

ARITHMETIC = {  # op: vector FLOPs, special functions of each element
    **dict.fromkeys(("add", "sub", "rsub", "mul", "div", "neg", "abs", "sgn", "sign", "relu", "clamp_min"), (1, 0)),
    **dict.fromkeys(("clamp_max", "maximum", "minimum", "square", "reciprocal", "remainder", "floor"), (1, 0)),
    **dict.fromkeys(("fmod", "round", "ceil", "trunc", "floor_divide", "bitwise_not", "bitwise_and"), (1, 0)),
    **dict.fromkeys(("bitwise_or", "bitwise_xor", "logical_not", "threshold_backward", "__and__", "__or__"), (1, 0)),
    **dict.fromkeys(("clamp", "where", "nan_to_num", "lerp", "hardtanh", "leaky_relu"), (1, 0)),
    **dict.fromkeys(("addcmul", "mse_loss_backward", "tanh_backward", "sigmoid_backward"), (2, 0)),
    **dict.fromkeys(("addcdiv",), (2, 0)),
    **dict.fromkeys(("exp", "exp2", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan"), (0, 1)),
    **dict.fromkeys(("rsqrt", "sqrt", "erf", "atan", "atan2"), (0, 1)),
    **dict.fromkeys(("sigmoid", "tanh", "softplus", "logit", "logit_backward"), (2, 1)),
    **dict.fromkeys(("silu", "gelu", "mish", "elu", "hardswish", "hardsigmoid"), (3, 1)),
    **dict.fromkeys(("silu_backward", "gelu_backward"), (5, 1)),
    **dict.fromkeys(("native_dropout_backward", "masked_scale"), (2, 0)),
    **dict.fromkeys(("polar",), (0, 2)),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift", "__lshift__", "__rshift__", "__xor__"), (1, 0)),
    **dict.fromkeys(("_prelu_kernel", "leaky_relu_backward", "hardtanh_backward", "elu_backward"), (1, 0)),
    **dict.fromkeys(("hardswish_backward", "hardsigmoid_backward", "smooth_l1_loss_backward"), (3, 0)),
    **dict.fromkeys(("huber_loss_backward", "binary_cross_entropy_backward"), (4, 0)),
    **dict.fromkeys(("softplus_backward", "mish_backward"), (3, 1)),
    **dict.fromkeys(("erfc", "erfinv", "sinh", "cosh", "asin", "acos", "asinh", "acosh", "atanh", "lgamma"), (0, 1)),
    **dict.fromkeys(("logaddexp", "logaddexp2", "hypot", "xlogy"), (2, 2)),
}
_TO_FLOATS = ("div", "reciprocal", "polar", "mish", "elu", "softplus", "logit", "gelu", "silu", "atan2", "xlogy")
"""Ops of arithmetic whose results are floats of integers, too, as those of special functions alone are."""
_TESTS = ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "isnan", "isinf", "isfinite")
_FILLS = ("fill", "zero", "zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones")
_RANDOM = ("normal", "uniform", "bernoulli", "exponential", "random")
_SCHEMA_INPUTS = {  # of ops that take an output after their own arguments
    **dict.fromkeys(("add", "sub", "where", "clamp", "addcmul", "addcdiv", "lerp"), 3),
    **dict.fromkeys(("mul", "div", "pow", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge"), 2),
    **dict.fromkeys(("exp", "log", "sin", "cos", "tanh", "sigmoid", "silu", "neg", "rsqrt", "sqrt", "abs"), 1),
}


def _count(op: str) -> tuple[int, int]:
    name = op.removeprefix("aten::")
    return ARITHMETIC[name] if name in ARITHMETIC else ARITHMETIC[name.removesuffix("_")]


def _elementwise(call: OpCall) -> Work:
    vector, special = _count(call.op)
    name = call.op.removeprefix("aten::")
    return _mapped(call, vector, special, to_floats=name in _TO_FLOATS or special > 0)


def _mapped(call: OpCall, vector: int, special: int, result: str | None = None, *, to_floats: bool = False) -> Work:
    """All tensors among the inputs are read; the result has their broadcast shape and promoted type, or `result`.

    `to_floats`: of integers, it is PyTorch's default float; so it is where a number that isn't whole takes part.
    """
    tensors, out = _operands(call)
    if call.op.endswith("_") and not call.op.endswith("__"):
        out = tensors[0]
    shape = out.dims if out else broadcast(tensors)
    item = out.item_bytes if out else item_bytes(result or _promoted(call, tensors, to_floats=to_floats))
    numel = prod(shape)
    written = out.bytes if out else numel * item
    read = read_bytes(tensor for tensor in tensors if tensor.dims)  # what has no dimension is handed on as a number
    return moved(read, written, vector=vector * numel, special=special * numel)


def _promoted(call: OpCall, tensors: list[Tensor], *, to_floats: bool) -> str:
    found = promoted(tensors)
    return DEFAULT_FLOAT if is_whole(found) and (to_floats or _has_fraction(call)) else found


def _has_fraction(call: OpCall) -> bool:
    """Whether a number that isn't whole is among the values."""
    return any(isinstance(each, str) and isinstance(read_value(each), float) for each in call.inputs)


def _operands(call: OpCall) -> tuple[list[Tensor], Tensor | None]:
    """The tensors that are read, and the one that is given to be written."""
    tensors = list(call.all_tensors)
    if not tensors:
        raise Unmodelled("it has no tensor")
    own = _SCHEMA_INPUTS.get(call.op.removeprefix("aten::"))
    last = call.maybe_tensor(len(call.inputs) - 1)
    if own is not None and len(call.inputs) > own and last is not None and len(tensors) > 1:
        return tensors[:-1], last
    return tensors, None


def _gated(call: OpCall) -> Work:
    """`x` [..., 2 d], along a dimension: the first half times the sigmoid of the second."""
    x = call.tensor(0)
    return moved(x.bytes, x.numel // 2 * x.item_bytes, vector=3 * (x.numel // 2), special=x.numel // 2)


def _gated_backward(call: OpCall) -> Work:
    """Gradient [..., d], x [..., 2 d]."""
    grad, x = call.tensor(0), call.tensor(1)
    return moved(grad.bytes + x.bytes, x.numel * x.item_bytes, vector=6 * grad.numel, special=grad.numel)


def _log_sigmoid(call: OpCall) -> Work:
    """What it keeps for the gradient is empty on GPUs."""
    x = call.tensor(0)
    return moved(x.bytes, x.numel * x.item_bytes, vector=2 * x.numel, special=2 * x.numel)


def _log_sigmoid_backward(call: OpCall) -> Work:
    """Gradient, x, and what the forward op kept, which is empty on GPUs."""
    grad, x = call.tensor(0), call.tensor(1)
    kept = read_bytes([call.maybe_tensor(2)])
    return moved(grad.bytes + x.bytes + kept, x.numel * x.item_bytes, vector=4 * x.numel, special=x.numel)


def _test(call: OpCall) -> Work:
    return _mapped(call, 1, 0, "bool")


def _pow(call: OpCall) -> Work:
    """A square, a cube and a square root are no logarithm and exponential."""
    value = call.value(1) if call.maybe_tensor(1) is None and _has_values(call) else None
    vector, special = (
        {2: (1, 0), 3: (2, 0), 0.5: (0, 1)}.get(value, (1, 2)) if isinstance(value, (int, float)) else (1, 2)
    )
    return _mapped(call, vector, special)


def _has_values(call: OpCall) -> bool:
    return any(isinstance(each, str) and each for each in call.inputs)


def _fill(call: OpCall) -> Work:
    """A tensor that is filled is the first one; of one that is made, the sizes are the first argument."""
    like = call.maybe_tensor(0)
    if like is not None and call.op.removeprefix("aten::") not in ("new_zeros", "new_ones"):
        return moved(0, like.bytes)
    raise Unmodelled("it makes its tensor by another op, which has the sizes")


def _random(call: OpCall) -> Work:
    tensor = call.tensor(0)
    return moved(0, tensor.bytes, vector=tensor.numel)


def _arange(call: OpCall) -> Work:
    """`arange(start, end, step, out)`: the result is the tensor that is passed in, which may be empty until then."""
    out = call.tensor(3)
    start, end, step = (call.value(at) for at in range(3))
    if any(not isinstance(each, (int, float)) for each in (start, end, step)) or not step:
        raise Unmodelled("from where to where it counts isn't recorded")
    return moved(0, max(0, ceil((end - start) / step)) * out.item_bytes)


def _masked_fill(call: OpCall) -> Work:
    """How many elements the mask hits isn't recorded: at least none, so the mask alone must be read."""
    target, mask = call.tensor(0), call.tensor(1)
    if call.op.endswith("_"):
        return moved(mask.bytes, 0, vector=target.numel, assumes=("no element is masked: which are isn't recorded",))
    return moved(mask.bytes + target.bytes, target.numel * target.item_bytes, vector=target.numel)


def _dropout(call: OpCall) -> Work:
    x = call.tensor(0)
    return moved(x.bytes, x.numel * (x.item_bytes + 1), vector=2 * x.numel)


def _named(names: tuple[str, ...], model: Model) -> dict[str, Model]:
    return {f"aten::{name}{end}": model for name in names for end in ("", "_")}


FAMILY = OpFamily(
    name="element-wise",
    models={
        **_named(tuple(ARITHMETIC), _elementwise),
        **_named(_TESTS, _test),
        **_named(("pow",), _pow),
        **_named(_FILLS, _fill),
        **_named(_RANDOM, _random),
        **_named(("masked_fill",), _masked_fill),
        "aten::arange": _arange,
        "aten::native_dropout": _dropout,
        "aten::glu": _gated,
        "aten::glu_backward": _gated_backward,
        "aten::log_sigmoid_forward": _log_sigmoid,
        "aten::log_sigmoid_backward": _log_sigmoid_backward,
    },
)
