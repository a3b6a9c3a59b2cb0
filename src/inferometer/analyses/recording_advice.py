"""How to record what a file lacks, in the words of the profiler that wrote it.

Sources: rocprofv3's documentation of its options (ROCm 6.2 and later), Nsight Systems' of `nsys profile`, PyTorch's of
`torch.profiler`.
"""

from typing import Final

from inferometer.trace.trace import Trace

_TORCH_CALLS: Final = "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
_ROCPROF: Final = frozenset({"rocprof", "rocpd"})
_XPLANE: Final = "xplane"
_NCU: Final = "ncu --csv --page raw --import REPORT.ncu-rep > ncu.csv"
_PMC: Final = "rocprofv3 --pmc SQ_WAVES GRBM_GUI_ACTIVE --output-format json"
RAN_ALONE: Final = (
    "The kernels of this file ran alone under a profiler, without the program around them: inferometer counters FILE."
)
"""Of a file of Nsight Compute, or one whose losses tell `profiled_alone`."""


def is_of_rocprof(form: str) -> bool:
    """Whether a format is rocprofv3's."""
    return form in _ROCPROF


def is_of_jax(form: str) -> bool:
    """Whether a format is that of the profiler of JAX and XLA."""
    return form == _XPLANE


def say_how_counters_are_recorded(form: str) -> str:
    """A sentence on counters of launches, for who has a file of this format without any."""
    if is_of_rocprof(form):
        return f"rocprofv3 counts in a run of its own: {_PMC} -- python app.py"
    return f"Nsight Compute writes them: {_NCU}. On AMD: {_PMC}."


def say_how_memory_is_recorded(form: str) -> str:
    """A sentence on what an allocator held; of JAX's profiles, where its samples are instead."""
    if is_of_jax(form):
        return (
            "JAX's allocator is sampled in the table counters: inferometer sql FILE 'SELECT metric, device, max(value) "
            "FROM counters GROUP BY metric, device'. Who holds it isn't in the file."
        )
    return (
        "Record it: torch.cuda.memory._record_memory_history(), then _dump_snapshot('snapshot.pickle'); or "
        "torch.profiler.profile(profile_memory=True)."
    )


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
