"""What a backend declares: which operators it has kernels for, whether it can run here, and how to get them."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from inferometer.errors import UnknownName

Kernel = Callable[..., Any]
"""`kernel(*tensors, **settings)`: called as the operator's reference is, and answers as it does."""


@dataclass(frozen=True)
class DecoderKernel:
    """One operator of a decoder.

    Attributes:
        call: Called as `operators.decoder.contracts.CONTRACTS` says.
        refuses: `refuses(*args, **settings)`: why this call isn't for it, in a few words (`head size 80`); None where
            it takes the call. Cheap: it is asked at every call.
    """

    call: Kernel
    refuses: Callable[..., str | None] = field(default=lambda *args, **settings: None)


@dataclass(frozen=True, eq=False)
class DecoderKernels:
    """The operators of a decoder that one backend has.

    Attributes:
        operators: Names of `CONTRACTS`. Nothing heavy is imported to tell them.
        load: `load(operator)`: imports what that needs.
        unavailable: `unavailable(device)`: why it can't run on `cpu` or `cuda:1` in this very process; None where it
            can.
        prepare: `prepare(device)`: what must be so in the process before a model's libraries are loaded; called when
            a user chose the backend for that device.
    """

    operators: Collection[str]
    load: Callable[[str], DecoderKernel]
    unavailable: Callable[[str], str | None]
    prepare: Callable[[str], None] = field(default=lambda device: None)


def _load_none(name: str) -> Kernel:
    """`load` of a backend that has none of the catalogue's operators."""
    raise UnknownName("kernel", name, ())


@dataclass(frozen=True, eq=False)  # found by identity at every call of a model: comparing fields would cost it time
class Backend:
    """One source of kernels, for the catalogue's operators, a decoder's, or both.

    Attributes:
        name: What a user types: `torch`, `sgl-kernel`.
        summary: Whose kernels these are, in a sentence.
        operators: Names of the catalogue's operators that it has. Nothing heavy is imported to tell them.
        unavailable: `unavailable(device)`: why it can't run on `cpu`, `cuda` or `cuda:1` here, in words for the user;
            None where it can. Imports nothing heavy but torch.
        load: `load(name)`: the kernel of one of the catalogue's operators. Imports what that needs. What the library
            lacks in the version at hand raises `Unavailable`.
        decoder: What it has of a decoder's operators; None: nothing.
        packages: Distributions whose versions are recorded with results.
        settings: How its kernels are made, such as the mode of a compiler: recorded with results.
        interpreted: Its kernels are Triton's, and on a CPU need a process with Triton's interpreter.
        build: `build(name)`: the same kernel as `load`, to be compiled for a GPU that isn't there and not run; None:
            its kernels aren't Triton's, or come compiled.
    """

    name: str
    summary: str
    unavailable: Callable[[str], str | None]
    operators: Collection[str] = ()
    load: Callable[[str], Kernel] = _load_none
    decoder: DecoderKernels | None = None
    packages: tuple[str, ...] = ("torch",)
    settings: Mapping[str, str] = field(default_factory=dict)
    interpreted: bool = False
    build: Callable[[str], Kernel] | None = None
