"""The most memory that this process, or PyTorch on a GPU, had at once."""

import sys


def peak_rss_bytes() -> int | None:
    """Resident memory of the process at its highest, since it began; None where the system doesn't report (Windows)."""
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def begin_device_peak(device: str) -> None:
    """From here on `device_peak_bytes` counts; what is allocated now stays in it."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.reset_peak_memory_stats(device)


def device_peak_bytes(device: str) -> int | None:
    """Most that PyTorch had allocated on a GPU, without what its allocator keeps in reserve; None on a CPU."""
    if not device.startswith("cuda"):
        return None
    import torch

    return int(torch.cuda.max_memory_allocated(device))
