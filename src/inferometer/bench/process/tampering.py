"""Were functions replaced that measure, or that other kernels are made of.

A candidate runs in one process with what calls it, and on a GPU with the timer. So what is in the modules that
these use, and in our own, is written down before it is loaded, and compared afterwards: each function by identity, ours
by their code too. New names are fine, and so are values that aren't functions: libraries keep state. Torch also wraps
functions of its own, later than at its import: a function from its own files that says it wraps the one before may
stand there.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
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
    ours: Mapping[str, ModuleType] = field(default_factory=dict)
    codes: Mapping[tuple[str, str], Any] = field(default_factory=dict)

    def broken(self) -> list[str]:
        """Names that hold something else now, such as `torch.cuda.Event.elapsed_time`."""
        now = dict(_names(self.ours))
        return [
            ".".join(name)
            for name, value in self.found.items()
            if now.get(name) is not value and not _wraps(now.get(name), value, name[0].partition(".")[0])
        ] + [".".join(name) for name, code in self.codes.items() if _code(self.found[name]) != code]


def seal(ours: Mapping[str, ModuleType] | None = None) -> Seal:
    """As it is now; `ours`: modules of the evaluator by name, which may not be found by it later."""
    found = dict(_names(ours or {}))
    own = {name: _code(value) for name, value in found.items() if name[0].partition(":")[0] in (ours or {})}
    return Seal(found, ours or {}, {name: code for name, code in own.items() if code is not None})


def _code(function: Any) -> Any:
    """What a Python function runs, with its defaults; None of anything else."""
    code = getattr(function, "__code__", None)
    return None if code is None else (code, function.__defaults__)


def _wraps(value: Any, before: Any, library: str) -> bool:
    """Whether it is torch's own wrapper of what stood there before."""
    code, file = getattr(value, "__code__", None), getattr(sys.modules.get(library), "__file__", None)
    if library != "torch" or code is None or file is None:
        return False
    return getattr(value, "__wrapped__", None) is before and code.co_filename.startswith(_dirname(file) + _SEP)


def _names(ours: Mapping[str, ModuleType]) -> Iterator[tuple[tuple[str, str], Any]]:
    for name, module in ours.items():
        for each, value in list(vars(module).items()):
            if callable(value) or isinstance(value, ModuleType):
                yield (name, each), value
            if isinstance(value, type) and value.__module__ == module.__name__:
                yield from (((f"{name}:{each}", own), held) for own, held in vars(value).items() if callable(held))
    for name in _SEALED:
        library = sys.modules.get(name)
        if library is None:
            continue
        for each, value in list(vars(library).items()):
            if callable(value):
                yield (name, each), value
            if each in _CLASSES and isinstance(value, type):
                yield from (((f"{name}.{each}", own), held) for own, held in vars(value).items() if callable(held))
