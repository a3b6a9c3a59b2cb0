"""The backend `reference`: what the operators themselves declare, slow and obvious, float32 inside."""

from inferometer.backends.backend import Backend, Kernel
from inferometer.backends.torch.catalogue import torch_unavailable
from inferometer.operators import operators, require_operator


def _load(name: str) -> Kernel:
    return require_operator(name).reference


BACKEND = Backend(
    name="reference",
    summary="The operators' own references: what right answers are, not how to be fast.",
    operators=tuple(operators()),
    unavailable=torch_unavailable,
    load=_load,
)
