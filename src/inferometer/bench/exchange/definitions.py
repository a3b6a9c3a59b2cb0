"""A Definition for each operator and set of constant axes and settings; and a Solution for a candidate's file.

The reference of a definition runs where inferometer is installed: it calls the operator's. Outputs that are named as an
input, since production updates it in place, get `_out` after their name: the format wants different names.
"""

import ast
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal

import msgspec

from inferometer.bench.exchange.axes import Bound, Tensor, axes_of, bind, check_args, parameters_of
from inferometer.bench.exchange.schema import (
    Build,
    Const,
    DefinedBy,
    Definition,
    Solution,
    SolutionFile,
    TensorSpec,
    Var,
)
from inferometer.errors import InputError
from inferometer.operators.axes import Entry
from inferometer.operators.operator import Operator

DTYPES = frozenset(
    {
        *("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1"),
        *("int64", "int32", "int16", "int8", "bool"),
    }
)
"""What a tensor of flashinfer-bench 0.1.2 may have."""

_LONGEST = 100  # characters of a name
_TRITON = re.compile(r"^\s*(import|from) triton\b", re.MULTILINE)

_REFERENCE = '''"""The reference of inferometer's operator {name}."""

from inferometer.operators import require_operator

SETTINGS = {settings}


def run({inputs}):
    return require_operator("{name}").reference({inputs}, **SETTINGS)
'''

_FUNCTION = '''"""Calls the candidate as inferometer does: tensors in their order, settings as keywords."""

from . import candidate

SETTINGS = {settings}


def run({inputs}):
    return candidate.{name}({inputs}, **SETTINGS)
'''

_MODEL = '''"""Calls the candidate as inferometer does: the constructor gets the arguments that it names."""

import inspect

from . import candidate

CONSTANTS = {constants}


def run({inputs}):
    wanted = inspect.signature(candidate.Model).parameters
    model = candidate.Model(**{{name: value for name, value in CONSTANTS.items() if name in wanted}})
    return model.forward({named})
'''


def define(operator: Operator, args: Mapping[str, Any]) -> Definition:
    """The definition that a call belongs to.

    Raises:
        InputError: A tensor has a dtype that the format lacks, or the arguments are none of the operator's.
    """
    bound, constants = bind(operator, args), _constants(operator, args)
    sizes: dict[str, Const | Var] = {
        axis: Var(description=_meaning(operator, axis))
        if axis in bound.var or size is None
        else Const(value=size, description=_meaning(operator, axis))
        for axis, size in bound.sizes.items()
    }
    inputs = {name: _spec(operator, name, tensor) for name, tensor in bound.inputs.items()}
    outputs = {
        f"{name}_out" if name in inputs else name: _spec(operator, name, tensor)
        for name, tensor in bound.outputs.items()
    }
    axes = axes_of(operator)
    plain = {axis: name for axis in axes.sizes if axis in bound.var and (name := axes.argument_of(axis))}
    return Definition(
        name=_name(operator, bound, constants),
        op_type=axes.op_type,
        axes=sizes,
        inputs=inputs,
        outputs=outputs,
        reference=_REFERENCE.format(
            name=operator.name, settings=repr(operator.settings_of(constants)), inputs=", ".join(inputs)
        ),
        tags=("inferometer",),
        description=f"{operator.summary} The operator {operator.name} of inferometer.",
        inferometer=DefinedBy(operator=operator.name, constants=constants, axes=plain),
    )


def solve(definition: Definition, operator: Operator, candidate: str, author: str, text: str) -> Solution:
    """A candidate's file as a solution; it returns its outputs.

    Raises:
        InputError: Its class wants an argument that isn't the same in all of the definition's workloads.
    """
    assert definition.inferometer is not None
    constants, inputs = definition.inferometer.constants, ", ".join(definition.inputs)
    wanted = _model_arguments(operator, candidate, text)
    if wanted is None:
        main = _FUNCTION.format(settings=repr(operator.settings_of(constants)), inputs=inputs, name=operator.name)
    else:
        for name in wanted - set(constants):
            if name in parameters_of(operator):
                raise InputError(f"{candidate}: its class wants {name}, which differs between workloads: no solution")
        named = ", ".join(f"{name}={name}" for name in definition.inputs)
        main = _MODEL.format(constants=repr(constants), inputs=inputs, named=named)
    language: Literal["python", "triton"] = "triton" if _TRITON.search(text) else "python"
    return Solution(
        name=f"{author}_{definition.name}",
        definition=definition.name,
        author=author,
        spec=Build(
            language=language,
            target_hardware=("cuda",),
            entry_point="main.py::run",
            dependencies=("torch", "triton") if language == "triton" else ("torch",),
            destination_passing_style=False,
        ),
        sources=(SolutionFile(path="main.py", content=main), SolutionFile(path="candidate.py", content=text)),
        description=f"The file {candidate}, as inferometer timed it.",
    )


def _constants(operator: Operator, args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that all workloads of a definition share, defaults too."""
    axes, names = axes_of(operator), check_args(operator, args)
    used = {name for axis in axes.sizes if axis not in axes.varying for name in axes.needs(axis)}
    used |= {spec.partition(":")[2].strip() for spec in (*axes.inputs.values(), *axes.outputs.values())}
    used = used | set(axes.optional.values()) | set(operator.settings)
    return {name: names[name] for name in parameters_of(operator) if name in used and name != "shape"}


def _meaning(operator: Operator, axis: str) -> str | None:
    """What the operator says that it counts; without that, the argument or the number that it is."""
    if axis in operator.dims:
        return operator.dims[axis]
    size = axes_of(operator).sizes.get(axis)
    return str(size) if isinstance(size, str | int) else None


def _spec(operator: Operator, name: str, tensor: Tensor) -> TensorSpec:
    if tensor.dtype not in DTYPES:
        raise InputError(f"{operator.name}: {name} is {tensor.dtype}, a dtype that flashinfer-bench doesn't have")
    return TensorSpec(shape=tensor.axes, dtype=tensor.dtype)


def _name(operator: Operator, bound: Bound, constants: Mapping[str, Any]) -> str:
    """`rms_norm_H7168`: the constant axes that are arguments, and settings that differ from their defaults."""
    constant = {axis: size for axis, size in axes_of(operator).sizes.items() if axis not in bound.var}
    parts = [f"{axis}{bound.sizes[axis]}" for axis, size in constant.items() if isinstance(size, str | Entry)]
    rank = sum(axis[0] == "T" and axis[1:].isdigit() for axis in bound.var)
    parts += [f"rank{rank + 1}"] if rank else []
    defaults = {name: each.default for name, each in parameters_of(operator).items()}
    for name, value in constants.items():
        if name not in constant.values() and value != defaults[name]:
            parts.append(f"{name}{'-'.join(map(str, value)) if isinstance(value, list) else value}")
    whole = "_".join([operator.name, *parts])
    safe = re.sub(r"[^A-Za-z0-9_.+-]", "-", whole)
    if safe == whole and len(whole) <= _LONGEST:
        return whole
    key = msgspec.json.encode([operator.name, parts, dict(constants)], order="deterministic")
    return f"{safe[: _LONGEST - 9]}_{sha256(key).hexdigest()[:8]}"


def _model_arguments(operator: Operator, candidate: str, text: str) -> set[str] | None:
    """What the constructor of a candidate's class names; None where the candidate is a function."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise InputError(f"{candidate}: its text is no Python: {error}: no solution") from error
    if operator.name in {name for node in body for name in _names(node)}:
        return None
    model = next((node for node in body if isinstance(node, ast.ClassDef) and node.name == "Model"), None)
    if model is None:
        raise InputError(f"{candidate}: no function {operator.name} and no class Model stands in it: no solution")
    made = next((node for node in model.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"), None)
    return set() if made is None else {each.arg for each in (*made.args.args, *made.args.kwonlyargs)} - {"self"}


def _names(node: ast.stmt) -> set[str]:
    """What a statement at the top of a module gives a name."""
    match node:
        case ast.FunctionDef(name=name):
            return {name}
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {each.asname or each.name for each in names}
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
