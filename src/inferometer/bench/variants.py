"""Inputs that are unusual for a shape, but not for production: unequal lengths, unequal experts, rows apart."""

from collections.abc import Iterator, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

from inferometer.operators.operator import Operator

if TYPE_CHECKING:
    from torch import Tensor

SKEWED = 2.0
"""Of `routing_skew`: the most popular of 128 experts is the first choice of six tokens in ten."""

_LENGTHS = "seq_lens"
_EACH, _COMMON = "ctx_lens", "ctx_len"
_COUNTS = ("num_seqs", "batch_size")
_LEAST, _MOST = 1 / 8, 15 / 8  # of the usual length
_APART = 8  # elements between rows: 16 bytes of bf16, so that rows stay aligned to what kernels load at once


def vary(operator: Operator, args: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is unusual, in a word, and arguments of inputs that are so; as many tokens and keys as before."""
    lengths = args.get(_LENGTHS)
    if lengths is not None and len(lengths) > 1 and len(set(lengths)) == 1 and "query_lens" not in args:
        yield "mixed", {**args, _LENGTHS: spread(lengths[0], len(lengths))}
    named = signature(operator.inputs).parameters
    count = next((args[name] for name in _COUNTS if name in args), 1)
    if _EACH in named and args.get(_EACH) is None and count > 1 and args[_COMMON] > 1:
        yield "mixed", {**args, _EACH: spread(args[_COMMON], count)}
    if "routing_skew" in named and "routing_skew" not in args:
        yield "skewed", {**args, "routing_skew": SKEWED}


def spread(length: int, count: int) -> list[int]:
    """Lengths from an eighth to nearly twice of `length`, in no order of size; they add up to count * length."""
    found = [max(1, round(length * (_LEAST + (_MOST - _LEAST) * i / (count - 1)))) for i in range(count)]
    found[-1] += count * length - sum(found)
    return [found[i] for half in (range(0, count, 2), range(1, count, 2)) for i in half]


def lay_apart(tensors: "Mapping[str, Tensor]") -> "dict[str, Tensor]":
    """The same values, with NaN between rows of real numbers; single rows and other tensors as they are."""

    def apart(tensor: "Tensor") -> "Tensor":
        if tensor.dim() < 2 or not tensor.dtype.is_floating_point or tensor.element_size() < 2:
            return tensor
        wide = tensor.new_full((*tensor.shape[:-1], tensor.shape[-1] + _APART), float("nan"))
        wide[..., : tensor.shape[-1]] = tensor
        return wide[..., : tensor.shape[-1]]

    return {name: apart(tensor) for name, tensor in tensors.items()}
