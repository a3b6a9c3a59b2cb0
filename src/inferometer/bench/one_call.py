"""One call of a candidate: inputs sent, outputs compared, inputs looked at again."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from inferometer.bench.comparison import OutputCheck, compare_outputs
from inferometer.bench.isolation import CandidateProcess
from inferometer.operators.operator import Operator

if TYPE_CHECKING:
    from torch import Tensor

    from inferometer.operators.hard_cases import LeftOpen

    Tensors = Mapping[str, Tensor]


def check_call(
    process: CandidateProcess,
    operator: Operator,
    tensors: "Tensors",
    args: Mapping[str, Any],
    *,
    shape: Mapping[str, Any] | None = None,
    left_open: "LeftOpen | None" = None,
) -> Sequence[OutputCheck]:
    """Every output. `shape`: arguments whose calibrated tolerances hold, where they aren't those of the call.

    Raises:
        CandidateFailed: There was no answer.
    """
    answer = process.answer(tensors, args)
    changed = _changed(operator, tensors, answer.inputs)
    if changed is not None:
        return [OutputCheck(changed, "this input was changed, and is none that production updates in place")]
    wanted = operator.answer(tensors, args)
    outputs = _laid_as_given(operator, answer.outputs, tensors)
    return compare_outputs(operator, outputs, wanted, args if shape is None else shape, tensors, left_open)


def first_wrong(checks: Sequence[OutputCheck]) -> str | None:
    """In words; None where all are right."""
    return next((f"{check.output}: {check.reason}" for check in checks if not check.is_right), None)


def _laid_as_given(operator: Operator, outputs: "Sequence[Tensor]", tensors: "Tensors") -> "Sequence[Tensor]":
    """Outputs that lie as the inputs do that they update are dense enough: there is no other place for them."""
    if len(outputs) != len(operator.outputs):
        return outputs
    apart = {operator.updates[name]: each.stride() for name, each in tensors.items() if name in operator.updates}
    return [
        each.contiguous() if each.stride() == apart.get(name) else each
        for name, each in zip(operator.outputs, outputs, strict=True)
    ]


def _changed(operator: Operator, before: "Tensors", after: "Tensors") -> str | None:
    """The first input that differs, bit for bit."""
    import torch

    for name, tensor in before.items():
        if name in operator.updates:
            continue
        other = after.get(name)
        if other is None or other.shape != tensor.shape or other.dtype != tensor.dtype:
            return name
        own = (each.contiguous().view(-1).view(torch.uint8) for each in (tensor, other))
        if not torch.equal(*own):
            return name
    return None
