"""Which table a slice is of, by its category: those of rocprofv3, of PyTorch's profiler and of our own export.

Source: rocprofv3's categories are the names of the arrays in its JSON (`kernel_dispatch`, `hip_api`). A category that
is none of these names a range: on a host's thread as its domain, on a device's track, too.
"""

from typing import Final

_DISPATCHES: Final = frozenset({"kernel_dispatch", "memory_copy"})  # launches wherever they stand
_LAUNCHES: Final = {  # launches on a device's track; the value is their kind
    "kernel": "kernel",
    "graph": "graph",
    "memcpy": "memcpy",
    "memset": "memset",
    "gpu_memcpy": "memcpy",
    "gpu_memset": "memset",
    "kernel_dispatch": "kernel",
    "memory_copy": "memcpy",
}
_CALLS: Final = frozenset({"call", "cuda_runtime", "cuda_driver", "hip_api", "hsa_api"})
_CALL_PREFIXES: Final = ("hip_", "hsa_")  # of releases that tell HIP's and HSA's tables apart
_OPS: Final = frozenset({"op", "cpu_op"})
_FRAMES: Final = frozenset({"frame", "python_function"})
_DOMAINS: Final = {"marker": "ROCTx", "roctx": "ROCTx", "rccl": "RCCL"}
NOT_READ: Final = frozenset({"memory_allocation", "scratch_memory", "page_migration", "kfd"})
"""Of rocprofv3, without a table of ours."""


def table_of(category: str, *, is_on_device: bool) -> str | None:
    """The table that a slice has a row in; None: in none."""
    if category in _DISPATCHES or (is_on_device and category in _LAUNCHES):
        return "launches"
    if category in NOT_READ:
        return None
    if category in _CALLS or category.startswith(_CALL_PREFIXES):
        return "calls"
    if category in _OPS:
        return "ops"
    return "frames" if category in _FRAMES else "spans"


def kind_of(category: str) -> str:
    """The kind of a launch."""
    return _LAUNCHES[category]


def domain_of(category: str) -> str | None:
    """The domain of a range."""
    prefix = category.partition("_")[0]
    return _DOMAINS.get(prefix, category or None)


def has_arguments(category: str) -> bool:
    """Whether a table that the category may fill has columns for arguments."""
    return category in _LAUNCHES or table_of(category, is_on_device=True) in ("launches", "calls", "ops", "frames")
