"""Ops over lists of tensors, optimizers' steps among them: one launch for many tensors.

The types of the tensors stand in the kernel's name alone. Of a fused step of Adam or SGD, parameters and states are
read and written, and gradients read; numbers that count steps are left out.
"""

from collections.abc import Sequence

from inferometer.operators.framework.call import OpCall, Tensor
from inferometer.operators.framework.counting import listed_bytes, moved
from inferometer.operators.framework.family import Model, OpFamily
from inferometer.operators.work import Work

_GRADIENTS = 1  # where an optimizer's step has them
_ADAM = (9, 1)  # both means, the root of one, and the step by their quotient
_SGD = (2, 0)
_COUNTS = {  # op: vector FLOPs, special functions of each element
    **dict.fromkeys(("add", "lerp", "addcmul", "addcdiv"), (2, 0)),
    **dict.fromkeys(("sub", "mul", "div", "neg", "abs", "reciprocal", "sign", "round", "floor", "ceil"), (1, 0)),
    **dict.fromkeys(("maximum", "minimum", "clamp_max", "clamp_min"), (1, 0)),
    **dict.fromkeys(("sqrt", "rsqrt", "exp", "log", "tanh", "sigmoid"), (0, 1)),
    "pow": (1, 2),
}


def _lists(call: OpCall) -> list[tuple[Tensor, ...]]:
    return [each for each in call.inputs if isinstance(each, tuple)]


def _touched(lists: Sequence[tuple[Tensor, ...]]) -> int:
    return sum(each.touched for tensors in lists for each in tensors)


def _elementwise(vector: int, special: int, *, in_place: bool) -> Model:
    """Of so many operations an element of the first list, whose sizes the results have."""

    def work(call: OpCall) -> Work:
        size = listed_bytes(call)
        first = call.tensors(0)
        written = sum(each.touched if in_place else each.numel for each in first)
        read = _touched(_lists(call)) * size
        return moved(read, written * size, vector=vector * written, special=special * written)

    return work


def _fill(call: OpCall) -> Work:
    return moved(0, sum(each.touched for each in call.tensors(0)) * listed_bytes(call))


def _norm(call: OpCall) -> Work:
    """One number for each tensor."""
    size = listed_bytes(call)
    read = sum(each.touched for each in call.tensors(0))
    return moved(read * size, len(call.tensors(0)) * size, vector=2 * read)


def _unscale(call: OpCall) -> Work:
    """Gradients times a number, and whether any isn't finite."""
    size = listed_bytes(call)
    written = sum(each.touched for each in call.tensors(0))
    return moved(written * size, written * size, vector=2 * written)


def _step(vector: int, special: int, states: int) -> Model:
    """Parameters, gradients and so many lists of states, each of them as large as the parameters or left out."""

    def work(call: OpCall) -> Work:
        size = listed_bytes(call)
        parameters = call.tensors(0)
        lists = [each for each in call.inputs[: 2 + states] if isinstance(each, tuple) and each]
        kept = [each for at, each in enumerate(lists) if at != _GRADIENTS]
        elements = sum(each.touched for each in parameters)
        return moved(
            _touched(lists) * size, _touched(kept) * size, vector=vector * elements, special=special * elements
        )

    return work


FAMILY = OpFamily(
    name="lists of tensors",
    models={
        **{f"aten::_foreach_{name}_": _elementwise(*counts, in_place=True) for name, counts in _COUNTS.items()},
        **{f"aten::_foreach_{name}": _elementwise(*counts, in_place=False) for name, counts in _COUNTS.items()},
        "aten::_foreach_zero_": _fill,
        "aten::_foreach_norm": _norm,
        "aten::_amp_foreach_non_finite_check_and_unscale_": _unscale,
        **dict.fromkeys(("aten::_fused_adam_", "aten::_fused_adamw_"), _step(*_ADAM, states=3)),
        "aten::_fused_sgd_": _step(*_SGD, states=1),
    },
)
