"""Who lived when: blocks of one device, from the events of its allocator and what is known of it besides.

A snapshot keeps the last events only, and the state at the end. What was freed without an event of its allocation
lived before the first one, and what is there at the end without one has lived all along; so the curve needs no start
of its own. A profiler's records have no state at the end; each has what is allocated in all, which is the curve. A
block is freed when the allocator has it back (`free_completed`); `free_requested` may be earlier, while a stream still
uses it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

Event = tuple[str, int | None, int | None, int | None]
"""Action, address, bytes, and the number of what allocated it."""
Block = tuple[int, int, int | None]
"""Address, bytes, and the number of what allocated it: of those that are active at the end."""

_FREES = frozenset({"free_completed", "free"})


@dataclass
class Life:
    """One block: events are numbered from 0; `begin` is -1 where it lived before, `end` None where it lives on.

    `holder`: the number of what allocated it.
    """

    bytes: int
    begin: int
    end: int | None = None
    holder: int | None = None


@dataclass
class History:
    """Lives, and bytes after each event: `curve[0]` is before the first.

    `mismatched`: bytes about which the events and what is known besides disagree: of a snapshot those of blocks that
    should be there at the end and aren't, or with another size; of records what they and their totals differ by.
    """

    lives: list[Life] = field(default_factory=list)
    curve: list[int] = field(default_factory=list)
    mismatched: int = 0

    @property
    def peak(self) -> int:
        """The first place of the curve where it is highest."""
        return max(range(len(self.curve)), key=self.curve.__getitem__)

    def at(self, place: int) -> list[Life]:
        """Who lives at this place of the curve, of those that an event or the state at the end names."""
        return [life for life in self.lives if life.begin < place and (life.end is None or life.end >= place)]

    def unnamed_at(self, place: int) -> int:
        """Bytes of the curve at this place that no known block has: given out before the first record."""
        return max(0, self.curve[place] - sum(life.bytes for life in self.at(place)))


def find_history(events: Iterable[Event], blocks: Iterable[Block]) -> History:
    """The history of one device, of which a snapshot has the last events and the state at the end."""
    found, living, changes = _follow(events)
    _add_survivors(found, living, blocks)
    before = sum(life.bytes for life in found.lives if life.begin < 0)
    found.curve = [*accumulate(changes, initial=before)]
    return found


def find_recorded_history(events: Sequence[Event], totals: Sequence[int | None]) -> History:
    """The history of one device, of which a profiler has each event with what is allocated after it, `totals`.

    Only blocks whose allocation is among the events have a life.
    """
    found, _, changes = _follow(events)
    total = next((total - sum(changes[: n + 1]) for n, total in enumerate(totals) if total is not None), 0)
    found.curve = [total]
    for (_, _, size, _), change, recorded in zip(events, changes, totals, strict=True):
        if recorded is not None and size is not None:
            found.mismatched += abs(total + change - recorded)
        total = total + change if recorded is None else recorded
        found.curve.append(total)
    found.lives = [life for life in found.lives if life.begin >= 0]
    return found


def _follow(events: Iterable[Event]) -> tuple[History, dict[int, Life], list[int]]:
    """Lives by the events alone, those that aren't over by their address, and by how many bytes each event changes."""
    found, living, changes = History(), dict[int, Life](), list[int]()
    for number, (action, address, size, holder) in enumerate(events):
        changes.append(0)
        if address is None or size is None or size < 0:
            continue
        if action == "alloc":
            if (lost := living.pop(address, None)) is not None:  # its end is not among the events
                lost.end = number
                changes[-1] -= lost.bytes
            living[address] = Life(size, number, holder=holder)
            found.lives.append(living[address])
            changes[-1] += size
        elif action in _FREES:
            life = living.pop(address, None)
            if life is None:
                life = Life(size, -1)
                found.lives.append(life)
            life.end = number
            changes[-1] -= life.bytes
    return found, living, changes


def _add_survivors(found: History, living: dict[int, Life], blocks: Iterable[Block]) -> None:
    """Those that are there at the end and have no event."""
    for address, size, holder in blocks:
        life = living.pop(address, None)
        if life is None:
            found.lives.append(Life(size, -1, holder=holder))
        else:
            found.mismatched += abs(life.bytes - size)
    found.mismatched += sum(life.bytes for life in living.values())
