"""Loads our own Triton kernels, of `kernels/`: compiled on a GPU, interpreted on a CPU.

Triton decides which of the two as it is imported, by `TRITON_INTERPRET`. So kernels are loaded at their first call,
which shows the device; a process in which Triton is there already, without its interpreter, can't run them on a CPU.
Up to Triton 3.6, its interpreter can't loop to a number that a kernel is given where NumPy is 2.4 or newer.
"""

import os
import sys
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from inferometer.backends.backend import Kernel
from inferometer.backends.torch.catalogue import torch_unavailable
from inferometer.errors import Unavailable, UnknownName
from inferometer.operators import operators

SWITCH = "TRITON_INTERPRET"
OPERATORS = tuple(
    sorted(file.stem for file in Path(__file__).with_name("kernels").glob("[!_]*.py") if file.stem in operators())
)
"""Of the catalogue, those that a file there is named after: it keeps the whole contract. None is imported to tell."""


def triton_unavailable(device: str) -> str | None:
    """Why Triton's kernels can't run on `cpu`, `cuda` or `cuda:1` in a process that begins now; None where they can."""
    missing = torch_unavailable(device)
    if missing is not None:
        return missing
    if find_spec("triton") is None:
        return "triton is not installed: pip install 'inferometer[torch]'"
    if device != "cpu" and os.environ.get(SWITCH) == "1":
        return f"{SWITCH}=1 is set: its kernels would run in Python, on the CPU"
    return None


def interpreter_unavailable() -> str | None:
    """Why this very process can't interpret Triton's kernels; None where it can, or where Triton isn't loaded yet."""
    if _version("triton") < (3, 7) and _version("numpy") >= (2, 4):
        return "to interpret kernels, Triton before 3.7 needs NumPy before 2.4: pip install -U triton"
    standard, jit = sys.modules.get("triton.language.standard"), sys.modules.get("triton.runtime.jit")
    if standard is None or jit is None or not isinstance(standard.sum, jit.JITFunction):
        return None
    return f"Triton was loaded without its interpreter before: start the process with {SWITCH}=1"


def _version(package: str) -> tuple[int, ...]:
    """The first two numbers of it."""
    return tuple(int(part) for part in version(package).split(".")[:2])


def prepare_interpreter(device: str) -> None:
    """For a CPU, set `TRITON_INTERPRET` to 1: others (transformers, torch.compile) may load Triton before us."""
    if device == "cpu":
        os.environ[SWITCH] = "1"


def load_kernels(module: str, device: str) -> Any:
    """A module of `kernels/`, for tensors on `cpu` or `cuda`. For a CPU, `TRITON_INTERPRET` is set to 1.

    Raises:
        Unavailable: It would have to be interpreted, and can't be any more in this process.
    """
    if device == "cpu":
        why = interpreter_unavailable()
        if why is not None:
            raise Unavailable(f"triton can't run on cpu: {why}")
        prepare_interpreter(device)
    return import_module(f"inferometer.backends.triton.kernels.{module}")


def load_late(module: str, name: str) -> Kernel:
    """A function of a module of `kernels/`, loaded at its first call, for the device of the first tensor."""
    loaded: dict[str, Kernel] = {}

    def call(*tensors: Any, **settings: Any) -> Any:
        kind = tensors[0].device.type
        if kind not in loaded:
            loaded[kind] = getattr(load_kernels(module, kind), name)
        return loaded[kind](*tensors, **settings)

    return call


def load_kernel(name: str) -> Kernel:
    """The kernel of one of the catalogue's operators, loaded at its first call."""
    if name not in OPERATORS:
        raise UnknownName("kernel", name, OPERATORS)
    return load_late(name, name)


def kernel_to_build(name: str) -> Kernel:
    """The kernel of one of the catalogue's operators as a GPU has it, whatever device its tensors are on."""
    if name not in OPERATORS:
        raise UnknownName("kernel", name, OPERATORS)
    kernel: Kernel = getattr(load_kernels(name, "cuda"), name)
    return kernel
