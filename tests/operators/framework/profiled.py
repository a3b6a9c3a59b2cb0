"""Calls as PyTorch's own profiler records them, and what they touch, byte by byte."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from inferometer.operators.framework.call import OpCall, read_call

_ARGUMENTS = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")


def profiled_calls(run: Callable[[], Any], op: str, folder: Path, **more: Any) -> list[OpCall]:
    """The calls of this op while `run` runs on the CPU, from an exported file."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
        run()
    path = folder / "trace.json"
    profile.export_chrome_trace(str(path))
    events = json.loads(path.read_text("utf-8"))["traceEvents"]
    texts = [
        [json.dumps(event["args"][name]) if name in event["args"] else None for name in _ARGUMENTS]
        for event in events
        if event.get("name") == op and "args" in event
    ]
    return [read_call(op, *each, **more) for each in texts]


def bytes_of(tensors: Iterable[Any]) -> int:
    """Bytes of memory that these tensors' elements lie in, each tensor by itself: counted place by place."""
    total = 0
    for tensor in tensors:
        places = {0}
        for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
            places = {place + at * stride for place in places for at in range(size)}
        total += len(places) * tensor.element_size() if tensor.numel() else 0
    return total


def counted_flops(run: Callable[[], Any]) -> int:
    """FLOPs as PyTorch's FlopCounterMode counts them."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        run()
    return int(counter.get_total_flops())
