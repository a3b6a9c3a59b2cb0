"""Records out of the text of a JSON array, in batches, whatever the layout and the damage.

The bulk goes through msgspec: a chunk is cut where one record seems to end and the next to begin. That guess checks
itself, for the chunk decodes only when the cut is a true one. What doesn't decode is taken in smaller and smaller
pieces, and at last record by record: repaired, or counted and skipped up to the next record that is whole.
"""

import re
from collections.abc import Callable, Iterator
from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import Meta

from inferometer.formats.json_text.window import Truncated, Window, object_end
from inferometer.trace.losses import Losses

CHUNK_BYTES = 1 << 18
_RESYNC_BYTES = 1 << 20
_NEAR_BYTES = 1 << 12
BEFORE_BYTES = 1 << 8  # white space between two records, as far as it is looked through
_NO_LIMIT = 1 << 62
BOUNDARY = re.compile(rb"\}\s*,\s*(?=\{)")
_BETWEEN = re.compile(rb"\s*,?\s*")
_AFTER_RECORD = re.compile(rb"\s*(?:[,\]]|$)")
_TAIL_BYTES = 1 << 14

Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]  # what a column can hold
BAD_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
R = TypeVar("R")


class RecordKind(msgspec.Struct, Generic[R], frozen=True):
    """How records of one kind are decoded. What can't be decoded raises one of `BAD_JSON`, but in `mend`.

    Args:
        many: The records of a whole array's text.
        one: One record. It is asked where the next record might begin, and then says with `is_record` if that is one.
        mend: One record that `one` refuses, repaired; None when it can't be read.
        is_record: Whether what was decoded looks like a record of the kind.
        begins: Where in the text a record ends and another begins, up to that: one that holds arrays of objects has a
            pattern of its own.
        array: What the array is called in losses.
    """

    many: Callable[[bytes], list[R]]
    one: Callable[[bytes], R]
    mend: Callable[[bytes, Losses], R | None]
    is_record: Callable[[R], bool]
    begins: re.Pattern[bytes] = BOUNDARY
    array: str = "the array"


class RecordReader(Generic[R]):
    """The records of one array, from the text's position just behind its `[`.

    Args:
        text: The window.
        losses: Where damage is counted.
        kind: How records are decoded.
        most_bytes: The largest record; None: no limit.
        bare: The array is the whole file, and need not be closed.
        until: Stop before the first record that begins there or later, in bytes of the text; None: at the end.

    `is_done` says whether the array ended, rather than the records before `until`.
    """

    def __init__(
        self,
        text: Window,
        losses: Losses,
        kind: RecordKind[R],
        *,
        most_bytes: int | None = None,
        bare: bool = False,
        until: int | None = None,
    ) -> None:
        self._text = text
        self._kind = kind
        self._losses = losses
        self._most = most_bytes or _NO_LIMIT
        self._bare = bare
        self._until = _NO_LIMIT if until is None else until
        self.is_done = False
        self._reach = _NO_LIMIT  # how far to look for boundaries; less where damage stops batches after few records

    def batches(self) -> Iterator[list[R]]:
        """Batches in the file's order, up to and including the closing bracket."""
        text, need = self._text, CHUNK_BYTES
        while True:
            text.take(ord(","))
            byte = text.peek()
            if byte == ord("]"):
                text.pos += 1
                self.is_done = True
                return
            if byte == -1:
                self._count_end()
                self.is_done = True
                return
            if text.offset >= self._until:
                return
            text.fill(need)
            need = CHUNK_BYTES
            if byte != ord("{"):
                self._skip_stray()
                continue
            before, looked_at = text.offset, self._looked_at() - text.pos
            records = self._quick() or self._careful()
            if records is None:
                need = min(2 * (text.end - text.pos), self._most + CHUNK_BYTES)
                continue
            few = text.offset - before < looked_at // 16
            self._reach = max(_NEAR_BYTES, looked_at // 4) if few else min(_NO_LIMIT, 4 * self._reach)
            if records:
                yield records

    def _looked_at(self) -> int:
        return min(self._text.end, self._text.pos + self._reach)

    def _quick(self) -> list[R]:
        """All records up to the last boundary of the window in one go; none when they don't decode."""
        text, end = self._text, self._looked_at()
        cut = self._cut_before_the_next(end)
        if cut == -1:
            cut = _last_boundary(self._kind.begins, text.buf, text.pos, end)
        if cut == -1:
            return []
        try:
            records = self._kind.many(b"[" + text.buf[text.pos : cut] + b"]")
        except BAD_JSON:
            return []
        text.pos = cut
        return records

    def _cut_before_the_next(self, end: int) -> int:
        """Where the record ends that seems to be the last before `until`; -1 when that isn't in the window."""
        text = self._text
        until = self._until - text.offset + text.pos
        if until > end:
            return -1
        for match in self._kind.begins.finditer(text.buf, max(text.pos, until - BEFORE_BYTES), end):
            if match.end() >= until:
                return match.start() + 1
        return -1

    def _careful(self) -> list[R] | None:
        """The records that are whole in the window, or None when the first one needs more text."""
        text, records, step = self._text, list[R](), 64
        until = self._until - text.offset + text.pos
        stops = []
        for match in self._kind.begins.finditer(text.buf, text.pos, self._looked_at()):
            stops.append(match.start() + 1)
            if match.end() >= until:
                break
        i = 0
        while True:
            while i < len(stops) and stops[i] <= text.pos:
                i += 1
            if step > 1 and i < len(stops):
                stop = stops[min(i + step, len(stops)) - 1]
                try:
                    records += self._kind.many(b"[" + text.buf[text.pos : stop] + b"]")
                except BAD_JSON:
                    step //= 4
                    continue
                text.pos, step = stop, 2 * step
            else:
                before = text.pos
                record = self._one()
                if text.pos == before:
                    return records or None
                records += record
                step = 4
            text.pos = _between(text)
            if text.pos >= text.end or text.offset >= self._until or text.buf[text.pos] != ord("{"):
                return records

    def _one(self) -> list[R]:
        """The record at the position, mended if need be; moves behind it, or stays when more text is needed."""
        text = self._text
        stop = object_end(text.buf, text.pos, text.end)
        if stop == -1:
            self._unfinished()
            return []
        record = self._decode(bytes(text.buf[text.pos : stop]))
        if record is not None:
            text.pos = stop
            return [record]
        self._lose("unreadable_event")
        inside = self._next_whole_record(stop)  # where a bracket is missing, the end found is that of something larger
        if inside != -1:
            text.pos = inside
        elif _AFTER_RECORD.match(text.buf, stop, text.end):
            text.pos = stop
        else:
            self._resync()
        return []

    def _decode(self, text: bytes) -> R | None:
        """One record, repaired where that helps; None when it can't be read."""
        try:
            return self._kind.one(text)
        except BAD_JSON:
            return self._kind.mend(text, self._losses)

    def _unfinished(self) -> None:
        """A record without an end in sight: broken, larger than the window, or the file ends in it."""
        text = self._text
        size = text.end - text.pos
        if size < _RESYNC_BYTES and not text.eof:
            return
        found = self._next_whole_record(text.end)
        if found != -1:
            self._lose("unreadable_event")
            text.pos = found
        elif text.eof:
            self._losses.count("truncated", example=f"in the event at byte {text.offset:,}")
            text.pos = text.end
        elif size > self._most:
            self._lose("event_too_large")
            try:
                text.take_value()
            except Truncated:
                self._losses.count("truncated", example=f"at byte {text.offset:,}")

    def _resync(self) -> None:
        """Move to the next record that is whole, or to the end of the window."""
        found = self._next_whole_record(self._text.end)
        self._text.pos = found if found != -1 else self._text.end

    def _next_whole_record(self, end: int) -> int:
        """Where the next record begins that is whole before `end`; -1 when none is found with a fair effort."""
        text, effort = self._text, _RESYNC_BYTES  # a hostile text has millions of places where a record might begin
        for match in self._kind.begins.finditer(text.buf, text.pos, end):
            start = match.end()
            stop = object_end(text.buf, start, min(end, start + _TAIL_BYTES))
            try:
                if stop != -1 and self._kind.is_record(self._kind.one(bytes(text.buf[start:stop]))):
                    return start
            except BAD_JSON:
                pass
            effort -= _TAIL_BYTES if stop == -1 else stop - match.start()
            if effort < 0:
                break
        return -1

    def _skip_stray(self) -> None:
        """Something in the array that is no object."""
        text = self._text
        before = text.offset
        if text.buf[text.pos] in b"}:":
            self._lose("unreadable_event")
            self._resync()
            return
        self._losses.count("not_an_object", example=f"at byte {before:,}")
        try:
            text.take_value()
        except Truncated:
            self._losses.count("truncated", example=f"at byte {before:,}")
        if text.offset == before:
            text.pos += 1

    def _count_end(self) -> None:
        if self._bare:
            self._losses.count("array_not_closed")
        elif not self._losses.total("truncated"):
            self._losses.count(
                "truncated", example=f"at byte {self._text.offset:,}, before the end of {self._kind.array}"
            )

    def _lose(self, name: str) -> None:
        text = self._text
        head = bytes(text.buf[text.pos : min(text.end, text.pos + 60)]).decode("utf-8", "replace")
        self._losses.count(name, example=f"byte {text.offset:,}: {head}")


def _last_boundary(begins: re.Pattern[bytes], buf: bytearray, pos: int, end: int) -> int:
    """Where the last record ends that another one seems to follow; -1 when there is none."""
    size = _TAIL_BYTES
    while True:
        start = max(pos, end - size)
        cuts = [match.start() + 1 for match in begins.finditer(buf, start, end)]
        if cuts:
            return cuts[-1]
        if start == pos:
            return -1
        size *= 8


def _between(text: Window) -> int:
    match = _BETWEEN.match(text.buf, text.pos, text.end)
    return match.end() if match else text.pos
