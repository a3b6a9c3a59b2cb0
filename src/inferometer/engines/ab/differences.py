"""How far one answer of an operator is from another on the same inputs, and whether that is too far.

Floats: the norm of the difference over that of the first answer, all in float64, is at most the dtype's tolerance: the
coarsest dtype among inputs and answer, since a backend may round where another doesn't. Where it is more, the first
answer's own error is asked for, against plain PyTorch in float64: three times that is allowed, too (sums over many
products, TF32). Values that aren't numbers must be at the same places.

Integers are equal. What the k largest of equal values are, nobody promises for `moe_route`: there, another expert of
exactly the same logit is as good. `argmax` takes the first of equals, and `top_k_top_p` is exact, too.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TOLERANCES = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}
OWN_ERRORS = 3.0
_LET_EQUALS_DIFFER = frozenset({"moe_route"})


@dataclass(frozen=True)
class CallDifference:
    """Of one call. `normalised_error` and `tolerance` are None where the answer is of integers; `failure`: in words."""

    max_error: float | None
    normalised_error: float | None = None
    tolerance: float | None = None
    failure: str | None = None


@dataclass(frozen=True)
class OperatorCallCase:
    """A call of an operator. `own_error`: of the first answer against float64, for each tensor of it; None: unknown."""

    operator: str
    args: Sequence[Any]
    settings: Mapping[str, Any]
    own_error: Callable[[], Sequence[float | None]]


def compare(asked: OperatorCallCase, answer: Any, found: Any) -> CallDifference:
    """`found` next to `answer`: tensors, or tuples of them. The worst of each number, and the first failure."""
    wanted, given = tensors_of(answer), tensors_of(found)
    if len(wanted) != len(given):
        return CallDifference(None, failure=f"{len(given)} tensors instead of {len(wanted)}")
    coarsest = coarsest_tolerance((*tensors_of(asked.args), *tensors_of(asked.settings.values()), *wanted))
    parts = [_compare_one(asked, n, *pair, coarsest) for n, pair in enumerate(zip(wanted, given, strict=True))]
    return CallDifference(
        worst(part.max_error for part in parts),
        worst(part.normalised_error for part in parts),
        worst(part.tolerance for part in parts),
        next((part.failure for part in parts if part.failure), None),
    )


def tensors_of(values: Any) -> list[Any]:
    """The tensors among these, those of tuples and lists within, too."""
    import torch

    if isinstance(values, torch.Tensor):
        return [values]
    if isinstance(values, str | int | float | None):
        return []
    return [tensor for value in values for tensor in tensors_of(value)]


def coarsest_tolerance(tensors: Sequence[Any]) -> float:
    """Of the dtype with the largest; another float is held to that of float32."""
    floats = [str(tensor.dtype).removeprefix("torch.") for tensor in tensors if tensor.is_floating_point()]
    return max((TOLERANCES.get(dtype, TOLERANCES["float32"]) for dtype in floats), default=TOLERANCES["float32"])


def normalised(answer: Any, found: Any) -> float:
    """The norm of the difference over that of `answer` (of `found`, where that is 0): 1 where nothing is alike."""
    off = float((found - answer).norm())
    return off / (float(answer.norm()) or float(found.norm())) if off else 0.0


def _compare_one(asked: OperatorCallCase, number: int, answer: Any, found: Any, coarsest: float) -> CallDifference:
    if found.shape != answer.shape or found.dtype != answer.dtype:
        return CallDifference(None, failure=f"{_described(found)} instead of {_described(answer)}")
    if not answer.is_floating_point():
        return _compare_integers(asked, answer, found)
    answer, found, failure = _numbers(answer, found)
    off = (found - answer).abs()
    error, tolerance = normalised(answer, found), coarsest
    if error > tolerance:
        tolerance = max(tolerance, OWN_ERRORS * (asked.own_error()[number] or 0.0))
    if failure is None and error > tolerance:
        failure = f"error {error:.2g}, {tolerance:.2g} is allowed"
    return CallDifference(float(off.max()) if off.numel() else 0.0, error, tolerance, failure)


def _numbers(answer: Any, found: Any) -> tuple[Any, Any, str | None]:
    """Both in float64 where both are finite, 0 elsewhere; and what is wrong elsewhere."""
    import torch

    finite = torch.isfinite(answer) & torch.isfinite(found)
    alike = finite | (answer == found) | (answer.isnan() & found.isnan())
    wrong = int((~alike).sum())
    failure = f"NaN or infinite, where the other isn't, in {wrong:,} of {answer.numel():,} values" if wrong else None
    return answer.double().where(finite, 0.0), found.double().where(finite, 0.0), failure


def _compare_integers(asked: OperatorCallCase, answer: Any, found: Any) -> CallDifference:
    same = found == answer
    if not bool(same.all()) and asked.operator in _LET_EQUALS_DIFFER:
        same = same | _as_large(asked.args[0], answer, found)
    wrong = int((~same).sum())
    off = (found - answer).abs().where(~same, 0)
    failure = f"{wrong:,} of {answer.numel():,} values differ" if wrong else None
    return CallDifference(float(off.max()) if off.numel() else 0.0, failure=failure)


def _as_large(logits: Any, answer: Any, found: Any) -> Any:
    """Where another index has exactly the same value; nowhere in a row with one twice, or one that isn't there."""
    places = logits.shape[-1]
    inside = (found >= 0) & (found < places)
    ordered = found.sort(-1).values
    valid = inside.all(-1, keepdim=True) & (ordered[..., 1:] != ordered[..., :-1]).all(-1, keepdim=True)
    return valid & (logits.gather(-1, found.clamp(0, places - 1)) == logits.gather(-1, answer))


def _described(tensor: Any) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def worst(values: Iterable[float | None]) -> float | None:
    """The largest; None where all are."""
    return max((value for value in values if value is not None), default=None)
