"""Calls a model of KernelBench as an operator: its inputs, its weights by a seed, its outputs.

This file's text is put after a candidate's own, in its process, which can't import this package: `adapters` says how.
"""
# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs


def _make_call(about, namespace):
    import importlib.util

    import torch

    def load(path):
        spec = importlib.util.spec_from_file_location("problem", path)
        if spec is None or spec.loader is None:
            raise ImportError(path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return vars(module)

    problem = load(about["problem"]) if about["problem"] else namespace
    model_type = namespace.get(about["entry"])
    if not isinstance(model_type, type):
        raise ImportError("expected a class " + about["entry"] + " in " + about["file"] + ", found none")
    made = {}  # type: ignore[var-annotated]  # typing would be in the candidate's namespace

    def call(*tensors, kinds, model_seed, want):
        if want == "inputs":
            return drawn(int(tensors[0]))
        values = [plain(tensor, kind) for tensor, kind in zip(tensors, kinds, strict=True)]
        found = model(model_seed, tensors)(*values)
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        outputs = [torch.as_tensor(each) if isinstance(each, (bool, int, float)) else each for each in found]
        return tuple(each.contiguous().clone() for each in outputs) if about["copies"] else tuple(outputs)

    def drawn(seed):
        torch.manual_seed(seed)
        values = list(problem["get_inputs"]())
        kinds = [name_of(value) for value in values]
        pairs = zip(values, kinds, strict=True)
        tensors = [value.detach().clone() if kind == 0 else torch.tensor(value) for value, kind in pairs]
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
