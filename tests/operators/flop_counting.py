"""FLOPs of an eager run, counted as the published catalogue does: see `Cost` for what counts and what doesn't."""

import math
from collections.abc import Callable
from typing import Any

_ONE_AN_ELEMENT = {"add", "sub", "rsub", "mul", "div"}


def count_flops(run: Callable[[], Any]) -> int:
    """FLOPs of `run`."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counter(TorchDispatchMode):  # type: ignore[misc]
        flops = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            found = func(*args, **(kwargs or {}))
            self.flops += _flops_of(func._schema.name.split("::")[1].rstrip("_"), args, found)
            return found

    with torch.no_grad(), Counter() as counter:
        run()
    return counter.flops


def _flops_of(op: str, args: Any, found: Any) -> int:
    if op in ("mm", "bmm"):
        return 2 * found.numel() * args[0].shape[-1]
    if op in ("addmm", "baddbmm"):
        return 2 * found.numel() * args[1].shape[-1] + found.numel()
    if op == "convolution":
        weight = args[1]
        bias = 0 if args[2] is None else found.numel()
        return 2 * found.numel() * math.prod(weight.shape[1:]) + bias
    if op in _ONE_AN_ELEMENT:
        return int(found.numel())
    if op == "mean":
        return int(args[0].numel())
    if op == "sum":
        return int(args[0].numel() - found.numel())
    if op == "silu":
        return 4 * int(found.numel())
    if op == "_softmax":
        return 4 * found.numel() - found.numel() // found.shape[args[1]]
    return 7 * int(args[0].numel()) if op == "native_layer_norm" else 0
