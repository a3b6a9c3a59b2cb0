"""An operator that isn't the catalogue's: its reference is somebody else's code, and runs in a process of its own."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from inferometer.operators.operator import Operator
from inferometer.operators.shapes import Catalogue
from inferometer.operators.work import Cost, Work

if TYPE_CHECKING:
    from torch import Tensor


class ForeignOperator(Operator, frozen=True, kw_only=True):
    """One operator of another benchmark.

    Attributes:
        ask: `ask(tensors, args)`: the reference's outputs in their order.
    """

    ask: "Callable[[Mapping[str, Tensor], Mapping[str, Any]], dict[str, Tensor]]"

    def catalogue(self) -> Catalogue:
        """Nothing is published of it."""
        return Catalogue(
            source="", id="", operator=self.name, dtype="", status="foreign", phase="", importance=0.0, profiles=0,
            upstream={}, shapes=(),
        )  # fmt: skip

    def answer(self, tensors: "Mapping[str, Tensor]", args: Mapping[str, Any]) -> "dict[str, Tensor]":
        """The reference's outputs by name."""
        return self.ask(tensors, args)


def no_reference(*tensors: Any, **settings: Any) -> Any:
    """In place of `Operator.reference`: `answer` is asked."""
    raise NotImplementedError("the reference of another benchmark's operator runs in its own process")


def no_cost(**args: Any) -> Cost:
    """Nothing is published of it."""
    return Cost(None, 0, None)


def only_written(bytes_of: Callable[[Mapping[str, Any]], int]) -> Callable[..., Work]:
    """`Operator.work` of which only the bytes that a call writes are known: no bound is made of it."""
    return lambda **args: Work(written_bytes=bytes_of(args))
