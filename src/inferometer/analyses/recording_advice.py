"""How to record what a file lacks, in the words of the profiler that wrote it.

Sources: rocprofv3's documentation of its options (ROCm 6.2 and later), Nsight Systems' of `nsys profile`, PyTorch's of
`torch.profiler`.
"""

from typing import Final

from inferometer.trace.trace import Trace

_TORCH_CALLS: Final = "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
_ROCPROF: Final = frozenset({"rocprof", "rocpd"})
RAN_ALONE: Final = (
    "The kernels of this file ran alone under a profiler, without the program around them: inferometer counters FILE."
)
"""Of a file of Nsight Compute, or one whose losses tell `profiled_alone`."""


def is_of_rocprof(form: str) -> bool:
    """Whether a format is rocprofv3's."""
    return form in _ROCPROF


def say_how_calls_are_recorded(trace: Trace) -> str:
    """A sentence on calls of the host; of a file that can't have any, what it has instead."""
    if trace.facts.format == "ncu":
        return RAN_ALONE
    if is_of_rocprof(trace.facts.format):
        return (
            "rocprofv3 records them with --hip-trace beside --kernel-trace, PyTorch's profiler on ROCm with "
            f"{_TORCH_CALLS}."
        )
    return f"PyTorch's profiler records them with {_TORCH_CALLS}, Nsight Systems with --trace=cuda."
