"""Everything below the k-th largest logit of a row becomes -inf: top-k sampling.

T rows, V vocabulary size; the published names of these are seq_len and hidden_size. Six of the published shapes are
narrower than vocabularies are, and name no k: 50 is the default.
"""

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any

from inferometer.operators.axes import Axes
from inferometer.operators.catalogue.draws import Draws
from inferometer.operators.catalogue.pieces import by_rows
from inferometer.operators.hard_cases import (
    HardCase,
    HardCases,
    at_most,
    enlarged,
    filled,
    no_tokens,
    shrunk,
    spoiled,
    zeroed,
)
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Work

if TYPE_CHECKING:
    from torch import Tensor

    from inferometer.operators.hard_cases import Tensors


def reference(logits_TV: "Tensor", *, top_k: int = 50) -> "Tensor":
    """All that equal the k-th largest stay, so there may be more than k. A row of k or fewer stays as it is.

    A NaN counts as larger than any number and stays.
    """
    import torch

    k = min(top_k, logits_TV.shape[1])

    def rows(logits: "Tensor") -> "Tensor":
        kth_t1 = torch.topk(logits, k, -1).values[:, -1:]
        return logits.masked_fill(logits < kth_t1, float("-inf"))

    (out_TV,) = by_rows(rows, logits_TV, out=(torch.empty_like(logits_TV),))
    return out_TV


def inputs(
    *, seq_len: int, hidden_size: int, allowed: int | None = None, seed: int, device: str = "cpu", **_: object
) -> "dict[str, Tensor]":
    """Values that bf16 has, as models with bf16 heads give them: so some are equal to the k-th.

    With `allowed`, every other row has only so many that aren't -inf, as after a grammar's mask.
    """
    import torch

    draw = Draws(seed, device)
    logits_TV = draw.normal(seq_len, hidden_size, scale=2.5).float()
    if allowed is not None:
        shut_V = torch.ones(hidden_size, dtype=torch.bool, device=device)
        shut_V[draw.permutation(hidden_size, "int64")[:allowed]] = False
        logits_TV[::2, shut_V] = float("-inf")
    return {"logits": logits_TV}


def cost(*, seq_len: int, hidden_size: int, **_: object) -> Cost:
    """Comparisons aren't counted, so there is no work."""
    return Cost(0, read_bytes=4 * seq_len * hidden_size, written_bytes=4 * seq_len * hidden_size)


def work(*, seq_len: int, hidden_size: int, top_k: int = 50, **_: object) -> Work:
    """A comparison for each logit, where any can be dropped."""
    elements = seq_len * hidden_size
    return Work(
        vector_flops=elements if hidden_size > top_k else 0, read_bytes=4 * elements, written_bytes=4 * elements
    )


def _masked(tensors: "Tensors", _: Mapping[str, Any]) -> "Tensors":
    logits = tensors["logits"].clone()
    logits[::2] = float("-inf")
    return {"logits": logits}


OPERATOR = Operator(
    name="topk_filter",
    summary="Logits below the k-th largest of their row become -inf.",
    dims={"T": "rows", "V": "vocabulary size"},
    axes=Axes(
        op_type="topk_filter",
        sizes={"T": "seq_len", "V": "hidden_size"},
        varying=("T",),
        inputs={"logits": "T V: fp32"},
        outputs={"out": "T V: fp32"},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("out",),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            HardCase("zeros", "rows of zeros", "zeros: all equal the k-th", zeroed("logits")),
            HardCase("ties", "equal logits", "all stay: they equal the k-th", filled(1.5, "logits")),
            HardCase("masked", "rows of -infinity", "they stay as they are", _masked),
            HardCase("large numbers", "numbers near the type's largest", "exact as ever", enlarged("logits")),
            HardCase("tiny numbers", "tiny numbers", "exact as ever", shrunk("logits")),
            HardCase("infinity", "infinity in one logit", "it stays, and is the largest", spoiled(inf, "logits")),
            no_tokens(seq_len=0),
        ),
        few=at_most(seq_len=4),
        left_out={"NaN": "whether what isn't below the k-th stays, or what is at least as large, decides about NaN"},
    ),
    settings=("top_k",),
    exact=frozenset({"out"}),
    tiny=(
        {"seq_len": 1, "hidden_size": 129},
        {"seq_len": 63, "hidden_size": 40, "top_k": 50},
        {"seq_len": 5, "hidden_size": 1029, "top_k": 1},
        {"seq_len": 4, "hidden_size": 200, "top_k": 50, "allowed": 9},
    ),
)
