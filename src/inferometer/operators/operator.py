"""What an operator declares: meaning, inputs, a slow answer, what it costs, what bounds are made of, tolerance."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from inferometer.operators.axes import Axes
from inferometer.operators.hard_cases import HardCases
from inferometer.operators.shapes import Catalogue, Shape, read_catalogue
from inferometer.operators.work import Cost, Work

if TYPE_CHECKING:
    from torch import Tensor

    from inferometer.operators.hard_cases import LeftOpen

TOLERANCE: Mapping[str, float] = {
    "fp32": 1e-5,
    "tf32": 1e-3,
    "fp16": 2e-3,
    "bf16": 1e-2,
    "fp8": 6e-2,  # one unit in the last of three bits is up to 12 % of a value, and half of that on average
}
"""Norm of the error over the norm of the answer, by the dtype of an output. Integers are exact."""


Judge = Callable[[Sequence[Any], Mapping[str, Any]], list[Any]]
"""What a candidate returned, and what `answer` gave: a check of every output (`bench/comparison.py`)."""


class Operator(msgspec.Struct, frozen=True):
    """One operator of the catalogue.

    Attributes:
        name: As the catalogue has it.
        summary: What it computes, in a sentence.
        dims: The letters of the tensors' shapes, and what they count.
        axes: The tensors' sizes and dtypes by the arguments; None: shapes and results of it can't be exchanged.
        inputs: `inputs(*, seed, device, **args)` draws the tensors of a call, by the names of the published contract
            and in its order. The same seed gives the same tensors on the same device.
        reference: `reference(*tensors, **settings)`: the slow, obvious answer; float32 inside, the contract's dtypes
            outside, in pieces where the largest shape asks for it.
        outputs: Names of what it returns, in order.
        cost: `cost(**args)`: as published.
        work: `work(**args)`: the least.
        settings: The `args` that the reference takes too: what isn't a size of a tensor.
        tiny: Shapes for tests without a GPU: odd sizes, and a case of each branch.
        updates: Inputs that production updates in place, by name, and the output that holds the result.
        tolerance: By output, where the dtype's usual one is not right; with the reason next to it.
        exact: Outputs that must agree to the bit though they are no integers.
        quantised: Outputs of few bits that round an exactly defined number: nearly all must be that number's.
        judge: In place of comparing numbers, where there is no one right answer.
        job: A file that says how inputs are drawn, of an operator that no process knows by its name.
        left_open: `left_open(found, wanted, tensors, args)`, outputs by name: what is wanted where the contract leaves
            something open, as `found` has it; None: nothing is.
        hard: Inputs on which wrong kernels fail that get usual ones right, with what the contract wants of them.
        package: Where `NAME.json`, the published part, is; another package's operator names its own.
    """

    name: str
    summary: str
    dims: Mapping[str, str]
    inputs: "Callable[..., dict[str, Tensor]]"
    reference: "Callable[..., Tensor | tuple[Tensor, ...]]"
    outputs: tuple[str, ...]
    cost: Callable[..., Cost]
    work: Callable[..., Work]
    tiny: tuple[Mapping[str, Any], ...]
    axes: Axes | None = None
    settings: tuple[str, ...] = ()
    updates: Mapping[str, str] = msgspec.field(default_factory=dict)
    tolerance: Mapping[str, float] = msgspec.field(default_factory=dict)
    exact: frozenset[str] = frozenset()
    quantised: frozenset[str] = frozenset()
    judge: Judge | None = None
    job: Path | None = None
    left_open: "LeftOpen | None" = None
    hard: HardCases = msgspec.field(default_factory=HardCases)
    package: str = "inferometer.operators.catalogue"

    def catalogue(self) -> Catalogue:
        """What is published of it: importance, shapes, times."""
        return read_catalogue(self.name, self.package)

    def settings_of(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """The keywords of the reference."""
        return {name: args[name] for name in self.settings if name in args}

    def answer(self, tensors: "Mapping[str, Tensor]", args: Mapping[str, Any]) -> "dict[str, Tensor]":
        """The reference's outputs by name; `tensors` stay as they are."""
        found = self.reference(*tensors.values(), **self.settings_of(args))
        return dict(zip(self.outputs, found if isinstance(found, tuple) else (found,), strict=True))

    def carried(self, args: Mapping[str, Any]) -> tuple[str, ...]:
        """Which published figures no formula gives, as a random draw decided them: `flops`, `written_bytes`."""
        own = self.cost(**args)
        return tuple(name for name in ("flops", "written_bytes") if getattr(own, name) is None)

    def published_cost(self, shape: Shape) -> Cost:
        """`cost` of a shape; what depends on a random draw is taken from what is published."""
        own, found = self.cost(**shape.args), shape.published
        return Cost(
            found.flops if own.flops is None else own.flops,
            own.read_bytes,
            found.written_bytes if own.written_bytes is None else own.written_bytes,
        )
