"""What part a launch plays in a step, as far as its name shows: what steps are compared by.

A role is coarser than a name. A GEMM of another tile, or a compiled kernel of another number, has the same role, so
that steps of other batch sizes are alike. Attention of prefill and of decode are roles of their own.
"""

import re
from collections.abc import Iterable

import msgspec
import numpy as np
from numpy.typing import NDArray

from inferometer.names import KernelName, decode

Flags = NDArray[np.bool_]
_GEMMS = ("gemm", "grouped_gemm", "conv")
_ATTENTION = ("attention", "attention_prefill", "attention_decode", "linear_attention")
_BY_FAMILY = (*_GEMMS, *_ATTENTION, "gemm_epilogue", "attention_combine", "attention_metadata")
_GRAPH = "CUDA graph"
_NUMBER = re.compile(r"\d+")
_EMBEDDING = re.compile(r"embedding|index_select|vectorized gather")
_BACKWARD = re.compile(r"backward|bwd|grad")
_DRAWS = re.compile(r"\barg ?max\b")


class Roles(msgspec.Struct, frozen=True):
    """`names` of the roles, sorted; `of`: the role of each kernel's name. A flag a role says what roles may be.

    `sampling`: chooses tokens. `optimizer`: changes weights. `embedding`: gathers rows. `to_host`, `to_device`: copies.
    `gemm`, `attention`: the work of layers; `prefill` and `decode` are attention that shows its phase, `either` is
    attention that may do both. `graph`: a whole graph, recorded as one launch. `compute`: no copy and no collective.
    """

    names: tuple[str, ...]
    of: dict[str, int]
    sampling: Flags
    optimizer: Flags
    embedding: Flags
    to_host: Flags
    to_device: Flags
    gemm: Flags
    attention: Flags
    prefill: Flags
    decode: Flags
    either: Flags
    graph: Flags
    compute: Flags


def find_roles(kernels: Iterable[str]) -> Roles:
    """The roles of these names; each distinct name is read once."""
    known = {kernel: decode(kernel) for kernel in kernels}
    role_of = {kernel: _role(name) for kernel, name in known.items()}
    names = tuple(sorted(set(role_of.values())))
    number = {role: i for i, role in enumerate(names)}
    example = dict(sorted(((role_of[kernel], known[kernel]) for kernel in sorted(known, reverse=True)), key=_first))
    examples = [example[role] for role in names]

    def flags(wanted: Iterable[bool]) -> Flags:
        return np.fromiter(wanted, dtype=np.bool_, count=len(names))

    return Roles(
        names=names,
        of={kernel: number[role] for kernel, role in role_of.items()},
        sampling=flags(name.family == "sampling" or bool(_DRAWS.search(name.short_name)) for name in examples),
        optimizer=flags(name.family == "optimizer" for name in examples),
        embedding=flags(_gathers_rows(name) for name in examples),
        to_host=flags(name.short_name.startswith("memcpy dtoh") for name in examples),
        to_device=flags(name.short_name.startswith("memcpy htod") for name in examples),
        gemm=flags(name.family in _GEMMS for name in examples),
        attention=flags(name.family in _ATTENTION for name in examples),
        prefill=flags(name.family == "attention_prefill" for name in examples),
        decode=flags(name.family == "attention_decode" for name in examples),
        either=flags(name.family == "attention" for name in examples),
        graph=flags(role == _GRAPH for role in names),
        compute=flags(name.family not in ("memory", "collective") for name in examples),
    )


def _first(pair: tuple[str, KernelName]) -> str:
    return pair[0]


def _role(name: KernelName) -> str:
    if name.short_name.lstrip("[").startswith(_GRAPH):
        return _GRAPH
    if name.family in _BY_FAMILY:
        return str(name.family)
    if name.family == "memory":
        return " ".join(name.short_name.split()[:2])  # a copy's direction, not what memory it was
    return f"{name.family}: {_NUMBER.sub('#', name.short_name)}"


def _gathers_rows(name: KernelName) -> bool:
    is_gather = name.family in ("gather_scatter", "other") and bool(_EMBEDDING.search(name.short_name))
    return is_gather and not _BACKWARD.search(name.short_name)
