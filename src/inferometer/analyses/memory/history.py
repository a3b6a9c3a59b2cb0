"""When each block of one device was allocated and freed, by the events of its allocator and what else is recorded.

A snapshot keeps the last events only, and the state at the end. A block that is freed without an event of its
allocation was allocated before the first event, and one that is there at the end without any event was there all
along; so the bytes before the first event follow from the rest. A profiler's records have no state at the end; each
has the bytes allocated in all, which is the curve. A block is freed when the allocator has it back
(`free_completed`); `free_requested` may be earlier, while a stream still uses it.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate

import msgspec

Event = tuple[str, int | None, int | None, int | None]
"""Action, address, bytes, and the number of what allocated it."""
Block = tuple[int, int, int | None]
"""Address, bytes, and the number of what allocated it: of those that are active at the end."""

_FREES = frozenset({"free_completed", "free"})


class Lifetime(msgspec.Struct):
    """The events that allocate and free a block, from 0; `begin` is -1 before the first, `end` None after the last.

    `holder`: the number of what allocated it.
    """

    bytes: int
    begin: int
    end: int | None = None
    holder: int | None = None


class History(msgspec.Struct):
    """The lifetimes of all blocks, and the bytes allocated after each event: `curve[0]` is before the first.

    `mismatched_bytes`: of a snapshot, of blocks that by the events should be there at the end and aren't, or have
    another size there; of a profiler's records, by how much the totals differ from what the events add up to.
    """

    lifetimes: list[Lifetime] = msgspec.field(default_factory=list)
    curve: list[int] = msgspec.field(default_factory=list)
    mismatched_bytes: int = 0

    @property
    def peak(self) -> int:
        """The first place of the curve where it is highest."""
        return max(range(len(self.curve)), key=self.curve.__getitem__)

    def at(self, place: int) -> list[Lifetime]:
        """The blocks that are allocated at this place of the curve, of those that are known."""
        return [life for life in self.lifetimes if life.begin < place and (life.end is None or life.end >= place)]

    def unnamed_at(self, place: int) -> int:
        """Bytes of the curve at this place that no known block has: given out before the first record."""
        return max(0, self.curve[place] - sum(life.bytes for life in self.at(place)))


def find_history(events: Iterable[Event], blocks: Iterable[Block]) -> History:
    """The history of one device, of which a snapshot has the last events and the state at the end."""
    found, living, changes = _follow(events)
    _add_survivors(found, living, blocks)
    before = sum(life.bytes for life in found.lifetimes if life.begin < 0)
    found.curve = [*accumulate(changes, initial=before)]
    return found


def find_recorded_history(events: Sequence[Event], totals: Sequence[int | None]) -> History:
    """The history of one device, of which a profiler has each event with what is allocated after it, `totals`.

    Only blocks whose allocation is among the events have a lifetime.
    """
    found, _, changes = _follow(events)
    total = next((total - sum(changes[: n + 1]) for n, total in enumerate(totals) if total is not None), 0)
    found.curve = [total]
    for (_, _, size, _), change, recorded in zip(events, changes, totals, strict=True):
        if recorded is not None and size is not None:
            found.mismatched_bytes += abs(total + change - recorded)
        total = total + change if recorded is None else recorded
        found.curve.append(total)
    found.lifetimes = [life for life in found.lifetimes if life.begin >= 0]
    return found


def _follow(events: Iterable[Event]) -> tuple[History, dict[int, Lifetime], list[int]]:
    """Lifetimes by the events alone, those without an end by address, and by how many bytes each event changes."""
    found, living, changes = History(), dict[int, Lifetime](), list[int]()
    for number, (action, address, size, holder) in enumerate(events):
        changes.append(0)
        if address is None or size is None or size < 0:
            continue
        if action == "alloc":
            if (lost := living.pop(address, None)) is not None:  # its end is not among the events
                lost.end = number
                changes[-1] -= lost.bytes
            living[address] = Lifetime(size, number, holder=holder)
            found.lifetimes.append(living[address])
            changes[-1] += size
        elif action in _FREES:
            life = living.pop(address, None)
            if life is None:
                life = Lifetime(size, -1)
                found.lifetimes.append(life)
            life.end = number
            changes[-1] -= life.bytes
    return found, living, changes


def _add_survivors(found: History, living: dict[int, Lifetime], blocks: Iterable[Block]) -> None:
    """Add the blocks that are there at the end and have no event; compare the others with what the events say."""
    for address, size, holder in blocks:
        life = living.pop(address, None)
        if life is None:
            found.lifetimes.append(Lifetime(size, -1, holder=holder))
        else:
            found.mismatched_bytes += abs(life.bytes - size)
    found.mismatched_bytes += sum(life.bytes for life in living.values())
