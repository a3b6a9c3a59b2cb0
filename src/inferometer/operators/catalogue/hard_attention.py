"""Hard cases that the attention operators share: scores that a softmax must take relative to their maximum.

All keys of such a case are equal, so that the right answer is the mean of the values however the scores are rounded:
kernels that scale queries in bf16 first, or take exponentials of base 2, get them as right as others.
"""

from collections.abc import Mapping
from math import nan
from typing import TYPE_CHECKING, Any

from inferometer.operators.hard_cases import HardCase, both, enlarged, filled, shrunk, spoiled, zeroed

if TYPE_CHECKING:
    from torch import Tensor

    from inferometer.operators.hard_cases import Change, Tensors

SCORE = 300.0
"""exp of it overflows float32, exp of its negative is 0."""

LEFT_OPEN = (
    "where the weight of an infinite value is 0, or comes to be, NaN results, which depends on the order of keys"
)
BEYOND = "kernels that multiply what is there by weights of 0 make NaN of it, and engines keep it finite"
KEY = 8.0


def attention_cases(q: str, k: str, v: str, nan_value: "Change") -> tuple[HardCase, ...]:
    """Of inputs by these names; `nan_value` puts a NaN into a value."""
    return (
        HardCase("zeros", "queries of zeros", "the mean of the values that they see", zeroed(q)),
        *(
            HardCase(
                "offset",
                f"equal scores of {sign * SCORE:g}",
                "the mean of the values: scores are taken relative to their maximum",
                equal_scores(q, k, sign),
            )
            for sign in (1, -1)
        ),
        HardCase(
            "large numbers",
            "large values",
            "means of them: what is summed is float32",
            both(filled(0.0, q), enlarged(v, room=2.0, most=2.0**100)),
        ),
        HardCase("tiny numbers", "tiny values", "means of them", both(filled(0.0, q), shrunk(v))),
        HardCase("NaN", "NaN in a query", "NaN in its own row of its own head alone", spoiled(nan, q)),
        HardCase(
            "NaN",
            "NaN in a value",
            "NaN in its column of its heads, for all who see it",
            nan_value,
            left_open=nan_may_spread,
        ),
    )


def nan_may_spread(
    found: "Tensors", wanted: "Tensors", tensors: "Tensors", args: Mapping[str, Any]
) -> "dict[str, Tensor]":
    """`left_open`: who doesn't see a NaN may get it too, in the same column: kernels multiply it by a weight of 0."""
    del tensors, args
    return {
        name: right.where(~(found[name].isnan() & right.isnan().any(0)), found[name]) for name, right in wanted.items()
    }


def equal_scores(q: str, k: str, sign: int) -> "Change":
    """Every query with every key: SCORE or its negative, nearly."""

    def change(tensors: "Tensors", args: Mapping[str, Any]) -> "Tensors":
        size = tensors[q].shape[-1]
        query = sign * SCORE / (KEY * size**0.5)
        return both(filled(query, q), filled(KEY, k))(tensors, args)

    return change
