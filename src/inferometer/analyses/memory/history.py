"""When each block of one device was allocated and freed, by the last events of its allocator and its final state.

A recording keeps the last events only. A block that is freed without an event of its allocation was allocated before
the first event, and one that is there at the end without any event was there all along; so the bytes before the first
event follow from the rest. A block is freed
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
class Lifetime:
    """The events that allocate and free a block, from 0; `begin` is -1 before the first, `end` None after the last."""

    bytes: int
    begin: int
    end: int | None = None
    path: int | None = None


@dataclass
class History:
    """The lifetimes of all blocks, and the bytes allocated after each event: `curve[0]` is before the first.

    `mismatched_bytes`: of blocks that by the events should be there at the end and aren't, or have another size there.
    """

    lifetimes: list[Lifetime] = field(default_factory=list)
    curve: list[int] = field(default_factory=list)
    mismatched_bytes: int = 0

    @property
    def peak(self) -> int:
        """The first place of the curve where it is highest."""
        return max(range(len(self.curve)), key=self.curve.__getitem__)

    def at(self, place: int) -> list[Lifetime]:
        """The blocks that are allocated at this place of the curve."""
        return [life for life in self.lifetimes if life.begin < place and (life.end is None or life.end >= place)]


def find_history(events: Iterable[Event], blocks: Iterable[Block]) -> History:
    """The history of one device.

    Args:
        events: In order.
        blocks: Those that are active at the end.
    """
    found, living, changes = History(), dict[int, Lifetime](), list[int]()
    for number, (action, address, size, path) in enumerate(events):
        changes.append(0)
        if address is None or size is None or size < 0:
            continue
        if action == "alloc":
            if (lost := living.pop(address, None)) is not None:  # its end is not among the events
                lost.end = number
                changes[-1] -= lost.bytes
            living[address] = Lifetime(size, number, path=path)
            found.lifetimes.append(living[address])
            changes[-1] += size
        elif action in _FREES:
            life = living.pop(address, None)
            if life is None:
                life = Lifetime(size, -1)
                found.lifetimes.append(life)
            life.end = number
            changes[-1] -= life.bytes
    _add_survivors(found, living, blocks)
    total = sum(life.bytes for life in found.lifetimes if life.begin < 0)
    found.curve.append(total)
    for change in changes:
        total += change
        found.curve.append(total)
    return found


def _add_survivors(found: History, living: dict[int, Lifetime], blocks: Iterable[Block]) -> None:
    """Add the blocks that are there at the end and have no event; compare the others with what the events say."""
    for address, size, path in blocks:
        life = living.pop(address, None)
        if life is None:
            found.lifetimes.append(Lifetime(size, -1, path=path))
        else:
            found.mismatched_bytes += abs(life.bytes - size)
    found.mismatched_bytes += sum(life.bytes for life in living.values())
