"""Compiles the kernels of the backend `torch` by torch.compile.

Compiled at the first call of each shape, for the device of the first tensor: on a GPU with autotuning, which takes
long; on a CPU in the default mode, which needs a C++ compiler. CUDA graphs are left to whoever measures.
"""

import os
import shutil
from importlib.util import find_spec
from typing import Any

from inferometer.backends.backend import Kernel
from inferometer.backends.torch.catalogue import KERNELS, load_kernel, torch_unavailable
from inferometer.errors import UnknownName

GPU_MODE = "max-autotune-no-cudagraphs"

IN_PARTS = frozenset({"attention_forward", "moe_align_block_size"})
"""Operators whose kernels wait for a number from the device: torch.compile takes what is before it and after it."""

LEFT_OUT = frozenset({"fp8_blockscale_fused_moe"})
"""Operators whose kernels loop over numbers from the device: they would be compiled anew for every routing."""

SHAPES = 1_024
"""That one kernel may be compiled for in one process: after 8, torch would run it eagerly."""

_COMPILERS = ("g++", "c++", "clang++")


def load_compiled(name: str) -> Kernel:
    """The kernel of the backend `torch`, compiled at its first call of each shape."""
    if name in LEFT_OUT:
        raise UnknownName("compiled kernel", name, set(KERNELS) - LEFT_OUT)
    kernel = load_kernel(name)
    compiled: dict[str, Kernel] = {}

    def call(*tensors: Any, **settings: Any) -> Any:
        kind = tensors[0].device.type
        if kind not in compiled:
            compiled[kind] = compile_kernel(name, kernel, kind)
        return compiled[kind](*tensors, **settings)

    return call


def compile_kernel(name: str, kernel: Kernel, kind: str) -> Kernel:
    """Raises torch's limit of shapes too, which holds for the whole process."""
    import torch
    from torch._dynamo import config

    # The older names, which newer versions keep as aliases: torch 2.6 has only these.
    config.cache_size_limit = max(config.cache_size_limit, SHAPES)
    config.accumulated_cache_size_limit = max(config.accumulated_cache_size_limit, SHAPES)
    if kind == "cuda":
        _keep_tables_off_stderr()
    how: dict[str, Any] = {"mode": GPU_MODE} if kind == "cuda" else {"options": {"cpp.cxx": (None, _find_compiler())}}
    compiled: Kernel = torch.compile(kernel, dynamic=False, fullgraph=name not in IN_PARTS, **how)
    return compiled


def _keep_tables_off_stderr() -> None:
    """Autotuning prints what it tried, some twenty lines a product."""
    from torch._inductor import config, select_algorithm

    select_algorithm.PRINT_AUTOTUNE = False
    if hasattr(config, "max_autotune_report_choices_stats"):
        config.max_autotune_report_choices_stats = False


def _find_compiler() -> str | None:
    """The C++ compiler that `CXX` names, or else the first of the usual ones on PATH."""
    names = (os.environ.get("CXX", ""), *_COMPILERS)
    return next((path for path in map(shutil.which, filter(None, names)) if path), None)


def compiler_unavailable(device: str) -> str | None:
    """Why torch.compile can't run on `cpu`, `cuda` or `cuda:1` here; None where it can."""
    missing = torch_unavailable(device)
    if missing is not None:
        return missing
    if device.startswith("cuda"):
        return None if find_spec("triton") else "torch.compile needs triton: pip install 'inferometer[torch]'"
    if _find_compiler() is None:
        return f"torch.compile needs a C++ compiler for a CPU: set CXX, or have {' or '.join(_COMPILERS)} on PATH"
    return None
