"""What is known of each overload of an op, looked up once: its name, its arguments, and whether it computes."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

NEVER, ALWAYS, IF_NEW = 0, 1, 2  # does a call do device work: no; yes; if its result has memory of its own
_ALLOCATES = (  # memory without contents: nothing runs on a device
    *("aten::empty", "aten::new_empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty_strided"),
    *("aten::empty_permuted", "aten::resize_", "aten::resize_as_", "aten::set_", "aten::record_stream"),
    *("aten::_nested_tensor_size", "aten::is_same_size", "aten::is_pinned", "aten::_has_compatible_shallow_copy_type"),
)


class Argument(NamedTuple):
    """One argument of an op's schema. `is_tensor`: a number given for it counts as a tensor without dimensions."""

    name: str
    default: Any
    is_tensor: bool


class Overload:
    """`call` runs it; `op` is its name as the profiler has it; `work` is `NEVER`, `ALWAYS` or `IF_NEW`.

    `is_tried`: a first result has shown whether the op gives back its input's memory unsaid (`aten::_unsafe_view`).
    """

    __slots__ = ("arguments", "call", "function", "is_tried", "op", "work")

    def __init__(self, function: Any) -> None:
        self.function = function  # kept: overloads are known by the object's address
        self.call: Callable[..., Any] = getattr(function, "_op", function)
        schema = getattr(function, "_schema", None)
        self.op = str(schema.name) if schema is not None else f"higher_order::{_name(function)}"
        self.arguments: tuple[Argument, ...] = () if schema is None else _arguments(schema)
        self.work = ALWAYS if schema is None else _work(function, schema, self.op)
        self.is_tried = self.work != ALWAYS or _writes(schema)

    @classmethod
    def named(cls, op: str, call: Callable[..., Any]) -> "Overload":
        """What is no op of PyTorch's, shown as one."""
        made = cls(call)
        made.op = op
        return made


@lru_cache(maxsize=1)
def scalar_types() -> frozenset[type]:
    """Python types whose values tell a call apart; exact types, since subclasses may answer otherwise."""
    import torch

    others = (torch.dtype, torch.device, torch.layout, torch.memory_format)
    return frozenset({int, float, bool, complex, str, type(None), *others})


@lru_cache(maxsize=1)
def dtype_numbers() -> dict[Any, int]:
    """PyTorch's numbers of types, layouts and memory formats, as its profiler prints them.

    Source: c10/core/ScalarType.h (`AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS`), Layout.h and MemoryFormat.h.
    """
    import torch

    types = (
        *("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64"),
        *("complex128", "bool", "qint8", "quint8", "qint32", "bfloat16", "quint4x2", "quint2x4", "bits1x8", "bits2x4"),
        *("bits4x2", "bits8", "bits16", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz"),
        *("uint16", "uint32", "uint64"),
    )
    layouts = ("strided", "sparse_coo", "sparse_csr", "_mkldnn", "sparse_csc", "sparse_bsr", "sparse_bsc")
    formats = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
    numbered = ((getattr(torch, name, None), i) for names in (types, layouts, formats) for i, name in enumerate(names))
    return {value: i for value, i in numbered if value is not None}


def shares_memory(out: Any, args: Any) -> bool:
    """Whether the first tensor of a result is in the memory of an input."""
    import torch

    out = first_tensor(out)
    if out is None:
        return False
    return any(isinstance(each, torch.Tensor) and bool(torch._C._is_alias_of(out, each)) for each in args)


def first_tensor(values: Any) -> Any:
    """The first tensor of a result or of arguments, within lists, too; None where there is none."""
    if isinstance(values, list | tuple):
        return next((found for value in values if (found := first_tensor(value)) is not None), None)
    return values if hasattr(values, "is_cpu") else None


def _arguments(schema: Any) -> tuple[Argument, ...]:
    return tuple(
        Argument(each.name, each.default_value if each.has_default_value() else None, "Tensor" in str(each.type))
        for each in schema.arguments
    )


def _work(function: Any, schema: Any, op: str) -> int:
    """Whether calls compute, by the schema: a result that is an argument's view, unwritten, is metadata alone.

    Ops made of others that inference mode shows whole (`aten::reshape`, `aten::to`) may copy: each result says.
    """
    import torch

    if op in _ALLOCATES or (not schema.returns and not schema.is_mutable):
        return NEVER
    if _writes(schema) or all(each.alias_info is None for each in schema.returns):
        return ALWAYS
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    return IF_NEW if function.has_kernel_for_dispatch_key(key) else NEVER


def _writes(schema: Any) -> bool:
    return schema is not None and any(
        each.alias_info is not None and each.alias_info.is_write for each in schema.returns
    )


def _name(function: Any) -> str:
    name = getattr(function, "name", None)
    return str(name() if callable(name) else name or getattr(function, "__name__", function))
