"""SwiGLU's activation: SiLU of the first half of each row times the second half. Source: arXiv:2002.05202, section 2.

T tokens, D columns of the result; a row of the input has 2 D, the gate before the up-projection.
"""

from collections.abc import Mapping, Sequence
from math import inf, nan, prod
from typing import TYPE_CHECKING, Any

from inferometer.operators.axes import Axes, Entry
from inferometer.operators.catalogue.draws import Draws
from inferometer.operators.catalogue.pieces import by_rows
from inferometer.operators.hard_cases import (
    HardCase,
    HardCases,
    enlarged,
    few_rows,
    no_tokens,
    scaled,
    shrunk,
    spoiled,
    zeroed,
)
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Work

if TYPE_CHECKING:
    from torch import Tensor

    from inferometer.operators.hard_cases import Change, Tensors


def reference(x: "Tensor") -> "Tensor":
    """SiLU in float32, rounded to the dtype of `x`, and only then multiplied. `x` is [..., 2 D]."""
    import torch

    def rows(x: "Tensor") -> "Tensor":
        gate, up = x.chunk(2, -1)
        return torch.nn.functional.silu(gate.float()).to(x.dtype) * up

    x_TG = x.reshape(-1, x.shape[-1])
    T, D = x_TG.shape[0], x_TG.shape[1] // 2
    (out_TD,) = by_rows(rows, x_TG, out=(torch.empty(T, D, dtype=x.dtype, device=x.device),))
    return out_TD.reshape(*x.shape[:-1], D)


def inputs(*, shape: Sequence[int], seed: int, device: str = "cpu", **_: object) -> "dict[str, Tensor]":
    """Gates of both signs, wide enough that the curve isn't a line."""
    return {"x": Draws(seed, device).normal(*shape, scale=1.5)}


def cost(*, shape: Sequence[int], **_: object) -> Cost:
    """SiLU's four and a multiply, an element of the result."""
    outputs = prod(shape) // 2
    return Cost(5 * outputs, read_bytes=4 * outputs, written_bytes=2 * outputs)


def work(*, shape: Sequence[int], **_: object) -> Work:
    """An element of the result: with h = gate / 2 it is (h + h tanh(h)) up, a half, a multiply-add and a multiply."""
    outputs = prod(shape) // 2
    return Work(vector_flops=4 * outputs, special_ops=outputs, read_bytes=4 * outputs, written_bytes=2 * outputs)


def _of_half(change: "Change", half: int) -> "Change":
    """Of the gates (0) or of what they multiply (1) alone."""

    def changed(tensors: "Tensors", args: Mapping[str, Any]) -> "Tensors":
        import torch

        halves = list(tensors["x"].chunk(2, -1))
        halves[half] = change({"x": halves[half]}, args)["x"]
        return {"x": torch.cat(halves, -1)}

    return changed


OPERATOR = Operator(
    name="silu_and_mul",
    summary="SiLU of the first half of each row times its second half.",
    dims={"T": "tokens", "W": "last(shape)", "D": "columns of the result"},
    axes=Axes(
        op_type="activation",
        sizes={"W": Entry("shape", -1), "D": lambda shape: shape[-1] // 2},
        varying=(),
        inputs={"x": "... W"},
        outputs={"out": "... D"},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("out",),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            HardCase("zeros", "rows of zeros", "zeros", zeroed("x")),
            HardCase(
                "large numbers",
                "gates wide open and shut",
                "the product of gate and up, or 0: exp may overflow on the way",
                _of_half(scaled(64.0, "x"), 0),
            ),
            HardCase(
                "large numbers",
                "large numbers next to the gates",
                "their products, as long as the type has them",
                _of_half(enlarged("x", room=16.0), 1),
            ),
            HardCase("tiny numbers", "tiny gates", "half of gate times up", _of_half(shrunk("x"), 0)),
            HardCase("NaN", "NaN in one gate", "NaN there alone", _of_half(spoiled(nan, "x"), 0)),
            HardCase("NaN", "NaN next to one gate", "NaN there alone", _of_half(spoiled(nan, "x"), 1)),
            HardCase("infinity", "infinity in one gate", "infinity there alone", _of_half(spoiled(inf, "x"), 0)),
            no_tokens("x"),
        ),
        few=few_rows,
        left_out={"-infinity": "SiLU of it is 0 by its limit, and NaN by its formula"},
    ),
    tiny=(
        {"shape": [1, 256]},
        {"shape": [63, 130]},
        {"shape": [3, 5, 2]},
    ),
)
