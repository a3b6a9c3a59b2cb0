"""A decoder's operators of the backend `compile`: the functions of `torch`, each compiled by torch.compile.

Each is compiled whole, and never run eagerly instead: what can't be compiled raises, and so does an operator that was
compiled more often than `compiler.SHAPES`. So nothing is refused. Numbers of tokens are variables of the compiled
code (1 apart), so a context that grows compiles nothing: one kernel for prefill, one for decode. Batches and the
model's own sizes are constants.

Compiled code rounds to half precision once, where eager code rounds at every step: they differ by one or two units in
the last place. On a CPU, fused attention and matrix products stay PyTorch's own.
"""

import os
from typing import TYPE_CHECKING, Any

from inferometer.backends.backend import DecoderKernel, DecoderKernels, Kernel
from inferometer.backends.compile.compiler import compile_kernel, compiler_unavailable
from inferometer.backends.torch.decoder import FUNCTIONS
from inferometer.errors import UnknownName
from inferometer.operators.decoder.contracts import CONTRACTS

if TYPE_CHECKING:
    from torch import Tensor

_ROWS = slice(None, -1)
_GROWING: dict[str, tuple[slice, ...]] = {
    "rms_norm": (_ROWS,),
    "add_rms_norm": (_ROWS, _ROWS),
    "rope": (slice(2, 3), slice(2, 3), slice(1, 2), slice(1, 2)),
    "attention_prefill": (slice(2, 3),) * 3,
    "attention_decode": (slice(0), slice(2, 3), slice(2, 3)),
    "linear": (_ROWS,),
    "silu_mul": (_ROWS, _ROWS),
    "gelu_mul": (_ROWS, _ROWS),
    "moe_route": (_ROWS,),
}
"""Dimensions of the first arguments with a number of tokens; batches and the rest are constants."""

_SWITCHES = {"TORCH_COMPILE_DISABLE": "1", "TORCHDYNAMO_DISABLE": "1"}


def _load(operator: str) -> DecoderKernel:
    if operator not in FUNCTIONS:
        raise UnknownName("operator of a model", operator, FUNCTIONS)
    growing = _GROWING.get(operator, ())
    compiled: dict[str, Kernel] = {}

    def call(*args: Any, **settings: Any) -> Any:
        kind = args[0].device.type
        if kind not in compiled:
            compiled[kind] = compile_kernel(operator, FUNCTIONS[operator], kind)
        for tensor, dims in zip(args, growing, strict=False):
            _mark(tensor, dims)
        return compiled[kind](*args, **settings)

    return DecoderKernel(call)


def _mark(tensor: "Tensor", dims: slice) -> None:
    """Of these sizes, all but 1 become variables; the others stay constants."""
    from torch._dynamo import maybe_mark_dynamic

    for dim in range(tensor.dim())[dims]:
        maybe_mark_dynamic(tensor, dim)


def _unavailable(device: str) -> str | None:
    for name, value in _SWITCHES.items():
        if os.environ.get(name) == value:
            return f"{name}={value} is set, which makes torch.compile run eagerly"
    return compiler_unavailable(device)


DECODER = DecoderKernels(
    operators=tuple(CONTRACTS),
    unavailable=_unavailable,
    load=_load,
)
