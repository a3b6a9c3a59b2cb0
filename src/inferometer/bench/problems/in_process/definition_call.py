"""Calls a function of a definition of flashinfer-bench as an operator: made outputs, names, order.

This file's text is put after a candidate's own, in its process, which can't import this package: `adapters` says how.
"""
# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs


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
        by_name = {**scalars, **dict(zip(given, tensors, strict=True))}
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
                sizes.update(zip(axes, by_name[name].shape, strict=True))
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
            if isinstance(each, (bool, int, float))
            else each
            for each, (_, _, dtype) in zip(found, about["outputs"], strict=True)
        ]

    return call
