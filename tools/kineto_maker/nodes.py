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
SIDE_STREAM: Final = 24  # of the second thread
SECOND_STREAM: Final = 28  # of the engine's thread, where it has one


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
    """A framework operator. Only an op that autograd may see has a sequence number (0 without a graph).

    `details` are further arguments by name, such as Inductor records with its Triton kernels.
    """

    name: str
    arguments: tuple[Argument, ...] = ()
    body: tuple[Node, ...] = ()
    autograd: bool = False
    details: tuple[tuple[str, str | int], ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Mark:
    """A range that the engine names, a step among others, or Inductor: what it compiled."""

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
    stream: int = MAIN_STREAM


@dataclass(frozen=True, eq=False, slots=True)
class Fill:
    """A memset."""

    bytes: int


@dataclass(frozen=True, eq=False, slots=True)
class Capture:
    """Host work whose launches become the nodes of a graph: the calls are made, the device does nothing."""

    body: tuple[Node, ...]


class Captured(NamedTuple):
    """A kernel of a captured program with what was open around its call, outermost first."""

    launch: Launch
    around: tuple[Open, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Replay:
    """One call that starts a whole CUDA graph: the kernels in order, as nodes 1, 2... of graph `graph_id`."""

    graph_id: int
    batch: int
    kernels: tuple[Captured, ...]


Open: TypeAlias = Frame | Op | Mark
"""What can be open around a call."""
Work: TypeAlias = Launch | Copy | Fill
Node: TypeAlias = Open | Call | Wait | Busy | Join | Work | Capture | Replay


def launches_in(nodes: tuple[Node, ...], around: tuple[Open, ...] = ()) -> tuple[Captured, ...]:
    """The kernels that the nodes queue, in order."""
    found: list[Captured] = []
    for node in nodes:
        if isinstance(node, Launch):
            found.append(Captured(node, around))
        elif isinstance(node, Frame | Op | Mark):
            found.extend(launches_in(node.body, (*around, node)))
    return tuple(found)
