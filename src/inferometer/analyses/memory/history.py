"""Who lived when: blocks of one device, from the last events of its allocator and its state at the end.

A recording keeps the last events only. What was freed without an event of its allocation lived before the first one,
and what is there at the end without one has lived all along; so the curve needs no start of its own. A block is freed
when the allocator has it back (`free_completed`); `free_requested` may be earlier, while a stream still uses it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

Event = tuple[str, int | None, int | None, int | None]
"""Action, address, bytes, path."""
Block = tuple[int, int, int | None]
"""Address, bytes, path: of those that are active at the end."""

_FREES = frozenset({"free_completed", "free"})


@dataclass
class Life:
    """One block: events are numbered from 0; `begin` is -1 where it lived before, `end` None where it lives on."""

    bytes: int
    begin: int
    end: int | None = None
    path: int | None = None


@dataclass
class History:
    """All lives, and bytes after each event: `curve[0]` is before the first.

    `mismatched`: bytes of blocks that by the events should be there at the end and aren't, or with another size.
    """

    lives: list[Life] = field(default_factory=list)
    curve: list[int] = field(default_factory=list)
    mismatched: int = 0

    @property
    def peak(self) -> int:
        """The first place of the curve where it is highest."""
        return max(range(len(self.curve)), key=self.curve.__getitem__)

    def at(self, place: int) -> list[Life]:
        """Who lives at this place of the curve."""
        return [life for life in self.lives if life.begin < place and (life.end is None or life.end >= place)]


def find_history(events: Iterable[Event], blocks: Iterable[Block]) -> History:
    """The history of one device."""
    found, living, changes = History(), dict[int, Life](), list[int]()
    for number, (action, address, size, path) in enumerate(events):
        changes.append(0)
        if address is None or size is None or size < 0:
            continue
        if action == "alloc":
            if (lost := living.pop(address, None)) is not None:  # its end is not among the events
                lost.end = number
                changes[-1] -= lost.bytes
            living[address] = Life(size, number, path=path)
            found.lives.append(living[address])
            changes[-1] += size
        elif action in _FREES:
            life = living.pop(address, None)
            if life is None:
                life = Life(size, -1, path=None)
                found.lives.append(life)
            life.end = number
            changes[-1] -= life.bytes
    _add_survivors(found, living, blocks)
    total = sum(life.bytes for life in found.lives if life.begin < 0)
    found.curve.append(total)
    for change in changes:
        total += change
        found.curve.append(total)
    return found


def _add_survivors(found: History, living: dict[int, Life], blocks: Iterable[Block]) -> None:
    """Those that are there at the end and have no event."""
    for address, size, path in blocks:
        life = living.pop(address, None)
        if life is None:
            found.lives.append(Life(size, -1, path=path))
        else:
            found.mismatched += abs(life.bytes - size)
    found.mismatched += sum(life.bytes for life in living.values())
