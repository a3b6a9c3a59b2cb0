"""Ops over lists of tensors: one launch for many tensors. Their types stand in the kernel's name alone."""

from inferometer.operators.framework.call import OpCall
from inferometer.operators.framework.counting import listed_bytes, moved
from inferometer.operators.framework.family import Model, OpFamily
from inferometer.operators.work import Work


def _in_place(vector: int) -> Model:
    """An op in place on the first of its lists, of so many FLOPs an element."""

    def work(call: OpCall) -> Work:
        size = listed_bytes(call)
        written = sum(each.touched for each in call.tensors(0))
        others = [each for each in call.inputs[1:] if isinstance(each, tuple)]
        read = written + sum(each.touched for other in others for each in other)
        return moved(read * size, written * size, vector=vector * written)

    return work


def _fill(call: OpCall) -> Work:
    return moved(0, sum(each.touched for each in call.tensors(0)) * listed_bytes(call))


FAMILY = OpFamily(
    name="lists of tensors",
    models={
        **{f"aten::_foreach_{name}_": _in_place(1) for name in ("sub", "mul", "div", "neg", "abs", "reciprocal")},
        **{f"aten::_foreach_{name}_": _in_place(2) for name in ("add", "lerp", "addcmul", "addcdiv")},
        "aten::_foreach_zero_": _fill,
    },
)
