"""What the name of a driver or runtime call says: CUDA runtime (`cuda…`), CUDA driver (`cu…`), HIP (`hip…`).

Source: the public function names of the CUDA and HIP interfaces. Tools write one function in several ways: Nsight
Systems adds the interface's version (`cudaLaunchKernel_v7000`), symbols carry the revision of their arguments
(`cuMemcpyHtoDAsync_v2`, `hipGetDevicePropertiesR0600`) and the default stream that they mean (`_ptsz`, `_ptds`,
`_spt`). A source that knows a call only by the kernel that it launches says `[kernel launch]`. Other interfaces
(OpenCL, Vulkan) are `other`, under their own names.
"""

import re
from functools import lru_cache
from typing import Literal

from inferometer.patterns import late_re

ApiKind = Literal["launch", "graph", "copy", "wait", "allocation", "other"]

KERNEL_LAUNCH = "[kernel launch]"

_LONGEST = 200  # no function has a longer name; searching a longer text could be slow
_OURS = "(?:cuda|cu|hip)"
_SUFFIXED = late_re(rf"({_OURS}[A-Z]\w*?)(?:_v[0-9]+|_ptsz|_ptds|_spt|R0[0-9]{{3}})+")
_FUNCTION = late_re(f"{_OURS}[A-Z]")
_KINDS: tuple[tuple[ApiKind, re.Pattern[str]], ...] = (
    ("graph", late_re(rf"{_OURS}GraphLaunch")),
    ("launch", late_re(rf"{_OURS}(?:Ext|Hcc)?(?:Module)?Launch(?!HostFunc)|{re.escape(KERNEL_LAUNCH)}$")),
    ("copy", late_re(rf"{_OURS}(?:Drv)?Memcpy")),
    ("wait", late_re(rf"{_OURS}(?:Device|Thread|Ctx|Stream|Event)Synchronize$")),
    (
        "allocation",
        late_re(rf"{_OURS}(?:Ext)?(?:Malloc|Free|MemAlloc|MemFree|(?:Mem)?Host(?:Alloc|Malloc|Free))(?!.*Async)"),
    ),
)


@lru_cache(maxsize=65_536)
def canonical_api(name: str) -> str:
    """The function without version, revision and default-stream suffixes: one name whichever tool wrote it."""
    match = _SUFFIXED.fullmatch(name) if len(name) <= _LONGEST else None
    return match[1] if match else name


@lru_cache(maxsize=65_536)
def api_kind(name: str) -> ApiKind:
    """What a call of this name does.

    `launch` starts one kernel, `graph` a whole graph. `wait` blocks the host until the device has finished something;
    a wait of one stream for another (`cudaStreamWaitEvent`) is none. `copy` may block or not: see `is_blocking_copy`.
    `allocation` is of device or pinned memory, outside stream-ordered pools (`cudaMallocAsync`).
    """
    name = canonical_api(name)
    return next((kind for kind, pattern in _KINDS if pattern.match(name)), "other")


@lru_cache(maxsize=65_536)
def is_of_cuda_or_hip(name: str) -> bool:
    """Whether this is a function of CUDA's or HIP's interface, of which the name says whether it launches a graph."""
    return _FUNCTION.match(name) is not None


def is_blocking_copy(name: str) -> bool:
    """Whether the copy is one of those that return when the data has been moved, by their name.

    Not all do: copies between devices and small ones from pageable memory may return before.
    """
    return api_kind(name) == "copy" and "Async" not in name
