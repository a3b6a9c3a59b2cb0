"""What a backend declares: which operators it has kernels for, whether it can run here, and how to get them."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

Kernel = Callable[..., Any]
"""`kernel(*tensors, **settings)`: called as the operator's reference is, and answers as it does."""


@dataclass(frozen=True)
class Backend:
    """One source of kernels for the catalogue's operators.

    Attributes:
        name: What a user types: `torch`, `sgl-kernel`.
        summary: Whose kernels these are, in a sentence.
        operators: Names of the operators that it has. Nothing heavy is imported to tell them.
        unavailable: `unavailable(device)`: why it can't run on `cpu`, `cuda` or `cuda:1` here, in words for the user;
            None where it can. Imports nothing heavy but torch.
        load: `load(name)`: the kernel of one of its operators. Imports what that needs. What the library lacks in the
            version at hand raises `Unavailable`.
        packages: Distributions whose versions are recorded with results.
        settings: How its kernels are made, in words, such as the mode of a compiler: recorded with results.
        interpreted: Its kernels are Triton's, and on a CPU need a process with Triton's interpreter.
    """

    name: str
    summary: str
    operators: Collection[str]
    unavailable: Callable[[str], str | None]
    load: Callable[[str], Kernel]
    packages: tuple[str, ...] = ("torch",)
    settings: Mapping[str, str] = field(default_factory=dict)
    interpreted: bool = False
