"""How a candidate's function or class is called, by the names that its parameters have.

A function gets tensors in their order and settings as keywords. Where it has parameters named as outputs, it is given
memory for these, as flashinfer-bench's destination passing has it, and may return nothing. A class is made of the
arguments that its constructor names; its `forward` gets tensors by name, or in their order where it calls them
otherwise, as KernelBench's do.
"""

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from inferometer.bench.process.contract import Contract, Made

Call = Callable[[Mapping[str, Any], Mapping[str, Any], Made], Any]
"""Tensors by name, the arguments of the call, and outputs whose memory may be asked for: what the candidate returns."""

_KINDS = inspect.Parameter
_NAMED = (_KINDS.POSITIONAL_OR_KEYWORD, _KINDS.KEYWORD_ONLY)


class BadCandidate(Exception):
    """A file that can't be used; the message says why."""


def as_call(function: Callable[..., Any], settings: Collection[str]) -> Call:
    """A function that takes tensors in their order, and settings as keywords."""
    return lambda tensors, args, _: function(
        *tensors.values(), **{each: args[each] for each in settings if each in args}
    )


class FunctionCall:
    """A function.

    Args:
        function: The candidate's.
        contract: Of the operator.
        is_forward: It is the method of a class: tensors come by name, and settings only where it names them.
    """

    def __init__(self, function: Callable[..., Any], contract: Contract, *, is_forward: bool = False) -> None:
        self._function, self._contract, self._is_forward = function, contract, is_forward
        found = _parameters(function)
        self._names = tuple(name for name, each in found.items() if each.kind in _NAMED)
        self._takes_any = any(each.kind is _KINDS.VAR_KEYWORD for each in found.values())
        needed = {name for name in self._names if found[name].default is _KINDS.empty}
        self._settings = tuple(name for name in contract.settings if not is_forward or name in self._names)
        self._needed = needed.intersection(contract.settings)
        self._outputs = tuple(name for name in contract.outputs if name in self._names)

    def __call__(self, tensors: Mapping[str, Any], args: Mapping[str, Any], made: Made) -> Any:
        defaults = self._contract.defaults
        keywords = {name: args[name] for name in self._settings if name in args}
        keywords |= {name: defaults[name] for name in self._needed if name not in keywords and name in defaults}
        filled = _make(made, [name for name in self._outputs if name not in tensors], tensors)
        if self._is_forward and self._knows(tensors):
            found = self._function(**tensors, **keywords, **filled)
        else:
            found = self._function(*tensors.values(), **keywords, **filled)
        if found is not None or not filled:
            return found
        held = {output: tensors[name] for name, output in self._contract.updates.items() if name in tensors}
        return {**held, **filled}

    def _knows(self, tensors: Mapping[str, Any]) -> bool:
        """Whether it calls all tensors as the contract does; none at other places where it calls some otherwise.

        Raises:
            BadCandidate: It takes them in another order, and calls some otherwise.
        """
        if self._takes_any or set(tensors) <= set(self._names):
            return True
        for place, name in enumerate(self._names[: len(tensors)]):
            if name in tensors and list(tensors).index(name) != place:
                raise BadCandidate(f"forward takes {', '.join(self._names)}: expected {', '.join(tensors)}")
        return False


class ModelCall:
    """A class: an object of it is made for the arguments of a call, and kept while they are the same."""

    def __init__(self, model_type: type[Any], contract: Contract) -> None:
        self._type, self._contract = model_type, contract
        self._args: Mapping[str, Any] | None = None
        self._forward: FunctionCall | None = None

    def __call__(self, tensors: Mapping[str, Any], args: Mapping[str, Any], made: Made) -> Any:
        if self._forward is None or (args is not self._args and args != self._args):
            model = _construct(self._type, {**self._contract.defaults, **args})
            _move(model, tensors)
            self._args, self._forward = args, FunctionCall(model.forward, self._contract, is_forward=True)
        return self._forward(tensors, args, made)


def _construct(model_type: Any, args: Mapping[str, Any]) -> Any:
    import torch

    if model_type.__init__ in (object.__init__, torch.nn.Module.__init__):
        return model_type()
    found = _parameters(model_type)
    takes_any = any(each.kind is _KINDS.VAR_KEYWORD for each in found.values())
    asked = {name for name, each in found.items() if each.kind in _NAMED and each.default is _KINDS.empty}
    if missing := sorted(asked - set(args)):
        raise BadCandidate(f"its constructor asks for {', '.join(missing)}: expected some of {', '.join(args)}")
    return model_type(**{name: value for name, value in args.items() if takes_any or name in found})


def _move(model: Any, tensors: Mapping[str, Any]) -> None:
    """To where the tensors are, with what memory of its own it has."""
    import torch

    device = next((each.device for each in tensors.values()), None)
    if device is not None and isinstance(model, torch.nn.Module):
        model.to(device)


def _make(made: Made, wanted: Collection[str], tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Memory for outputs.

    Raises:
        BadCandidate: The contract doesn't say how large one is.
    """
    if not wanted:
        return {}
    import torch

    known = {name: (dtype, shape) for name, dtype, shape in made}
    if missing := [name for name in wanted if name not in known]:
        raise BadCandidate(f"it asks for the memory of {', '.join(missing)}, whose size only the inputs' values tell")
    device = next(iter(tensors.values())).device
    return {name: torch.empty(known[name][1], dtype=getattr(torch, known[name][0]), device=device) for name in wanted}


def _parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    """By name; none where that is unknown, as of functions of extensions."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}
