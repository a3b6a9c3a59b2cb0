"""A device that isn't there: what Triton and PyTorch ask of a GPU, answered for an architecture.

Runs in the process that compiles, and changes `torch` and `triton` there for good. Pretended are CUDA's calls that
kernels' wrappers use; tensors stay on the CPU, whatever device was asked for. Left out: `torch.version.hip`, streams,
events and graphs; a wrapper that needs those fails, and the failure says where.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

from inferometer.bench.builds.limits import REGISTERS, SCHEDULERS, ArchitectureLimits

PRODUCTS = frozenset(
    {
        *("matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "mv", "addmm", "baddbmm", "addbmm", "einsum", "linear"),
        *("bilinear", "tensordot", "scaled_dot_product_attention", "_scaled_mm", "_grouped_mm", "_scaled_grouped_mm"),
    }
)
"""PyTorch's functions that multiply matrices: a library does so, not the candidate."""


class StubDriver:
    """Triton's driver for kernels that are compiled and never launched.

    `registers` are those of each binary: kernels that plan by their own occupancy ask for it.
    """

    def __init__(self, limits: ArchitectureLimits) -> None:
        from triton.backends.compiler import GPUTarget

        self._limits = limits
        self._target = GPUTarget(limits.backend, limits.target, limits.warp_size)
        self.registers: dict[bytes, int] = {}
        self.utils = SimpleNamespace(
            get_device_properties=self._properties, load_binary=self._load, set_printf_fifo_size=_nothing
        )
        self.launcher_cls = lambda src, metadata: _nothing
        self.binary_ext = "cubin" if limits.backend == "cuda" else "hsaco"

    @staticmethod
    def is_active() -> bool:
        """Always: there is no other."""
        return True

    def get_current_target(self) -> Any:
        """What kernels are compiled for."""
        return self._target

    def get_current_device(self) -> int:
        """The only one."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is no other."""

    def get_current_stream(self, device: int | None = None) -> int:
        """The default one."""
        return 0

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        """As PyTorch has it: of gfx942, 9.4."""
        return self._limits.capability

    def get_active_torch_device(self) -> Any:
        """Where tensors are to be made."""
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        """PyTorch's, with what `pretend_cuda` changed."""
        import torch

        return torch.cuda

    def get_benchmarker(self) -> Callable[..., Any]:
        """Calls once and times nothing."""
        return call_once

    def get_empty_cache_for_benchmark(self) -> Any:
        """Nothing worth clearing."""
        import torch

        return torch.empty(1)

    def clear_cache(self, cache: Any) -> None:
        """Nothing to clear."""

    def _properties(self, device: int = 0) -> Mapping[str, int]:
        return {
            "max_shared_mem": self._limits.shared_block_bytes,
            "max_num_regs": REGISTERS * SCHEDULERS * 32,
            "multiprocessor_count": self._limits.multiprocessors,
            "warpSize": self._limits.warp_size,
            "sm_clock_rate": 1_000_000,
            "mem_clock_rate": 1_000_000,
            "mem_bus_width": 4096,
        }

    def _load(self, name: str, binary: bytes, shared_bytes: int, device: int) -> tuple[int, int, int, int, int]:
        return 0, 0, self.registers.get(binary, 0), 0, 1024  # module, function, registers, spills, most threads


def call_once(call: Callable[[], Any], *args: Any, quantiles: Any = None, **kwargs: Any) -> Any:
    """In place of a benchmark: all configurations seem equally fast."""
    call()
    return 1.0 if quantiles is None else [1.0] * len(quantiles)


def pretend_cuda(limits: ArchitectureLimits) -> set[str]:
    """Lets a wrapper that asks for a GPU believe in one. For good: the process ends after it.

    Returns:
        The names of `PRODUCTS` that are called from here on, as they are.
    """
    import torch

    major, minor = limits.capability
    properties = SimpleNamespace(
        name=limits.device, major=major, minor=minor, multi_processor_count=limits.multiprocessors,
        warp_size=limits.warp_size, shared_memory_per_block_optin=limits.shared_block_bytes,
        shared_memory_per_multiprocessor=limits.shared_bytes, regs_per_multiprocessor=REGISTERS * SCHEDULERS * 32,
        max_threads_per_multi_processor=limits.warps * limits.warp_size, gcnArchName=str(limits.target),
    )  # fmt: skip
    answers = {
        "is_available": True, "device_count": 1, "current_device": 0, "get_device_name": limits.device,
        "get_device_capability": (major, minor), "get_device_properties": properties, "synchronize": None,
        "current_stream": SimpleNamespace(cuda_stream=0),
        "set_device": None, "empty_cache": None, "device": nullcontext(), "device_of": nullcontext(),
    }  # fmt: skip
    for name, answer in answers.items():
        setattr(torch.cuda, name, _always(answer))
    called: set[str] = set()
    _host_mode(called).__enter__()
    return called


def _host_mode(called: set[str]) -> Any:
    """Takes `cuda` out of every call of PyTorch's, says of every tensor that it is there, and notes products."""
    import torch
    from torch.overrides import TorchFunctionMode

    class Host(TorchFunctionMode):  # type: ignore[misc]  # the class is torch's
        def __torch_function__(
            self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            if getattr(function, "__self__", None) is torch.Tensor.is_cuda:
                return True
            if function is torch.Tensor.cuda:
                return args[0]
            if (name := getattr(function, "__name__", "")) in PRODUCTS:
                called.add(name.strip("_"))
            named = {name: _hosted(value) for name, value in (kwargs or {}).items()}
            return function(*map(_hosted, args), **named)

    return Host()


def _hosted(value: Any) -> Any:
    import torch

    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    return "cpu" if isinstance(value, str) and value.split(":")[0] == "cuda" else value


def _always(answer: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: answer


def _nothing(*args: Any, **kwargs: Any) -> None:
    """In place of a launch."""
