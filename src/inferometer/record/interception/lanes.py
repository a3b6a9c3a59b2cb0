"""What one thread has recorded and not yet handed over, and what is open on it.

Rows are flat lists that the thread alone appends to, whole rows at once; whoever hands them over takes a number of
whole rows from the front. So the thread needs no lock.
"""

import threading
from dataclasses import dataclass, field
from typing import Any

OP_FIELDS, RANGE_FIELDS = 4, 3


# A module call that is open: a plain tuple, since it is made for every call. The module, its range's text, its start;
# what stood on the thread when it began: chain, open frames, boundary; whether the thread has the mode for it alone.
Level = tuple[Any, str, int, tuple[int, ...], "list[OpenFrame]", int, bool]
# A call of a function of the user's that has run ops: addresses of its frame and code, the instruction in it that calls
# the next one, its name and start.
OpenFrame = tuple[int, int, int, str, int]


@dataclass(slots=True)
class ThreadRows:
    """One thread. `ops`: start, end, signature and whether it is device work; `frames`, `modules`: name, start, end.

    `chain`: the user's functions around the last op, innermost first, down to the innermost open module: of each the
    frame's address, its code's, and the instruction that called on. `last_ns`: the end of the last op or module.
    """

    thread: int
    is_under_mode: bool = False
    ops: list[Any] = field(default_factory=list)
    frames: list[Any] = field(default_factory=list)
    modules: list[Any] = field(default_factory=list)
    levels: list[Level] = field(default_factory=list)
    chain: tuple[int, ...] = ()
    open: list[OpenFrame] = field(default_factory=list)
    boundary: int = 0
    last_ns: int = 0
    due_ns: int = 0
    split_ns: int = 0
    reentered: Any = None
    lock: Any = field(default_factory=threading.RLock)  # a signal's handler may flush within a flush

    def rows(self) -> int:
        """Rows that wait."""
        return len(self.ops) // OP_FIELDS + (len(self.frames) + len(self.modules)) // RANGE_FIELDS

    def close_frames(self, *, keep: int = 0) -> None:
        """End the user's functions of the innermost level but the `keep` outermost: at the last op seen in them."""
        opened = self.open
        while len(opened) > keep:
            _, _, _, name, start_ns = opened.pop()
            self.frames += (name, start_ns, max(self.last_ns, start_ns))
        if not keep:
            self.chain = ()

    def leave(self, end_ns: int) -> Level:
        """End the innermost module."""
        if self.open:
            self.close_frames()
        level = self.levels.pop()
        _, text, start_ns, self.chain, self.open, self.boundary, _ = level
        self.modules += (text, start_ns, end_ns)
        self.last_ns = end_ns
        return level


def take(rows: list[Any], width: int) -> list[list[Any]]:
    """Take all whole rows from the front of a flat list: its columns."""
    n = len(rows) // width * width
    taken = rows[:n]
    del rows[:n]
    return [taken[i::width] for i in range(width)]
