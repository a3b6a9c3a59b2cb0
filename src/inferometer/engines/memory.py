"""Whether a model fits: an estimate is compared with what is free, and running out is reported in the same words."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from inferometer.errors import Unavailable
from inferometer.units import format_bytes

_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "cannot allocate memory", "defaultcpuallocator")
_HINT = "Take a smaller model, --dtype bfloat16, a smaller batch or fewer tokens, or end what else uses the memory."


def free_bytes(device: str, *, root: Path = Path("/")) -> int | None:
    """What `cpu`, `cuda` or `cuda:1` has free now; None where the system doesn't report.

    On a CPU: what Linux could give without swapping, or the room in this process's control group where that is less.
    """
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.mem_get_info(device)[0])
    found = (_available(root / "proc" / "meminfo"), _group_room(root / "sys" / "fs" / "cgroup"))
    return min((size for size in found if size is not None), default=None)


def require_memory(what: str, wanted_bytes: int, device: str) -> None:
    """Raise Unavailable where `what` needs more than is free."""
    free = free_bytes(device)
    if free is not None and wanted_bytes > free:
        raise Unavailable(
            f"{what}: expected {format_bytes(wanted_bytes)} on {device}, found {format_bytes(free)} free", hint=_HINT
        )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, of the device or the host; PyTorch's CPU allocator raises a plain RuntimeError."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(each in str(error).lower() for each in _OUT_OF_MEMORY)


@contextmanager
def memory_for(what: str, wanted_bytes: int, device: str) -> Iterator[None]:
    """Running out of memory in this block is an Unavailable that says what it was for."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # torch.OutOfMemoryError is a RuntimeError
        if not is_out_of_memory(error):
            raise
        raise Unavailable(
            f"{what}: out of memory on {device}; its weights or cache alone are {format_bytes(wanted_bytes)}",
            hint=_HINT,
        ) from error


def _available(path: Path) -> int | None:
    """Source: proc(5)."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _group_room(path: Path) -> int | None:
    """Source: the kernel's page on cgroup-v2. Files' pages count as used there, though the kernel can drop them."""
    try:
        most, used, stat = ((path / f"memory.{name}").read_text("utf-8") for name in ("max", "current", "stat"))
        counts = {name: int(value) for name, _, value in (line.partition(" ") for line in stat.splitlines())}
        return int(most) - int(used) + counts["active_file"] + counts["inactive_file"]
    except (OSError, ValueError, KeyError):  # no such group, "max", or another version
        return None
