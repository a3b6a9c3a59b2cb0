"""The catalogue's operators in plain PyTorch: one file an operator in `kernels/`."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from inferometer.backends.backend import Kernel
from inferometer.errors import UnknownName

KERNELS = tuple(sorted(file.stem for file in Path(__file__).with_name("kernels").glob("[!_]*.py")))
"""Operators that have a file; none is imported to tell."""


def load_kernel(name: str) -> Kernel:
    """The function of one file.

    Raises:
        UnknownName: There is no such file.
    """
    if name not in KERNELS:
        raise UnknownName("kernel", name, KERNELS)
    return cast("Kernel", getattr(import_module(f"inferometer.backends.torch.kernels.{name}"), name))


def torch_unavailable(device: str) -> str | None:
    """Why PyTorch can't run on `cpu`, `cuda` or `cuda:1` here; None where it can."""
    if find_spec("torch") is None:
        return "torch is not installed: pip install 'inferometer[torch]'"
    kind, _, index = device.partition(":")
    if kind == "cpu":
        return None
    if kind != "cuda":
        return f"expected cpu or cuda as the device, found {device}"
    import torch

    seen = torch.cuda.device_count() if torch.cuda.is_available() else 0
    there = (index or "0").isdecimal() and int(index or 0) < seen
    return None if there else f"there is no GPU {device} here: torch {torch.__version__} sees {seen}"
