"""What the adapters of vendor libraries share: what is missing here, constants, what an engine works out once a batch.

An adapter calls a library's function with an operator's contract. It does what an engine does around the call
(allocates the output, views, splits) and refuses what the library can't do with `Unavailable`, never silently.

None of the adapters has run on a GPU yet: they were written from the interfaces of published versions, which their
modules name, and tried against stand-ins of the same signatures.
"""

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from inferometer.errors import Unavailable, UnknownName

if TYPE_CHECKING:
    from torch import Tensor

Loader = Callable[[], Callable[..., Any]]
"""Imports what a kernel needs and gives the kernel."""

_T = TypeVar("_T")

_BATCHES = 2  # whose plans are kept


def missing(library: str, module: str, install: str, *, folder: str | None = None) -> str | None:
    """Why a library can't be imported; None where it can be. Imports nothing.

    Args:
        library: Its name for the user.
        module: The name that it is imported by.
        install: How to get it.
        folder: A folder that its package has, where another package has the same name.
    """
    if find_spec("torch") is None:
        return "torch is not installed: pip install 'inferometer[torch]'"
    spec = find_spec(module)
    if spec is None:
        return f"{library} is not installed: {install}"
    places = list(spec.submodule_search_locations or ())
    if folder and not any((Path(place) / folder).is_dir() for place in places):
        return f"the {module} that is installed is another package, not {library}: {install}"
    return None


def no_gpu(library: str, device: str, vendor: str | None = None) -> str | None:
    """Why its kernels can't run on a device: they need a GPU; `vendor`, "NVIDIA" or "AMD", where it matters whose."""
    import torch

    if not device.startswith("cuda"):
        return f"{library}: its kernels need a GPU, and {device} is none"
    found = "AMD" if torch.version.hip else "NVIDIA"
    if vendor not in (None, found):
        build = "ROCm" if vendor == "AMD" else "CUDA"
        return f"{library}: its kernels need a GPU of {vendor}, and torch is not built for {build}"
    if not torch.cuda.is_available():
        return f"{library}: its kernels need a GPU, and torch finds none"
    index, here = device.removeprefix("cuda").removeprefix(":") or "0", torch.cuda.device_count()
    return None if index.isdigit() and int(index) < here else f"{library}: torch finds no {device} here, of {here}"


def part(module: str, name: str) -> Any:
    """A function or class of a library; a dot in `name` goes deeper.

    Raises:
        Unavailable: The module can't be imported, or lacks it in the version at hand.
    """
    library = module.partition(".")[0]
    try:
        found: Any = import_module(module)
    except (ImportError, OSError) as error:
        raise Unavailable(f"{module} can't be imported: {error}") from error
    try:
        for each in name.split("."):
            found = getattr(found, each)
    except AttributeError as error:
        raise Unavailable(f"{module} has no {name} in the version of {library} that is installed") from error
    return found


def require(holds: bool, reason: str) -> None:
    """Refuse a call that the library can't answer.

    Raises:
        Unavailable: It doesn't hold; the message is `reason`.
    """
    if not holds:
        raise Unavailable(reason)


def require_largest(library: str, dtype: str, asked: float | None, default: float, fixed: float) -> None:
    """Refuse a largest FP8 value other than the one that is built into a library.

    Args:
        library: Its name for the user.
        dtype: The FP8 type's name.
        asked: `fp8_max` of the call; None is the operator's default.
        default: What None stands for.
        fixed: The library's own.
    """
    wanted = default if asked is None else asked
    require(wanted == fixed, f"{library} takes {fixed:g} as the largest value of {dtype}, expected {wanted:g}")


def load_from(loaders: dict[str, Loader], name: str) -> Callable[..., Any]:
    """The kernel of one of a backend's operators.

    Raises:
        UnknownName: It has none for it.
        Unavailable: The library lacks it in the version at hand.
    """
    if name not in loaders:
        raise UnknownName("kernel", name, loaders)
    return loaders[name]()


@lru_cache(maxsize=8)
def ones(device: Any) -> "Tensor":
    """fp32 [1]: the scale of a cache that isn't quantised. Made once, as engines do."""
    import torch

    return torch.ones(1, device=device)


@lru_cache(maxsize=8)
def counted(count: int, device: Any) -> "Tensor":
    """int32 [count]: 0, 1, 2, ...: where sequences of one token each begin. Made once, as engines do."""
    import torch

    return torch.arange(count, dtype=torch.int32, device=device)


def once_a_batch(make: "Callable[..., _T]") -> "Callable[..., _T]":
    """`make(old, *arguments)`, kept for the last batches: engines plan once for all layers of a step.

    What was made is given again only for the same tensor objects, unwritten since, and equal other arguments. So
    whoever calls again with the same tensors times the kernel; whoever gives every call copies of its inputs, as
    `inferometer bench` does, times the planning too. Of tensors made in inference mode torch doesn't count the
    writes: for them it is made every time. `old` is what was made for a batch that isn't kept any more, to be made
    anew, or None.

    Raises:
        RuntimeError: A graph is being captured: it would hold the plan, and replay it for other batches.
    """
    import weakref

    import torch

    kept: list[tuple[list[tuple[weakref.ref[Any], int]], tuple[Any, ...], _T]] = []

    def get(*arguments: Any) -> _T:
        tensors = [each for each in arguments if isinstance(each, torch.Tensor)]
        others = tuple(each for each in arguments if not isinstance(each, torch.Tensor))
        if any(tensor.is_cuda for tensor in tensors) and torch.cuda.is_current_stream_capturing():
            raise RuntimeError("it plans on the host, once a batch: a graph can't hold that")
        if any(tensor.is_inference() for tensor in tensors):
            return make(None, *arguments)
        for stamps, known, made in kept:
            if known == others and _same(stamps, tensors):
                return made
        old = kept.pop(0)[2] if len(kept) >= _BATCHES else None
        made = make(old, *arguments)
        kept.append(([(weakref.ref(tensor), tensor._version) for tensor in tensors], others, made))
        return made

    return get


def _same(stamps: list[tuple[Any, int]], tensors: "list[Tensor]") -> bool:
    """Whether these are the tensors of the stamps, with no write since."""
    return len(stamps) == len(tensors) and all(
        ref() is tensor and version == tensor._version for (ref, version), tensor in zip(stamps, tensors, strict=True)
    )


def longest(starts: "Tensor") -> int:
    """Most tokens of a sequence, from where each begins and the last ends. Waits for the device."""
    return int(starts.diff().max())
