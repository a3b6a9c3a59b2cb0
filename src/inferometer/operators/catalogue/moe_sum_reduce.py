"""The last step of a mixture of experts: the outputs of a token's experts, already weighted, added and scaled.

T tokens, k experts per token, H hidden size.
"""

from math import inf, nan
from typing import TYPE_CHECKING

from inferometer.operators.axes import Axes
from inferometer.operators.catalogue.draws import Draws
from inferometer.operators.catalogue.pieces import by_rows
from inferometer.operators.hard_cases import HardCase, HardCases, at_most, enlarged, no_tokens, shrunk, spoiled, zeroed
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Work

if TYPE_CHECKING:
    from torch import Tensor

_EXPERTS = 128  # of the router whose weights the inputs carry


def reference(expert_outputs_TkH: "Tensor", *, routed_scaling_factor: float = 1.0) -> "Tensor":
    """Added and scaled in float32, rounded once."""
    import torch

    T, _, H = expert_outputs_TkH.shape

    def rows(outputs: "Tensor") -> "Tensor":
        return outputs.float().sum(1) * routed_scaling_factor

    empty_TH = torch.empty(T, H, dtype=expert_outputs_TkH.dtype, device=expert_outputs_TkH.device)
    (out_TH,) = by_rows(rows, expert_outputs_TkH, out=(empty_TH,))
    return out_TH


def inputs(
    *, token_count: int, top_k: int, hidden_size: int, seed: int, device: str = "cpu", **_: object
) -> "dict[str, Tensor]":
    """Each expert's output carries its router weight, so the shares of a token's experts differ."""
    draw = Draws(seed, device)
    weight_Tk, _ids = draw.routing(token_count, max(_EXPERTS, top_k), top_k)
    outputs_TkH = draw.normal(token_count, top_k, hidden_size, scale=2.0)
    return {"expert_outputs": outputs_TkH.mul_(weight_Tk[..., None].to(outputs_TkH.dtype))}


def cost(*, token_count: int, top_k: int, hidden_size: int, **_: object) -> Cost:
    """Sums of one less than k, and a multiply by the factor."""
    T, k, H = token_count, top_k, hidden_size
    return Cost(T * k * H, read_bytes=2 * T * k * H, written_bytes=2 * T * H)


def work(
    *, token_count: int, top_k: int, hidden_size: int, routed_scaling_factor: float = 1.0, **_: object
) -> Work:  # fmt: skip
    """An element of the result: k - 1 adds, and a multiply unless the factor is 1."""
    T, k, H = token_count, top_k, hidden_size
    operations = k - 1 + (routed_scaling_factor != 1.0)
    return Work(vector_flops=T * H * operations, read_bytes=2 * T * k * H, written_bytes=2 * T * H)


OPERATOR = Operator(
    name="moe_sum_reduce",
    summary="Sum of the outputs of each token's experts, times a constant.",
    dims={"T": "tokens", "k": "experts per token", "H": "hidden size"},
    axes=Axes(
        op_type="moe_reduce",
        sizes={"T": "token_count", "k": "top_k", "H": "hidden_size"},
        varying=("T",),
        inputs={"expert_outputs": "T k H"},
        outputs={"out": "T H"},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("out",),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            HardCase("zeros", "tokens of zeros", "zeros", zeroed("expert_outputs")),
            HardCase(
                "large numbers", "large numbers", "their sum, which the type has", enlarged("expert_outputs", room=64.0)
            ),
            HardCase("tiny numbers", "tiny numbers", "their sum, which the type has", shrunk("expert_outputs")),
            HardCase("NaN", "NaN of one expert", "NaN there alone", spoiled(nan, "expert_outputs")),
            HardCase("infinity", "infinity of one expert", "infinity there alone", spoiled(inf, "expert_outputs")),
            no_tokens(token_count=0),
        ),
        few=at_most(token_count=8),
    ),
    settings=("routed_scaling_factor",),
    tiny=(
        {"token_count": 1, "top_k": 8, "hidden_size": 128, "routed_scaling_factor": 1.0},
        {"token_count": 63, "top_k": 3, "hidden_size": 72, "routed_scaling_factor": 2.5},
        {"token_count": 5, "top_k": 1, "hidden_size": 129, "routed_scaling_factor": 1.0},
    ),
)
