"""Inductor's Triton kernels: their arguments are pointers with sizes, and then the numbers of elements (`xnumel`).

Each pointer is read or written once, and of each no more than the numbers of elements can index: of a pointwise kernel
the last one, of a reduction the last two. What stands before may be a dynamic size, and counts only as far as the last
pointer is as large. Which pointers are written is told by their order alone: those that are read and written first,
then inputs, then outputs. Only the names of the fused ops say more, so the last pointer counts as the output, and an
input that is larger than what the kernel runs over is a table of which single rows are read.
"""

from math import prod

from inferometer.operators.framework.call import OpCall, Unmodelled
from inferometer.operators.framework.counting import moved
from inferometer.operators.framework.family import OpFamily
from inferometer.operators.work import Work

_LAST = (
    "it runs over its last argument, and reads next to nothing of larger ones: its number of elements isn't recorded"
)
_WHOLE_GRAPH = "it runs a whole graph: its arguments are the graph's inputs"


def _kernel(call: OpCall) -> Work:
    """Compulsory bytes of the pointers; arithmetic isn't known and counts as one FLOP an element."""
    pointers = call.all_tensors
    if not pointers:
        raise Unmodelled("its pointers weren't recorded")
    last = pointers[-1].numel
    numels = [number for at in range(len(call.inputs)) if isinstance(number := _number(call, at), int) and number > 0]
    if numels:
        ran_over = prod(numels[-1 if call.op.startswith("triton_poi_") else -2 :])
        indexed = max(ran_over, min(last, prod(numels)))
        sizes = [min(each.touched, indexed) * each.item_bytes for each in pointers]
        return moved(sum(sizes[:-1]), sizes[-1], vector=indexed)
    sizes = [each.bytes if each.touched <= last else 0 for each in pointers]
    return moved(sum(sizes[:-1]), sizes[-1], vector=last, assumes=(_LAST,))


def _number(call: OpCall, at: int) -> object:
    if not isinstance(call.inputs[at], str):
        return None
    try:
        return call.value(at)
    except Unmodelled:
        return None


FAMILY = OpFamily(
    name="compiled kernels",
    models={},
    prefixes=dict.fromkeys(("triton_poi_", "triton_red_", "triton_per_"), _kernel),
    reasons={
        "CompiledFunction*": _WHOLE_GRAPH,
        "Torch-Compiled Region*": _WHOLE_GRAPH,
        "torch::autograd::CppNode*": "it is a step of autograd with kernels of its own: its arguments are gradients",
    },
)
