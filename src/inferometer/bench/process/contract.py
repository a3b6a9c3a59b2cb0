"""What an operator asks of a candidate, as far as the candidate's process knows it: names, and no answer.

What was returned is put in the contract's order here, without running any code of what was returned: a mapping or a
list of a type of its own could compute as it is read, after the clock stopped.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Made = Sequence[tuple[str, str, Sequence[int]]]
"""Of outputs whose memory a candidate may be given: name, dtype, shape."""


class BadAnswer(Exception):
    """What a kernel returned is no answer; the message says why."""


@dataclass(frozen=True)
class Contract:
    """Of one operator.

    Attributes:
        name: Of the operator.
        settings: Arguments of a call that a function takes too.
        defaults: Values of settings that a call may leave out.
        outputs: Names, in order.
        updates: Inputs that production updates in place, and the output that holds the result.
    """

    name: str
    settings: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    updates: Mapping[str, str] = field(default_factory=dict)

    def in_order(self, found: Any, tensors: Mapping[str, Any]) -> list[Any]:
        """Outputs in their order: by name, by place, or those left in the inputs that the contract updates.

        Raises:
            BadAnswer: Names that aren't the contract's, or nothing where no input holds the answer.
        """
        if isinstance(found, dict):
            return self._by_name(found)
        if isinstance(found, tuple):
            given = list(tuple.__iter__(found))
        elif isinstance(found, list):
            given = list(list.__iter__(found))
        else:
            given = [] if found is None else [found]
        updated = {output: tensors[name] for name, output in self.updates.items() if name in tensors}
        rest = [name for name in self.outputs if name not in updated]
        if updated and len(given) == len(rest):
            named = {**dict(zip(rest, given, strict=True)), **updated}
            return [named[name] for name in self.outputs]
        if found is None:
            raise BadAnswer(f"expected {_listed(rest)}, found None: {self._why_not_none()}")
        return given

    def _by_name(self, found: dict[Any, Any]) -> list[Any]:
        names = list(dict.__iter__(found))
        if any(type(name) is not str for name in names):
            raise BadAnswer(f"expected outputs by name ({_listed(self.outputs)}), found keys that aren't texts")
        if sorted(names) != sorted(self.outputs):
            raise BadAnswer(f"expected outputs called {_listed(self.outputs)}, found {_listed(names) or 'none'}")
        return [dict.__getitem__(found, name) for name in self.outputs]

    def _why_not_none(self) -> str:
        if not self.updates:
            return "this operator updates no input in place"
        return f"only {_listed(self.updates)} may hold an output in place"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(name[:60] for name in names)
