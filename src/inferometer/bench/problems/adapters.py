"""What is put behind other people's code so that a process can call it: a function named as the operator.

These texts run in the candidate's process, next to its code, and so know nothing of this package. They only pass
tensors on, make the memory of outputs where a kernel fills them, and put outputs in order.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

_DEFINITION = """

def _make_call(about, namespace):
    import torch

    def find_entry():
        found = namespace.get(about["entry"])
        if found is None and about["module"]:
            import importlib
            found = getattr(importlib.import_module(about["module"]), about["entry"], None)
        if not callable(found):
            raise ImportError("expected a function " + about["entry"] + " in " + about["file"] + ", found none")
        return found

    run = find_entry()

    def call(*tensors, given, scalars):
        by_name = {**scalars, **dict(zip(given, tensors))}
        values = [by_name.get(name) for name in about["inputs"]]
        device = tensors[0].device if tensors else torch.device("cpu")
        if about["fills"]:
            outputs = made(by_name, device)
            run(*values, *outputs)
        else:
            outputs = listed(run(*values), device)
        return tuple(each.clone() for each in outputs) if about["copies"] else tuple(outputs)

    def made(by_name, device):
        sizes = dict(about["sizes"])
        for name, axes in about["axes"].items():
            if isinstance(by_name.get(name), torch.Tensor):
                sizes.update(zip(axes, by_name[name].shape))
        return [
            torch.empty([sizes[axis] for axis in axes], dtype=getattr(torch, dtype), device=device)
            for _, axes, dtype in about["outputs"]
        ]

    def listed(found, device):
        names = [name for name, _, _ in about["outputs"]]
        if isinstance(found, dict):
            missing = [name for name in names if name not in found]
            if missing:
                raise KeyError("expected outputs " + ", ".join(names) + ", found " + ", ".join(map(str, found)))
            found = [found[name] for name in names]
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(found) != len(names):
            return found
        return [
            torch.tensor(each, dtype=getattr(torch, dtype), device=device)
            if isinstance(each, (bool, int, float)) else each
            for each, (_, _, dtype) in zip(found, about["outputs"])
        ]

    return call

"""

_PROBLEM = """

def _make_call(about, namespace):
    import importlib.util

    import torch

    def load(path):
        spec = importlib.util.spec_from_file_location("problem", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return vars(module)

    problem = load(about["problem"]) if about["problem"] else namespace
    model_type = namespace.get(about["entry"])
    if not isinstance(model_type, type):
        raise ImportError("expected a class " + about["entry"] + " in " + about["file"] + ", found none")
    made = {}

    def call(*tensors, kinds, model_seed, want):
        if want == "inputs":
            return drawn(int(tensors[0]))
        values = [plain(tensor, kind) for tensor, kind in zip(tensors, kinds)]
        found = model(model_seed, tensors)(*values)
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        outputs = [torch.as_tensor(each) if isinstance(each, (bool, int, float)) else each for each in found]
        return tuple(each.contiguous().clone() for each in outputs) if about["copies"] else tuple(outputs)

    def drawn(seed):
        torch.manual_seed(seed)
        values = list(problem["get_inputs"]())
        kinds = [name_of(value) for value in values]
        tensors = [value.detach().clone() if kind == 0 else torch.tensor(value)
                   for value, kind in zip(values, kinds)]
        return (torch.tensor(kinds, dtype=torch.int64), *tensors)

    def name_of(value):
        for kind, kinds in enumerate((torch.Tensor, bool, int, float)):
            if isinstance(value, kinds):
                return kind
        raise TypeError("get_inputs gives a " + type(value).__name__ + ": expected tensors and numbers")

    def plain(tensor, kind):
        return tensor if kind == 0 else (bool, int, float)[kind - 1](tensor)

    def model(seed, tensors):
        if seed not in made:
            given = problem["get_init_inputs"]() if "get_init_inputs" in problem else []
            pair = len(given) == 2 and isinstance(given[0], (list, tuple)) and isinstance(given[1], dict)
            args, named = given if pair else (given, {})
            torch.manual_seed(seed)
            made.clear()
            made[seed] = model_type(*args, **named)
            if tensors and isinstance(made[seed], torch.nn.Module):
                made[seed].to(tensors[0].device)
        torch.manual_seed(seed)
        return made[seed]

    return call

"""

_BIND = """
globals()[{name!r}] = _make_call(__import__("json").loads({about!r}), globals())
"""

_REACH = """
import sys
sys.path[:0] = {folders!r}
"""


def adapt_definition(
    name: str,
    *,
    entry: str,
    file: str,
    inputs: Mapping[str, Sequence[str]],
    outputs: Sequence[tuple[str, Sequence[str], str]],
    sizes: Mapping[str, int],
    fills: bool = False,
    copies: bool = False,
    module: str = "",
    folders: Sequence[str] = (),
) -> str:
    """The end of a file whose function `entry` is called with a definition's inputs in their order.

    Args:
        name: What the process looks for.
        entry: Of the code's function.
        file: Where it should be, for errors.
        inputs: Axes of every input by name; none of a plain number.
        outputs: Names, axes and dtypes.
        sizes: Of the axes that are always the same.
        fills: It gets the outputs' memory behind its inputs, and returns nothing.
        copies: What it returns may be a view of an input, or of another output.
        module: Where the function is, if it isn't in the same file.
        folders: Where that module and what it imports are.
    """
    about = {
        "entry": entry,
        "file": file,
        "inputs": list(inputs),
        "axes": {key: list(axes) for key, axes in inputs.items()},
        "outputs": [[key, list(axes), dtype] for key, axes, dtype in outputs],
        "sizes": dict(sizes),
        "fills": fills,
        "copies": copies,
        "module": module,
    }
    reach = _REACH.format(folders=list(folders)) if folders else ""
    return reach + _DEFINITION + _BIND.format(name=name, about=json.dumps(about))


def adapt_problem(name: str, *, entry: str, file: str, problem: str = "", copies: bool = False) -> str:
    """The end of a file whose class `entry` is a model of KernelBench.

    `problem`: the file that makes inputs, where it is another one.
    """
    about: dict[str, Any] = {"entry": entry, "file": file, "problem": problem, "copies": copies}
    return _PROBLEM + _BIND.format(name=name, about=json.dumps(about))
