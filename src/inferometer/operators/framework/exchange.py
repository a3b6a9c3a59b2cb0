"""What ranks exchange in a collective, and what of it must cross the link of each.

The *message* is the larger of what a rank puts in and gets out: what NCCL's own tests call the size. A link carries the
message times a factor, per direction, whatever the algorithm is, unless a switch reduces on the way (NVLS, multimem).
Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md, which defines none for other collectives.
"""

from fractions import Fraction
from typing import Final

import msgspec
from msgspec.structs import replace

from inferometer.operators.framework.call import Unmodelled
from inferometer.operators.work import Work

EQUAL_SPLITS: Final = "each rank sends as much to every other: the splits aren't recorded"
ONE_LINK: Final = "all ranks are joined by the device's link: between machines the network card binds"
NO_SWITCH: Final = "no switch reduces on the way, as NVLS and multimem do"

TWO_RANKS: Final = "two ranks take part, the least that exchange anything: how many isn't recorded"
_LEAST_RANKS: Final = 2

_PASSES: Final = {  # over the part of the message that is of other ranks; 0: the message goes as a whole, once
    "all_reduce": 2,
    **dict.fromkeys(("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"), 1),
    **dict.fromkeys(("broadcast", "reduce", "send_recv"), 0),
}
_READ_OR_WRITTEN: Final = ("broadcast", "send_recv")  # the one that has it reads it, the others write it


def bus_factor(kind: str, ranks: int) -> Fraction | None:
    """Bytes over the link of a rank, per direction, over the message's; None for kinds without one.

    Args:
        kind: `all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all`, `gather`, `scatter`, `broadcast`, `reduce` or
            `send_recv`.
        ranks: Of the group, 1 or more. A group of one exchanges nothing.
    """
    passes = _PASSES.get(kind)
    if passes is None:
        return None
    if ranks == 1:
        return Fraction(0)
    return Fraction(passes * (ranks - 1), ranks) if passes else Fraction(1)


class Exchange(msgspec.Struct, frozen=True):
    """What one rank exchanges in one collective; None is what isn't recorded.

    `kind`: as of `bus_factor`, or `other`. `kept`: of an all-to-all with uneven splits, the greatest share of what it
    puts in and gets out that may be its own, which crosses no link; None where splits are equal or aren't recorded,
    and `has_splits` says which.
    """

    kind: str
    in_bytes: int | None
    out_bytes: int | None
    ranks: int | None
    kept: tuple[Fraction, Fraction] | None = None
    has_splits: bool = False

    @property
    def message_bytes(self) -> int | None:
        """The larger side."""
        return max((size for size in (self.in_bytes, self.out_bytes) if size is not None), default=None)

    @property
    def link_bytes(self) -> int | None:
        """What crosses the rank's link per direction, rounded down; None where that can't be known."""
        message = self.message_bytes
        if message is None or self.ranks is None:
            return None
        if self.kept is not None:
            sides = zip((self.in_bytes or 0, self.out_bytes or 0), self.kept, strict=True)
            return max(int(size * (1 - own)) for size, own in sides)
        factor = bus_factor(self.kind, self.ranks)
        return None if factor is None else int(message * factor)

    @property
    def unknown(self) -> str | None:
        """Why `link_bytes` is None."""
        if self.kind not in _PASSES:
            return "what it exchanges isn't known: neither its record nor its name says which collective it is"
        if self.message_bytes is None:
            return "how many bytes it exchanges isn't recorded"
        if self.ranks is None:
            return "how many ranks take part isn't recorded"
        return None

    def work(self) -> Work:
        """The least that one rank must do: read what it puts in, write what it gets, and send or receive.

        Where it isn't known how many ranks take part, they are two, the least that exchange anything.

        Raises:
            Unmodelled: Kind or bytes aren't known.
        """
        if self.ranks is None and self.kind in _PASSES and self.message_bytes is not None:
            least = replace(self, ranks=_LEAST_RANKS).work()
            return replace(least, assumes=(*least.assumes, TWO_RANKS))
        link_bytes = self.link_bytes
        if link_bytes is None:
            raise Unmodelled(self.unknown or "")
        read, written = self.in_bytes or 0, self.out_bytes or 0
        if self.kind in _READ_OR_WRITTEN:
            read, written = self.message_bytes or 0, 0
        elif self.kind == "reduce":  # the root alone writes it
            written = 0
        assumes = () if not link_bytes else tuple(self._assumed())
        return Work(read_bytes=read, written_bytes=written, link_bytes=link_bytes, assumes=assumes)

    def _assumed(self) -> list[str]:
        reduces = self.kind in ("all_reduce", "reduce_scatter", "reduce")
        is_even = self.kind != "all_to_all" or self.has_splits
        return [ONE_LINK, *([NO_SWITCH] if reduces else []), *([] if is_even else [EQUAL_SPLITS])]
