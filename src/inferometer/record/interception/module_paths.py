"""The path of each module in its model, as the model's attributes have it.

A call is recorded as a range with the text that engines give to layerwise NVTX ranges, `{'Module': 'Model.layers.0'}`,
which the analyses read as a module's real path (`names.module_paths.module_of_range`). The profiler's own form,
`nn.Module: Linear_3`, has no path.
"""

import re
import weakref
from typing import Any

_CLASS = re.compile(r"[A-Z]\w*")
_COMPILED = re.compile(r"(?:^|\.)_orig_mod(?=\.|$)")  # the attribute of what torch.compile wraps


class ModulePaths:
    """Texts of modules by the outermost module in which they were first called; modules are kept weakly."""

    def __init__(self) -> None:
        self._texts: dict[int, tuple[Any, str]] = {}

    def text(self, module: Any, outermost: Any) -> str:
        """The range's text of a module that is called within `outermost`, or is that."""
        found = self._texts.get(id(module))
        if found is not None and found[0]() is module:
            return found[1]
        self._learn(outermost)
        found = self._texts.get(id(module))
        if found is None or found[0]() is not module:
            self._learn(module)  # it isn't registered in the outermost one
        return self._texts[id(module)][1]

    def _learn(self, root: Any) -> None:
        """What was known as a part of another model stays that, when it is called alone."""
        model = _model_name(root)
        for path, module in root.named_modules():
            known = self._texts.get(id(module))
            is_known = known is not None and known[0]() is module
            if is_known and not path:
                continue
            whole = ".".join(filter(None, (model, _COMPILED.sub("", path).lstrip("."))))
            self._texts[id(module)] = weakref.ref(module), text_of(whole)


def text_of(path: str) -> str:
    """The range's text of a module with this path."""
    return f"{{'Module': {path!r}}}"


def _model_name(root: Any) -> str:
    """The class of the model, where it can be known from an attribute; `top` else, as engines have it."""
    inner = getattr(root, "_orig_mod", root)
    name = type(inner).__name__
    return name if _CLASS.fullmatch(name) else "top"
