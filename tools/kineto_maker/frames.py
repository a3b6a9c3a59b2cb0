"""Python frames as PyTorch's profiler names them: modules, built-ins, and the small calls between the big ones.

Files, lines and functions follow SGLang 0.5 and PyTorch 2.8; line numbers are only plausible.
"""

from __future__ import annotations

import zlib
from itertools import cycle, islice
from typing import Final

from .nodes import Frame, Node, Op

CALL_IMPL: Final = "torch/nn/modules/module.py(1779): _call_impl"
OPS_CALL: Final = "torch/_ops.py(1244): __call__"
_PYBIND: Final = "pybind11_builtins.pybind11_detail_function_record_v1_system_libstdcpp_gxx_abi_1xxx_use_cxx11_abi_1"
_DEVICE_MODE: Final = "torch/utils/_device.py(99): __torch_function__"


def function(name: str, *body: Node) -> Frame:
    """A frame `file(line): function`."""
    return Frame(name, body)


def builtin(name: str, *body: Node, of: str = "") -> Frame:
    """A C function, or a method of an object, whose address is made from both names."""
    if not of:
        return Frame(f"<built-in function {name}>", body)
    address = 0x7F3A_0000_0000 + 16 * (zlib.crc32(f"{of}.{name}".encode()) % 2**28)
    return Frame(f"<built-in method {name} of {of} object at {address:#x}>", body)


def module(name: str, forward: str, *body: Node) -> Frame:
    """A torch module's call, from its `nn.Module:` frame down to the engine's `forward`."""
    return Frame(f"nn.Module: {name}", (Frame(CALL_IMPL, (_TRACING, Frame(forward, body))),))


def custom_op(wrapper: str, op: Op) -> Frame:
    """An operator of an extension: its Python wrapper, `torch.ops`, the binding, and the op."""
    binding = builtin(op.name.rpartition(":")[2], op, of=_PYBIND)
    return Frame(wrapper, (Frame(OPS_CALL, (binding,)),))


def small_calls(count: int, start: int = 0) -> tuple[Frame, ...]:
    """Calls of some 100 ns each, such as fill the time between operators, from the `start`-th of a fixed cycle."""
    return tuple(islice(cycle(_SMALL_CALLS), start, start + count))


_TRACING: Final = Frame(builtin("_get_tracing_state", of=_PYBIND).name, small=True)
_SMALL_CALLS: Final = tuple(
    Frame(call.name, call.body, small=True)
    for call in (
        builtin("dim", of="Tensor"),
        function(_DEVICE_MODE, builtin("is_contiguous", of="Tensor")),
        function("torch/nn/modules/module.py(1951): __getattr__"),
        builtin("isinstance"),
        builtin("get", of="dict"),
        function("sglang/srt/model_executor/forward_batch_info.py(133): is_decode"),
        builtin("hasattr"),
        builtin("data_ptr", of="Tensor"),
        function(_DEVICE_MODE, builtin("size", of="Tensor")),
        function("sglang/srt/layers/communicator.py(292): input_scattered"),
        builtin("append", of="list"),
        builtin("len"),
        function("sglang/srt/distributed/parallel_state.py(1480): get_tp_group"),
        builtin("stride", of="Tensor"),
        builtin("getattr"),
    )
)
