"""A GPU's caches before a timed call: cold, so that it reads from memory, or warm, with its inputs just touched.

Cold: twice the size of the last cache is written over, after lines that a kernel asked to persist are given up. Warm
doesn't call the kernel before: one that remembers its answers would then be timed remembering.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inferometer.hardware.measure.torch_gpu import INFINITY_CACHE

_UNKNOWN = 64 << 20
_CUDA_RUNTIMES = ("libcudart.so.13", "libcudart.so.12", "libcudart.so")


@dataclass
class Caches:
    """Of one device; `size_bytes` is that of the last cache."""

    torch: Any
    device: str
    size_bytes: int
    _over: Any = None
    _runtime: Any = None

    @classmethod
    def of(cls, torch: Any, device: str) -> "Caches":
        """As the driver has them."""
        own = getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0) or _UNKNOWN
        return cls(torch, device, max(own, INFINITY_CACHE) if torch.version.hip else own, _runtime=_open_runtime(torch))

    def prepare(self, mode: str, tensors: Mapping[str, Any]) -> None:
        """Make them cold or warm for a call on `tensors`."""
        if mode == "warm":
            for tensor in tensors.values():
                tensor.view(self.torch.uint8).sum() if tensor.is_contiguous() and tensor.dim() else tensor.sum()
            return
        if self._runtime is not None:
            self._runtime.cudaCtxResetPersistingL2Cache()
        if self._over is None:
            self._over = self.torch.empty(2 * self.size_bytes, dtype=self.torch.uint8, device=self.device)
        self._over.zero_()


def _open_runtime(torch: Any) -> Any:
    """CUDA's runtime as torch has loaded it; None where it isn't found, or there is no such function (ROCm)."""
    import ctypes

    if torch.version.hip:
        return None
    for name in _CUDA_RUNTIMES:
        try:
            return ctypes.CDLL(name, mode=getattr(ctypes, "RTLD_GLOBAL", 0))
        except OSError:
            continue
    return None
