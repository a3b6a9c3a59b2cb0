"""RMS norm of each row, times a weight, with a gate: multiplied after the norm, or before it.

The gate is an activation of `z`, mostly SiLU. Sources: gate before the norm, Mamba-2 (arXiv:2405.21060); after it,
Gated DeltaNet (arXiv:2412.06464), where a row is one head of one token.

R rows (tokens times heads), H columns.
"""

from math import nan
from typing import TYPE_CHECKING

from inferometer.errors import UnknownName
from inferometer.operators.axes import Axes
from inferometer.operators.catalogue.draws import Draws
from inferometer.operators.catalogue.hard_norms import norm_cases
from inferometer.operators.catalogue.pieces import by_rows
from inferometer.operators.hard_cases import HardCase, HardCases, at_most, filled, no_tokens, scaled, spoiled
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Work

if TYPE_CHECKING:
    from torch import Tensor


def reference(
    x_RH: "Tensor",
    weight_H: "Tensor",
    z_RH: "Tensor",
    *,
    eps: float = 1e-6,
    norm_before_gate: bool = True,
    activation: str = "silu",
) -> "Tensor":
    """All of it in float32, rounded once; `activation` is `silu`, also called `swish`, or `sigmoid`."""
    import torch

    weight32_H = weight_H.float()
    activate = torch.nn.functional.silu if _is_silu(activation) else torch.sigmoid

    def rows(x: "Tensor", z: "Tensor") -> "Tensor":
        x32, gate = x.float(), activate(z.float())
        if not norm_before_gate:
            x32 = x32 * gate
        normed = x32 * (x32.square().mean(-1, keepdim=True) + eps).rsqrt() * weight32_H
        return normed * gate if norm_before_gate else normed

    (out_RH,) = by_rows(rows, x_RH, z_RH, out=(torch.empty_like(x_RH),))
    return out_RH


def inputs(*, rows: int, hidden_size: int, seed: int, device: str = "cpu", **_: object) -> "dict[str, Tensor]":
    """Rows whose scales differ by more than ten times; gates of both signs, some of them almost closed."""
    draw = Draws(seed, device)
    scale_R1 = draw.uniform(rows, 1, low=0.2, high=4.0, dtype="bf16")
    return {
        "x": draw.normal(rows, hidden_size).mul_(scale_R1),
        "weight": draw.norm_weight(hidden_size),
        "z": draw.normal(rows, hidden_size, scale=2.0),
    }


def cost(*, rows: int, hidden_size: int, activation: str = "silu", **_: object) -> Cost:
    """A mean, multiplies by scale, weight and gate, and SiLU's four; eps a row. A sigmoid isn't counted."""
    R, H = rows, hidden_size
    an_element = 8 if _is_silu(activation) else 4
    return Cost(R * (an_element * H + 1), read_bytes=4 * R * H + 2 * H, written_bytes=2 * R * H)


def work(*, rows: int, hidden_size: int, activation: str = "silu", **_: object) -> Work:
    """An element: a square and its sum, two multiplies, the gate; a row: a divide, an add and an rsqrt.

    With t = tanh(z / 2) the sigmoid is (1 + t) / 2: half of z, a multiply-add, and for SiLU a multiply by z; the
    halving goes into the row's scale.
    """
    R, H = rows, hidden_size
    an_element = 8 if _is_silu(activation) else 7
    return Work(
        vector_flops=R * (an_element * H + 2),
        special_ops=R * H + R,
        read_bytes=4 * R * H + 2 * H,
        written_bytes=2 * R * H,
    )


def _is_silu(activation: str) -> bool:
    """Whether the gate is SiLU; otherwise it is a sigmoid."""
    if activation not in ("silu", "swish", "sigmoid"):
        raise UnknownName("activation", activation, ("silu", "swish", "sigmoid"))
    return activation != "sigmoid"


OPERATOR = Operator(
    name="gated_rms_norm",
    summary="Root-mean-square norm of each row, times a weight and an activated gate.",
    dims={"R": "rows: tokens times heads", "H": "columns"},
    axes=Axes(
        op_type="rmsnorm",
        sizes={"R": "rows", "H": "hidden_size"},
        varying=("R",),
        inputs={"x": "R H", "weight": "H", "z": "R H"},
        outputs={"out": "R H"},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("out",),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            *norm_cases("x"),
            HardCase("zeros", "gates of zero", "0 after SiLU, half of the norm after a sigmoid", filled(0.0, "z")),
            HardCase(
                "large numbers",
                "gates wide open and shut",
                "z or 0 after SiLU, 1 or 0 after a sigmoid: exp may overflow on the way",
                scaled(64.0, "z"),
            ),
            HardCase(
                "NaN", "NaN in one gate", "NaN there; in all of its row where the gate comes first", spoiled(nan, "z")
            ),
            no_tokens(rows=0),
        ),
        few=at_most(rows=8),
    ),
    settings=("eps", "norm_before_gate", "activation"),
    tiny=(
        {"rows": 63, "hidden_size": 128, "eps": 1e-6, "norm_before_gate": True, "activation": "silu"},
        {"rows": 5, "hidden_size": 129, "eps": 0.1, "norm_before_gate": False, "activation": "swish"},
        {"rows": 1, "hidden_size": 72, "eps": 1e-6, "norm_before_gate": True, "activation": "sigmoid"},
    ),
)
