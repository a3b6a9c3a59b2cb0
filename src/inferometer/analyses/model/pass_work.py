"""The work of the passes over a model that a phase's steps made: FLOPs and bytes of each of its parts.

From the operator calls of `architectures`. Parts that one kernel fuses move what comes in and what goes out, not what
is between.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.model.roles import Part
from inferometer.architectures import OperatorCall, step_calls

if TYPE_CHECKING:
    from inferometer.architectures import Model

PRODUCTS = frozenset({"matmul", "grouped_matmul"})
"""Operators that read whole matrices."""

_COSTS = ("flops", "weight_bytes", "read_bytes", "written_bytes")
_Values = NDArray[np.float64]


class Sizes(msgspec.Struct, frozen=True):
    """Bytes of an element: what the user says, or an assumption that the result states."""

    weight: float = 2
    activation: float = 2
    kv: float = 2


Costs = Mapping[tuple[Part, int | None], _Values]


class Passes(msgspec.Struct, frozen=True):
    """The passes over the model that a phase's steps made: each decode step one per token, each prefill one.

    `tokens`, `context`: of each pass, None where it isn't known; `unit`: what results are given for, `units` how many
    there were.
    """

    tokens: tuple[int | None, ...]
    context: tuple[int | None, ...]
    unit: str
    units: int

    @classmethod
    def of(cls, rows: pl.DataFrame, phase: str | None) -> "Passes":
        steps = rows.unique("step", maintain_order=True).select("tokens", "context").rows()
        if phase != "decode":
            return cls(tuple(n for n, _ in steps), tuple(context for _, context in steps), "step", len(steps))
        contexts = [None if context is None else context + i for n, context in steps for i in range(n or 1)]
        return cls((1,) * len(contexts), tuple(contexts), "token", len(contexts))

    def costs(self, model: "Model", sizes: Sizes) -> Costs:
        """Each part's costs in each layer, summed over all passes, as `_COSTS` has them; NaN where it isn't known.

        A pass of one token costs a linear function of its context, between the lengths at which windows fill up: those
        are calculated, the rest lies on the lines between them, exactly.
        """
        if self.unit == "step":
            each = [
                _known_costs(model, n, context, sizes) for n, context in zip(self.tokens, self.context, strict=True)
            ]
            return {key: np.sum([one[key] for one in each], axis=0) for key in each[0]}
        known = np.array([context for context in self.context if context is not None], dtype=np.float64)
        ends = {int(known.min()), int(known.max())} if len(known) else {0}
        window = model.sliding_window
        knots = sorted(ends | ({window - 1} if window and min(ends) < window - 1 < max(ends) else set()))
        at = [_costs(model, 1, knot, sizes) for knot in knots]
        far = at[-1] if len(known) else _costs(model, 1, 1, sizes)
        return {key: self._summed(np.array([one[key] for one in at]), far[key], knots, known) for key in at[0]}

    def _summed(self, values: _Values, far: _Values, knots: list[int], known: _Values) -> _Values:
        missing = self.units - len(known)
        sums = np.array([np.interp(known, knots, column).sum() for column in values.T])
        if not missing:
            return sums
        return np.where((values == far).all(axis=0), sums + missing * far, np.nan)


def _known_costs(model: "Model", tokens: int | None, context: int | None, sizes: Sizes) -> Costs:
    """As `_costs`; NaN for what depends on a number that isn't known."""
    one = _costs(model, tokens or 1, context or 0, sizes)
    if tokens is not None and context is not None:
        return one
    other = _costs(model, tokens or 2, 1 if context is None else context, sizes)
    return {key: np.where(values == other[key], values, np.nan) for key, values in one.items()}


def _costs(model: "Model", tokens: int, context: int, sizes: Sizes) -> dict[tuple[Part, int | None], _Values]:
    calls = step_calls(
        model,
        tokens=tokens,
        context=context,
        weight_bytes=sizes.weight,
        activation_bytes=sizes.activation,
        kv_bytes=sizes.kv,
    )
    found: dict[tuple[Part, int | None], _Values] = {}
    for call in calls:
        key = (call.op, call.role), call.layer
        found[key] = found.get(key, np.zeros(len(_COSTS))) + _cost(call)
    return found


def _cost(call: OperatorCall) -> _Values:
    return np.array([call.flops, call.weight_bytes, call.read_bytes, call.written_bytes], dtype=np.float64)


def sum_of(costs: Costs, parts: Sequence[Part], layers: Sequence[int] | None) -> dict[str, float]:
    """FLOPs, weights and bytes moved by a kernel that does `parts`, in some layers or in all; NaN where not known."""
    names = ("flops", "weight_bytes", "moved_bytes")
    chosen = [layer for layer in dict.fromkeys(layer for part, layer in costs if part in parts)
              if layers is None or layer is None or layer in layers]  # fmt: skip
    if not chosen:
        return dict.fromkeys(names, float("nan"))
    sums = np.zeros(len(names))
    for layer in chosen:
        found = [(part[0], costs[part, layer]) for part in parts if (part, layer) in costs]
        flops, weights = sum(cost[0] for _, cost in found), sum(cost[1] for _, cost in found)
        sums += (flops, weights, weights + _activation_bytes([op for op, _ in found], np.array([c for _, c in found])))
    return dict(zip(names, sums.tolist(), strict=True))


def _activation_bytes(ops: Sequence[str], costs: _Values) -> float:
    """What one kernel reads and writes besides weights: of a chain only the ends, a common input once."""
    read, written = costs[:, 2], costs[:, 3]
    if PRODUCTS.issuperset(ops):
        return float(read.max() + written.sum())
    if len(set(ops)) == 1:
        return float(read.sum() + written.sum())
    cached = sum(own for op, own in zip(ops[1:], read[1:], strict=True) if op == "attention")
    return float(read[0] + cached + written[-1])
