"""Were functions replaced that measure, or that other kernels are made of.

A candidate runs in one process with the timer and with the kernels that it is held against. So what stands in the
modules that these use is written down before it is loaded, and compared afterwards. New names are fine, and so are
values that aren't functions: libraries keep state. Torch also wraps functions of its own, later than at its import:
a function from its own files that says it wraps the one before may stand there.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_SEALED = (
    "builtins", "gc", "json", "math", "random", "statistics", "threading", "time",
    "numpy", "torch", "torch._C", "torch.autograd.profiler", "torch.cuda", "torch.cuda.graphs", "torch.cuda.streams",
    "torch.nn.functional", "torch.profiler", "torch.random",
    "triton", "triton.compiler", "triton.runtime.driver", "triton.testing",
)  # fmt: skip
_dirname, _SEP = os.path.dirname, os.sep
_CLASSES = ("Tensor", "Event", "Stream", "CUDAGraph", "profile", "record_function", "Generator", "Thread")


@dataclass(frozen=True)
class Seal:
    """What was found under each name of each module, and of the classes in them that time, draw or compute."""

    found: Mapping[tuple[str, str], Any]

    def broken(self) -> list[str]:
        """Names that hold something else now, such as `torch.cuda.Event.elapsed_time`."""
        now = dict(_names())
        return [
            ".".join(name)
            for name, value in self.found.items()
            if now.get(name) is not value and not _wraps(now.get(name), value, name[0].partition(".")[0])
        ]


def seal() -> Seal:
    """As it is now."""
    return Seal(dict(_names()))


def _wraps(value: Any, before: Any, library: str) -> bool:
    """Whether it is torch's own wrapper of what stood there before."""
    code, file = getattr(value, "__code__", None), getattr(sys.modules.get(library), "__file__", None)
    if library != "torch" or code is None or file is None:
        return False
    return getattr(value, "__wrapped__", None) is before and code.co_filename.startswith(_dirname(file) + _SEP)


def _names() -> Iterator[tuple[tuple[str, str], Any]]:
    for name in _SEALED:
        module = sys.modules.get(name)
        if module is None:
            continue
        for each, value in list(vars(module).items()):
            if callable(value):
                yield (name, each), value
            if each in _CLASSES and isinstance(value, type):
                yield from (((f"{name}.{each}", own), held) for own, held in vars(value).items() if callable(held))
