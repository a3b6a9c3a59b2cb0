"""The inputs of a replay by the recorded arguments: tensors to draw, values as they are, remarks on what is filled in.

Types of tensors in lists aren't recorded: those of 2 bytes by the kernel's name count as bfloat16, others as float32.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from inferometer.errors import InputError, clean
from inferometer.operators.framework.call import LISTED, OpCall, Tensor, Unmodelled, read_call
from inferometer.operators.framework.counting import listed_bytes
from inferometer.operators.framework.family import model_of
from inferometer.reports.replay.fillings import fill_of, text_of
from inferometer.reports.replay.harness import Integers, Strided
from inferometer.reports.replay.refusals import check_op

_DTYPES: Final = {
    "double": "float64",
    "float": "float32",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    **dict.fromkeys(("long int", "long"), "int64"),
    "int": "int32",
    **dict.fromkeys(("short int", "short"), "int16"),
    **dict.fromkeys(("signed char", "char"), "int8"),
    "unsigned char": "uint8",
    "unsigned short": "uint16",
    "unsigned int": "uint32",
    "unsigned long": "uint64",
    "bool": "bool",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
    "c10::Float8_e4m3fn": "float8_e4m3fn",
    "c10::Float8_e5m2": "float8_e5m2",
    "c10::Float8_e4m3fnuz": "float8_e4m3fnuz",
    "c10::Float8_e5m2fnuz": "float8_e5m2fnuz",
    "c10::Float8_e8m0fnu": "float8_e8m0fnu",
    "c10::Float4_e2m1fn_x2": "float4_e2m1fn_x2",
}
_WRAPPED: Final = frozenset({"double", "long int", "bool"})  # what PyTorch makes of a Python number next to a tensor
_FILLED = "values filled in"
_GUESSED: Final = {2: "bfloat16", 8: "int64", 1: "uint8"}


@dataclass(frozen=True)
class Argument:
    """One input: `value` as the harness takes it, `remark` on what of it isn't recorded."""

    value: Any
    remark: str = ""


@dataclass(frozen=True)
class Replayed:
    """A call that can be run again: the validated name of its op, what registers that, and its inputs."""

    op: str
    libraries: tuple[str, ...]
    inputs: tuple[Argument, ...]


def replayed_call(row: dict[str, Any]) -> Replayed:
    """What a row of `roofline` takes to run again.

    Args:
        row: `op`, the recorded arguments, and `kernel`.

    Raises:
        InputError: It can't; the message says why.
    """
    libraries = check_op(row["op"])
    texts = (row[name] for name in ("input_dims", "input_dtypes", "input_strides", "scalars"))
    try:
        call = read_call(row["op"], *texts, kernels=(row["kernel"] or "",))
        return Replayed(call.op, libraries, tuple(_argument(call, at) for at in range(len(call.inputs))))
    except Unmodelled as unmodelled:
        raise InputError(f"{row['op']} can't be replayed: {unmodelled}") from unmodelled


def _argument(call: OpCall, at: int) -> Argument:
    found = call.inputs[at]
    if isinstance(found, Tensor):
        return _tensor(call, at, found)
    if isinstance(found, tuple):
        parts = [_tensor(call, at, each) for each in call.tensors(at)]
        return Argument([part.value for part in parts], parts[0].remark)
    if found is None:
        text = text_of(call.op, at)
        return Argument(text, "" if text is None else "a text, filled in")
    return Argument(_checked(call.value(at), at))


def _tensor(call: OpCall, at: int, tensor: Tensor) -> Argument:
    listed = tensor.dtype == LISTED
    dtype = _listed_dtype(call) if listed else _DTYPES.get(tensor.dtype)
    if dtype is None:
        raise Unmodelled(f'PyTorch has no type "{clean(tensor.dtype):.80}"')
    strides = tensor.strides if tensor.strides is not None else _contiguous(tensor.dims)
    if any(stride < 0 for stride in strides):
        raise Unmodelled("a stride is below 0")
    remarks = ["type filled in"] if listed else []
    remarks += [] if tensor.strides is not None else ["strides filled in"]
    fill = None
    if "float" not in dtype and "complex" not in dtype:
        fill = Integers(0, 2) if dtype == "bool" else fill_of(call, at)
        remarks.append(_FILLED)
    on_host = not tensor.dims and tensor.dtype in _WRAPPED and _is_elementwise(call.op)
    return Argument(Strided(tensor.dims, strides, dtype, fill, on_host), ", ".join(remarks))


def _listed_dtype(call: OpCall) -> str:
    try:
        return _GUESSED.get(listed_bytes(call), "float32")
    except Unmodelled:
        return "float32"


def _is_elementwise(op: str) -> bool:
    found = model_of(op)
    return found is not None and found.family == "element-wise"


def _contiguous(dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(max(1, size) for size in dims[at + 1 :]) for at in range(len(dims)))


def _checked(value: Any, at: int) -> Any:
    """A number, or a list of such.

    Raises:
        Unmodelled: It is something else: a text of the file never gets into a script.
    """
    if not all(isinstance(each, bool | int | float) or each is None for each in _flat(value)):
        raise Unmodelled(f"argument {at} is neither a number nor a list of such")
    return value


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for each in value:
            yield from _flat(each)
    else:
        yield value
