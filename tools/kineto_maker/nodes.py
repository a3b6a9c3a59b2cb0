"""The parts of a step's program: what the host does, in order and nested, and the device work that it queues.

A program is a tree of these. `player` gives every node a time, `kineto_text` turns the timed nodes into text.
Nodes compare by identity, so that text made once for a node can be looked up by the node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

BF16: Final = "c10::BFloat16"
FP32: Final = "float"
INT32: Final = "int"
INT64: Final = "long int"

MAIN_STREAM: Final = 7
NCCL_STREAM: Final = 20


class Tensor(NamedTuple):
    """A tensor argument; contiguous where no strides are given."""

    dims: tuple[int, ...]
    dtype: str = BF16
    strides: tuple[int, ...] | None = None


Argument: TypeAlias = Tensor | tuple[int, ...] | str | int | None
"""A tensor, a ScalarList, a Scalar (its text, a number or a bool), or an argument that was left out."""


@dataclass(frozen=True, eq=False, slots=True)
class Frame:
    """A Python call. An `nn.Module: Linear_3` is a frame as well. A `small` one holds no ops."""

    name: str
    body: tuple[Node, ...] = ()
    small: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Op:
    """A framework operator. Only an op that autograd may see has a sequence number (0 without a graph)."""

    name: str
    arguments: tuple[Argument, ...] = ()
    body: tuple[Node, ...] = ()
    autograd: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Mark:
    """A range that the engine names: one step."""

    name: str
    body: tuple[Node, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Call:
    """A runtime call that queues nothing and returns at once."""

    api: str


@dataclass(frozen=True, eq=False, slots=True)
class Wait:
    """A runtime call that returns when all queued device work has ended."""

    api: str


@dataclass(frozen=True, eq=False, slots=True)
class Busy:
    """Host work without an event of its own. Only faults have it."""

    ns: int


@dataclass(frozen=True, eq=False, slots=True)
class Join:
    """`stream` waits for what `other` has queued so far: an event recorded and waited for."""

    stream: int
    other: int


@dataclass(frozen=True, eq=False, slots=True)
class Launch:
    """A kernel and the call that queues it. `ns` is its usual duration."""

    api: str
    kernel: str
    ns: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    shared_bytes: int
    stream: int = MAIN_STREAM


@dataclass(frozen=True, eq=False, slots=True)
class Copy:
    """A memcpy over PCIe, from or to pinned host memory."""

    kind: Literal["HtoD", "DtoH"]
    bytes: int


@dataclass(frozen=True, eq=False, slots=True)
class Fill:
    """A memset."""

    bytes: int


@dataclass(frozen=True, eq=False, slots=True)
class Replay:
    """One call that starts a whole CUDA graph: the kernels in order, as nodes 1, 2... of graph `graph_id`."""

    graph_id: int
    launches: tuple[Launch, ...]


Work: TypeAlias = Launch | Copy | Fill
Node: TypeAlias = Frame | Op | Mark | Call | Wait | Busy | Join | Work | Replay


def launches_in(nodes: tuple[Node, ...]) -> tuple[Launch, ...]:
    """The kernels that the nodes queue, in order."""
    found: list[Launch] = []
    for node in nodes:
        if isinstance(node, Launch):
            found.append(node)
        elif isinstance(node, Frame | Op | Mark):
            found.extend(launches_in(node.body))
    return tuple(found)
