"""A candidate: one Python file with a function named as the operator, or with a class `Model` as published ones have.

The function takes the operator's tensors in their order and its settings as keywords. `Model` takes those of the call's
arguments that its constructor names, and its `forward` the tensors by name: the contract of Atrex-Bench.
Runs in the candidate's own process only: loading runs its code.
"""

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

MODULE = "candidate"
_CLASS = "Model"

Call = Callable[[Mapping[str, Any], Mapping[str, Any]], Any]
"""Tensors by name, and the arguments of the call: what the candidate returns."""


class BadCandidate(Exception):
    """A file that can't be used; the message says why."""


def load_candidate(path: Path, name: str, settings: Sequence[str]) -> Call:
    """How to call the candidate for the operator `name`; of a call's arguments it gets those named in `settings`.

    Raises:
        BadCandidate: It has neither the function nor the class.
        Exception: Whatever its code raises.
    """
    call = find_call(load_module(path), name, settings)
    if call is None:
        raise BadCandidate(f"expected a function {name} or a class {_CLASS} in it, found neither")
    return call


def find_call(module: ModuleType, name: str, settings: Sequence[str]) -> Call | None:
    """How to call the function or the class of a candidate; None where it has neither."""
    function = getattr(module, name, None)
    if callable(function):
        return as_call(function, settings)
    model = getattr(module, _CLASS, None)
    if inspect.isclass(model):
        return lambda tensors, args: _construct(model, args).forward(**tensors)
    return None


def as_call(function: Callable[..., Any], settings: Sequence[str]) -> Call:
    """A function that takes tensors in their order, and settings as keywords."""
    return lambda tensors, args: function(*tensors.values(), **{each: args[each] for each in settings if each in args})


def load_module(path: Path) -> ModuleType:
    """Run a candidate's file, as a module called `MODULE`."""
    spec = importlib.util.spec_from_file_location(MODULE, path)
    if spec is None or spec.loader is None:
        raise BadCandidate("expected a Python file, whose name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    spec.loader.exec_module(module)
    return module


def _construct(model: Any, args: Mapping[str, Any]) -> Any:
    named = inspect.signature(model).parameters
    takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in named.values())
    return model(**{name: value for name, value in args.items() if takes_any or name in named})
