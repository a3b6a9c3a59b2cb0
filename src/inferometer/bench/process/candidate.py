"""A candidate: one Python file with a function named as the operator, or a class `Model` or `ModelNew` (`calling.py`).

It may import files next to it. One with relative imports is loaded as a module of its package, and `__init__.py` as the
package. Runs in the candidate's own process only: loading runs its code.
"""

import ast
import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType

from inferometer.bench.process.calling import BadCandidate, Call, FunctionCall, ModelCall
from inferometer.bench.process.contract import Contract
from inferometer.errors import clean

MODULE = "candidate"
_CLASSES = ("ModelNew", "Model")
_PACKAGE = "__init__.py"
_SHOWN = 8  # names


def load_candidate(path: Path, contract: Contract) -> Call:
    """How to call the candidate.

    Raises:
        BadCandidate: It has neither the function nor the class.
        Exception: Whatever its code raises.
    """
    return call_of(load_module(path), contract)


def call_of(module: ModuleType, contract: Contract) -> Call:
    """How to call the function or the class of a candidate.

    Raises:
        BadCandidate: It has neither; the message lists what it defines.
    """
    function = getattr(module, contract.name, None)
    if callable(function):
        return FunctionCall(function, contract)
    model = next((each for name in _CLASSES if inspect.isclass(each := getattr(module, name, None))), None)
    if model is None:
        classes, found = " or ".join(reversed(_CLASSES)), _defined_by(module)
        raise BadCandidate(f"expected a function {contract.name} or a class {classes} in it, found {found}")
    return ModelCall(model, contract)


def load_module(path: Path) -> ModuleType:
    """Run a candidate's file: as a module called `MODULE`, or as what it is in its package."""
    root, names = path.parent, [] if path.name == _PACKAGE else [path.stem]
    while (root / _PACKAGE).is_file() and root.name.isidentifier():
        root, names = root.parent, [root.name, *names]
    sys.path[:0] = dict.fromkeys((str(path.parent), str(root)))  # as Python does for a script, and for a package
    if names and root != path.parent and (path.name == _PACKAGE or _is_relative(path)):
        return importlib.import_module(".".join(names))
    below = [str(path.parent)] if path.name == _PACKAGE else None
    spec = importlib.util.spec_from_file_location(MODULE, path, submodule_search_locations=below)
    if spec is None or spec.loader is None:
        raise BadCandidate("expected a Python file, whose name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    spec.loader.exec_module(module)
    return module


def _defined_by(module: ModuleType) -> str:
    """The names of what a candidate defines and could be called."""
    own = sorted(
        each for each, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", None) == module.__name__ and not each.startswith("_")
    )  # fmt: skip
    return clean(", ".join(own[:_SHOWN])) or "neither"


def _is_relative(path: Path) -> bool:
    """Whether it imports from its own package; what isn't Python says so when it is run."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return False
    return any(isinstance(each, ast.ImportFrom) and each.level for each in ast.walk(tree))
