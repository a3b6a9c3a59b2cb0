"""Each row divided by its Euclidean length; eps is added to the sum of squares, not to their mean.

Linear attention with a delta rule does that to queries and keys, a head at a time; the published rows are wider.

T rows, H columns.
"""

from typing import TYPE_CHECKING

from inferometer.operators.axes import Axes
from inferometer.operators.catalogue.draws import Draws
from inferometer.operators.catalogue.hard_norms import norm_cases
from inferometer.operators.catalogue.pieces import by_rows
from inferometer.operators.hard_cases import HardCases, at_most, no_tokens
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Work

if TYPE_CHECKING:
    from torch import Tensor


def reference(x_TH: "Tensor", *, eps: float = 1e-6) -> "Tensor":
    """float32 inside; a row of zeros stays zeros."""
    import torch

    def rows(x: "Tensor") -> "Tensor":
        x32 = x.float()
        return x32 * (x32.square().sum(-1, keepdim=True) + eps).rsqrt()

    (out_TH,) = by_rows(rows, x_TH, out=(torch.empty_like(x_TH),))
    return out_TH


def inputs(*, num_tokens: int, hidden_size: int, seed: int, device: str = "cpu", **_: object) -> "dict[str, Tensor]":
    """Rows whose scales differ by more than ten times."""
    draw = Draws(seed, device)
    scale_T1 = draw.uniform(num_tokens, 1, low=0.2, high=4.0, dtype="bf16")
    return {"x": draw.normal(num_tokens, hidden_size).mul_(scale_T1)}


def cost(*, num_tokens: int, hidden_size: int, **_: object) -> Cost:
    """A product with itself, a sum of one less, a multiply by the scale; eps a row, which makes it three an element."""
    T, H = num_tokens, hidden_size
    return Cost(3 * T * H, read_bytes=2 * T * H, written_bytes=2 * T * H)


def work(*, num_tokens: int, hidden_size: int, **_: object) -> Work:
    """An element: a square and its sum, a multiply; an rsqrt a row. The sum can begin at eps."""
    T, H = num_tokens, hidden_size
    return Work(vector_flops=3 * T * H, special_ops=T, read_bytes=2 * T * H, written_bytes=2 * T * H)


OPERATOR = Operator(
    name="l2_norm",
    summary="Each row divided by its Euclidean length.",
    dims={"T": "rows", "H": "columns"},
    axes=Axes(
        op_type="l2norm",
        sizes={"T": "num_tokens", "H": "hidden_size"},
        varying=("T",),
        inputs={"x": "T H"},
        outputs={"out": "T H"},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("out",),
    cost=cost,
    work=work,
    hard=HardCases(
        (*norm_cases("x"), no_tokens(num_tokens=0)),
        few=at_most(num_tokens=8),
    ),
    settings=("eps",),
    tiny=(
        {"num_tokens": 1, "hidden_size": 128},
        {"num_tokens": 63, "hidden_size": 72, "eps": 10.0},
        {"num_tokens": 5, "hidden_size": 1029},
    ),
)
