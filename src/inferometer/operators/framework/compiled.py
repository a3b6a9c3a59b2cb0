"""Inductor's Triton kernels: their arguments are pointers with sizes, and then the numbers of elements (`xnumel`).

With the kernel's source (`inductor_source`) each pointer is read, written or both, as far as the numbers of elements
can index. Without it, each counts once: of a pointwise kernel the last number counts, of a reduction the last two. What
comes before may be a dynamic size, and counts only as far as the last pointer is as large. Which pointers are written
is told by their order alone then: those that are read and written first, inputs, outputs. So the last pointer counts as
the output, and an input that is larger than what the kernel runs over is a table of which single rows are read.

Arithmetic is that of the ops in the kernel's name, or in the comment above its source: each once, where there are such.
"""

import re
from math import prod
from typing import Final

from inferometer.operators.framework.call import OpCall, Tensor, Unmodelled
from inferometer.operators.framework.counting import moved
from inferometer.operators.framework.elementwise import ARITHMETIC
from inferometer.operators.framework.family import OpFamily
from inferometer.operators.framework.inductor_source import KernelSource
from inferometer.operators.work import Work

_LAST: Final = (
    "it runs over its last argument, and reads next to nothing of larger ones: its number of elements isn't recorded"
)
ROWS: Final = "the rows that it looks up are different ones: which they are isn't recorded"
FUSED: Final = "each op in its name is done once for each element, in reductions only those that reduce"
_WHOLE_GRAPH: Final = "it runs a whole graph: its arguments are the graph's inputs"
_NAME = re.compile(r"triton_(poi|red|per)_fused_(.+?)(?:_\d+)?")
_REDUCTIONS: Final = {  # op: vector FLOPs, special functions of each element that is reduced
    **dict.fromkeys(("sum", "mean", "amax", "amin", "max", "min", "prod", "argmax", "argmin", "any", "all"), (1, 0)),
    **dict.fromkeys(("_softmax", "_log_softmax"), (4, 1)),
    **dict.fromkeys(("native_layer_norm", "native_group_norm"), (7, 0)),
    **dict.fromkeys(("var_mean", "var", "std"), (3, 0)),
    **dict.fromkeys(("_fused_rms_norm",), (4, 0)),
}
_KNOWN: Final = {
    "pow": (1, 0),
    **{op: count for op, count in ARITHMETIC.items() if not op.startswith("__")},
    **_REDUCTIONS,
}


def _kernel(call: OpCall) -> Work:
    """Compulsory bytes of the pointers, and the arithmetic of the fused ops."""
    pointers = call.all_tensors
    if not pointers:
        raise Unmodelled("its pointers weren't recorded")
    numbers = [number for at in range(len(call.inputs)) if type(number := _number(call, at)) is int and number > 0]
    if call.source is not None and (found := _by_source(call, call.source, pointers, numbers)) is not None:
        return found
    last = pointers[-1].numel
    if numbers:
        ran_over = prod(numbers[-1 if call.op.startswith("triton_poi_") else -2 :])
        indexed = max(ran_over, min(last, prod(numbers)))
        sizes = [min(each.touched, indexed) * each.item_bytes for each in pointers]
        assumes: tuple[str, ...] = ()
    else:
        indexed = last
        sizes = [each.bytes if each.touched <= last else 0 for each in pointers]
        assumes = (_LAST,)
    return _counted(call, None, indexed, sum(sizes[:-1]), sizes[-1], assumes)


def _by_source(call: OpCall, source: KernelSource, pointers: tuple[Tensor, ...], numbers: list[int]) -> Work | None:
    """None where the call isn't one of this source."""
    elements = source.elements(numbers)
    if elements is None or len(pointers) != len(source.pointers):
        return None
    indexed = prod(elements)
    sizes = [min(each.touched, indexed) * each.item_bytes for each in pointers]
    read, written = (
        sum(size for size, each in zip(sizes, source.pointers, strict=True) if getattr(each, flag))
        for flag in ("is_read", "is_written")
    )
    assumes = (ROWS,) if any(each.is_indirect for each in source.pointers) else ()
    return _counted(call, source.fused, indexed, read, written, assumes)


def _counted(
    call: OpCall, fused: tuple[str, ...] | None, elements: int, read: int, written: int, assumes: tuple[str, ...]
) -> Work:
    match = _NAME.fullmatch(call.op)
    ops = fused if fused is not None else _ops_in(match[2]) if match else ()
    counts = _KNOWN if match and match[1] == "poi" else _REDUCTIONS
    vector, special = (sum(counts[op][at] for op in set(ops) if op in counts) for at in (0, 1))
    assumed = (*assumes, FUSED) if vector or special else assumes
    return moved(read, written, vector=vector * elements, special=special * elements, assumes=assumed)


def _ops_in(text: str) -> tuple[str, ...]:
    """Known ops in names that are joined by `_`, the longest that fits first: `_to_copy_add_mean`."""
    pieces = text.split("_")
    found = []
    at = 0
    while at < len(pieces):
        ends = range(len(pieces), at, -1)
        end = next((end for end in ends if "_".join(pieces[at:end]) in _KNOWN), None)
        found += [] if end is None else ["_".join(pieces[at:end])]
        at = at + 1 if end is None else end
    return tuple(found)


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
