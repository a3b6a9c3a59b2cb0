"""A definition of flashinfer-bench as a file has it, checked: names, dtypes, axes, constraints, a reference to call.

Source: https://bench.flashinfer.ai/docs and the definitions of its public data set. Constraints between axes are held
against workloads; those that ask for values of tensors are passed over.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from inferometer.bench.exchange.definitions import DTYPES
from inferometer.bench.exchange.schema import Const, Definition, TensorSpec, Var, Workload
from inferometer.bench.exchange.workloads import decode
from inferometer.errors import FormatError, clean
from inferometer.side_files import read_side_file

ENTRY = "run"
"""What a reference's function is called."""

READABLE = DTYPES | {"uint8", "float8_e8m0fnu"}
"""Dtypes of tensors; the data set has packed values in uint8, which its documentation doesn't name."""

_PACKED = "float4_e2m1"
_NAME = re.compile(r"[A-Za-z0-9_.+-]{1,255}")
_AXIS_LARGEST = 1 << 40
_HINT = "Give a definition of flashinfer-bench: its documentation has the fields."


def read_definition(path: Path) -> Definition:
    """The definition in a `.json` file.

    Raises:
        InputError: The file can't be read.
        FormatError: It is no definition, or contradicts itself: the message has the field.
    """
    found = decode(str(path), read_side_file(path, hint=_HINT), Definition)
    check_definition(str(path), found)
    return found


def check_definition(where: str, found: Definition) -> None:
    """Refuse what can't be run.

    Raises:
        FormatError: The field, what was expected and what was found.
    """
    if not _NAME.fullmatch(found.name):
        raise FormatError(
            f'{where}: name: expected letters, digits and _.+-, found "{clean(found.name):.80}"', hint=_HINT
        )
    for axis, size in found.axes.items():
        if isinstance(size, Const) and not 0 < size.value <= _AXIS_LARGEST:
            raise FormatError(f"{where}: axes.{clean(axis):.80}: expected a size above 0, found {size.value}")
    for kind, specs in (("inputs", found.inputs), ("outputs", found.outputs)):
        if not specs:
            raise FormatError(f"{where}: {kind}: expected a tensor at least, found none", hint=_HINT)
        for name, spec in specs.items():
            _check_spec(f"{where}: {kind}.{clean(name):.80}", found, name, spec)
    _check_outputs(where, found)
    _check_reference(where, found)


def _check_spec(where: str, found: Definition, name: str, spec: TensorSpec) -> None:
    if not name.isidentifier():
        raise FormatError(f"{where}: expected a name of Python, as the reference's arguments are called so")
    if spec.dtype not in READABLE:
        raise FormatError(
            f'{where}.dtype: expected one of {", ".join(sorted(READABLE))}, found "{clean(spec.dtype):.40}"'
        )
    for axis in spec.shape or ():
        if axis not in found.axes:
            has = ", ".join(found.axes) or "none"
            raise FormatError(f'{where}.shape: expected axes of the definition ({has}), found "{clean(axis):.80}"')


def _check_outputs(where: str, found: Definition) -> None:
    """The size of an output must be known before anything runs."""
    known = {axis for axis, size in found.axes.items() if isinstance(size, Const)}
    known |= {axis for spec in found.inputs.values() for axis in spec.shape or ()}
    for name, spec in found.outputs.items():
        for axis in spec.shape or ():
            if axis not in known:
                raise FormatError(
                    f"{where}: outputs.{name}.shape: {axis} is var, and no input has it: its size is open"
                )


def _check_reference(where: str, found: Definition) -> None:
    try:
        tree = ast.parse(found.reference)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = f" line {error.lineno}:" if isinstance(error, SyntaxError) else ""
        raise FormatError(f"{where}: reference:{line} expected Python, found: {clean(str(error)):.200}") from error
    function = next((each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == ENTRY), None)
    if function is None:
        raise FormatError(f"{where}: reference: expected a function {ENTRY}, found none", hint=_HINT)
    takes = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if function.args.vararg is None and len(takes) != len(found.inputs):
        expected = ", ".join(found.inputs)
        raise FormatError(f"{where}: reference: expected {ENTRY}({expected}), found {ENTRY}({', '.join(takes)})")


def sizes_of(where: str, found: Definition, workload: Workload) -> dict[str, int]:
    """The sizes of all axes in a workload.

    Raises:
        FormatError: One is missing, negative, or none of the definition's; or they break a constraint.
    """
    sizes = {axis: size.value for axis, size in found.axes.items() if isinstance(size, Const)}
    for axis, size in workload.axes.items():
        if axis not in found.axes:
            has = ", ".join(each for each, kind in found.axes.items() if isinstance(kind, Var)) or "none"
            raise FormatError(f"{where}: axes.{clean(axis):.80}: {found.name} has no such axis; var are: {has}")
        if sizes.get(axis, size) != size:
            raise FormatError(f"{where}: axes.{axis}: expected {sizes[axis]} as the definition has it, found {size}")
        if not 0 <= size <= _AXIS_LARGEST:
            raise FormatError(f"{where}: axes.{axis}: expected a size of 0 to {_AXIS_LARGEST:,}, found {size}")
        sizes[axis] = size
    missing = [axis for axis in found.axes if axis not in sizes]
    if missing:
        raise FormatError(f"{where}: axes: expected a size of {', '.join(missing)}, found none")
    for constraint in found.constraints:
        if holds(constraint, sizes) is False:
            used = ", ".join(f"{axis}={sizes[axis]}" for axis in sizes if re.search(rf"\b{axis}\b", constraint))
            raise FormatError(f'{where}: axes: expected "{clean(constraint):.120}" to hold, found {used}')
    return sizes


def bytes_of(specs: Mapping[str, TensorSpec], sizes: Mapping[str, int]) -> int:
    """Bytes of these tensors together."""
    return sum(
        math.prod(sizes[axis] for axis in spec.shape) * item_bytes(spec.dtype)
        for spec in specs.values()
        if spec.shape is not None
    )


def item_bytes(dtype: str) -> int:
    """Bytes of one element."""
    if dtype in ("bool", "int8", "uint8", _PACKED) or dtype.startswith("float8"):
        return 1
    return {"16": 2, "32": 4, "64": 8}[dtype[-2:]]


_ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: lambda a, b: a // b if b else 0, ast.Mod: lambda a, b: a % b if b else 0,
}  # fmt: skip
_COMPARED: Mapping[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_LONGEST = 500  # characters of a constraint


def holds(constraint: str, sizes: Mapping[str, int]) -> bool | None:
    """Whether a relation of axes is so; None where it isn't made of whole numbers, axes and `+ - * // %` alone."""
    if len(constraint) > _LONGEST:
        return None
    try:
        tree = ast.parse(constraint.strip(), mode="eval").body
        if not isinstance(tree, ast.Compare):
            return None
        values = [_value(each, sizes) for each in (tree.left, *tree.comparators)]
        kinds = [_COMPARED[type(each)] for each in tree.ops]
    except (SyntaxError, ValueError, KeyError, RecursionError):
        return None
    return all(compare(values[place], values[place + 1]) for place, compare in enumerate(kinds))


def _value(node: Any, sizes: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return sizes[node.id]
    if isinstance(node, ast.BinOp):
        return _ARITHMETIC[type(node.op)](_value(node.left, sizes), _value(node.right, sizes))
    raise ValueError("values of tensors, or a call")
