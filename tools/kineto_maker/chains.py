"""What is open around a call, recognised by name: the whole chain, or the innermost of each kind."""

from __future__ import annotations

from typing import Final, NamedTuple

from .nodes import Frame, Mark, Op, Open

_MODULE: Final = "nn.Module: "


class Site(NamedTuple):
    """Where a launch was queued: the innermost op, frame and module that are open."""

    op: str | None
    frame: str | None
    module: str | None


class Chain(NamedTuple):
    """Everything that is open around a call, outermost first. A module (`LlamaMLP_3`) is among the frames, too."""

    ops: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()

    @property
    def site(self) -> Site:
        """Its innermost parts."""
        op, module, frame = (names[-1] if names else None for names in self[:3])
        return Site(op, frame, module)


def chain_of(around: tuple[Open, ...], *, stack: bool) -> Chain:
    """The names of what is open; without frames and modules where no stack is recorded."""
    frames = tuple(node.name for node in around if isinstance(node, Frame)) if stack else ()
    return Chain(
        tuple(node.name for node in around if isinstance(node, Op)),
        tuple(name[len(_MODULE) :] for name in frames if name.startswith(_MODULE)),
        frames,
        tuple(node.name for node in around if isinstance(node, Mark)),
    )
