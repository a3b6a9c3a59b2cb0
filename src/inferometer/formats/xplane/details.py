"""What XLA writes as one text about a kernel (`kernel_details`) or a copy (`memcpy_details`).

Pairs of `key:value`, in any order. Three layouts of kernels are known: CUDA's `regs: static_shared: dynamic_shared:
grid: block: occ_pct:`, ROCm's of 2025 ` grid: block: private_mem: group_mem: occ_pct:` and of 2026, which is CUDA's
with `private_mem:`. Source: openxla/xla, `backends/profiler/gpu/cupti_buffer_events.h` and `rocm_collector.h`.

ROCm's grid is in blocks there, rounded down. `occ_pct` is what registers and memory allow, not
what was achieved, and so no `occupancy`; `private_mem` has no column.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

_PAIR = re.compile(r"(\w+):(\S+)")
_WHOLE = re.compile(r"\d{1,18}")
_SHARED = ("static_shared", "dynamic_shared", "group_mem")


@dataclass(frozen=True)
class KernelDetails:
    """How a kernel was launched; None for what the text doesn't say."""

    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    registers: int | None = None
    shared_bytes: int | None = None


@lru_cache(maxsize=65_536)
def read_kernel_details(text: str) -> KernelDetails:
    """The details in `text`, whichever layout it has."""
    pairs = dict(_PAIR.findall(text))
    shared = [number for key in _SHARED if (number := _whole(pairs.get(key))) is not None]
    return KernelDetails(
        grid=_size(pairs.get("grid")),
        block=_size(pairs.get("block")),
        registers=_whole(pairs.get("regs")),
        shared_bytes=sum(shared) if shared else None,
    )


@lru_cache(maxsize=65_536)
def read_copied_bytes(text: str) -> int | None:
    """Bytes of a copy; None where the text doesn't say: ROCm writes a size of 0."""
    return _whole(dict(_PAIR.findall(text)).get("size")) or None


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and _WHOLE.fullmatch(text) else None


def _size(text: str | None) -> tuple[int, int, int] | None:
    numbers = [_whole(part) for part in (text or "").split(",")]
    x, y, z = numbers if len(numbers) == 3 else (None, None, None)
    return None if x is None or y is None or z is None else (x, y, z)
