"""Arguments of a node as a profile has them: sizes, types, strides and values, each as the text of a JSON list.

`Tensor(float)` is `float` there, `Int` is `Scalar`, `GenericList[Int,Int]` is `ScalarList`, and a list of tensors is
`TensorList`; what is neither tensor nor number has no type. Numbers are written as PyTorch's profiler writes them (`1.`
is a whole `Double`), but that an execution trace has six decimals of those.
"""

import json
from typing import Any, Final

from inferometer.formats.execution_trace.nodes import Arguments

_SCALARS: Final = frozenset({"Int", "Double", "Bool", "ComplexDouble", "SymInt", "SymFloat", "SymBool"})
_NO_SIZES: Final[list[Any]] = []


def texts(found: Arguments) -> dict[str, str | None]:
    """`dims`, `dtypes`, `strides` and `scalars`; null where a list of them isn't there, or can't be known.

    Raises:
        RecursionError: Lists in it are nested too deep.
    """
    kinds = [_kind(each) for each in found.types]
    sizes = {"dims": found.shapes, "strides": found.strides}
    whole = {name: _sized(kinds, each) for name, each in sizes.items()}
    scalars = None
    if len(found.values) == len(kinds):
        scalars = json.dumps([_value(kind, each) for kind, each in zip(found.types, found.values, strict=True)])
    return {
        **{name: None if each is None else json.dumps(each) for name, each in whole.items()},
        "dtypes": json.dumps(kinds),
        "scalars": scalars,
    }


def _sized(kinds: list[str], sizes: list[Any] | None) -> list[Any] | None:
    """Sizes or strides of tensors and lists of tensors; of all others none."""
    if sizes is None or len(sizes) != len(kinds):
        return None
    return [
        _NO_SIZES if kind in ("", "Scalar", "ScalarList") else each for kind, each in zip(kinds, sizes, strict=True)
    ]


def _kind(text: str) -> str:
    """What a profile calls this type."""
    if text.startswith("Tensor(") and text.endswith(")"):
        inner = text[len("Tensor(") : -1]
        return "" if inner.startswith("nullptr") else inner
    if text.startswith("GenericList["):
        return _list_kind(_elements(text))
    return "Scalar" if text in _SCALARS else ""


def _elements(text: str) -> list[str]:
    """The types in `GenericList[Int,Int]`."""
    inside = text[len("GenericList[") : -1]
    return [element.strip() for element in inside.split(",")] if inside else []


def _list_kind(elements: list[str]) -> str:
    if elements and all(element.startswith("Tensor(") for element in elements):
        return "TensorList"
    return "ScalarList" if all(element in _SCALARS for element in elements) else ""


def _value(kind: str, value: Any) -> str:
    if kind in _SCALARS:
        return _number(kind, value)
    if _kind(kind) == "ScalarList" and isinstance(value, list):
        elements = _elements(kind)
        known = elements if len(elements) == len(value) else [""] * len(value)
        return f"[{', '.join(map(_number, known, value))}]"
    return ""


def _number(kind: str, value: Any) -> str:
    if kind == "Double" and isinstance(value, float | int) and value % 1 == 0:
        return f"{int(value)}."
    return str(value)
