"""Trace events out of JSON text, in batches, whatever the layout and the damage.

The bulk goes through msgspec: a chunk is cut where one event seems to end and the next to begin. That guess checks
itself, for the chunk decodes only when the cut is a true one. What doesn't decode is taken in smaller and smaller
pieces, and at last event by event: repaired, or counted and skipped up to the next event that is whole.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw

from inferometer.formats.kineto.repair import repair
from inferometer.formats.kineto.text import Text, Truncated, object_end
from inferometer.trace.losses import Losses

CHUNK_BYTES = 1 << 18
_RESYNC_BYTES = 1 << 20
_NEAR_BYTES = 1 << 12
_NO_LIMIT = 1 << 62
_BOUNDARY = re.compile(rb"\}\s*,\s*(?=\{)")
_BETWEEN = re.compile(rb"\s*,?\s*")
_AFTER_EVENT = re.compile(rb"\s*(?:[,\]]|$)")
_TAIL_BYTES = 1 << 14
_NONE = Raw(b"")

Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]  # what a column can hold


class Event(msgspec.Struct, gc=False):
    """One event of the Trace Event Format, its numbers and arguments still text."""

    ph: str = ""
    cat: str = ""
    name: str | None = None
    pid: Int64 | str | None = None
    tid: Int64 | str | None = None
    ts: Raw = _NONE
    dur: Raw = _NONE
    args: Raw = _NONE

    @property
    def category(self) -> str:
        """The label under which it is counted: its `cat`, else its phase."""
        return self.cat or f"ph {self.ph or '?'}"


_decode_events = msgspec.json.Decoder(list[Event]).decode
_decode_event = msgspec.json.Decoder(Event).decode
_decode_fields = msgspec.json.Decoder(dict[str, Raw]).decode
BAD_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode_events(text: bytes | bytearray) -> list[Event]:
    """The events of a list's inner text. Raises one of `BAD_JSON` unless all of it is well formed."""
    return _decode_events(b"[" + text + b"]")


class EventReader:
    """The events of one array, from the text's position just behind its `[`."""

    def __init__(self, text: Text, losses: Losses, *, event_bytes: int | None = None, bare: bool = False) -> None:
        self._text = text
        self._losses = losses
        self._most = event_bytes or _NO_LIMIT
        self._bare = bare
        self._reach = _NO_LIMIT  # how far to look for boundaries; less where damage stops batches after few events

    def batches(self) -> Iterator[list[Event]]:
        """Batches in the file's order, up to and including the closing bracket."""
        text, need = self._text, CHUNK_BYTES
        while True:
            text.take(ord(","))
            byte = text.peek()
            if byte == ord("]"):
                text.pos += 1
                return
            if byte == -1:
                self._count_end()
                return
            text.fill(need)
            need = CHUNK_BYTES
            if byte != ord("{"):
                self._skip_stray()
                continue
            before, looked_at = text.offset, self._looked_at() - text.pos
            events = self._quick() or self._careful()
            if events is None:
                need = min(2 * (text.end - text.pos), self._most + CHUNK_BYTES)
                continue
            few = text.offset - before < looked_at // 16
            self._reach = max(_NEAR_BYTES, looked_at // 4) if few else min(_NO_LIMIT, 4 * self._reach)
            if events:
                yield events

    def _looked_at(self) -> int:
        return min(self._text.end, self._text.pos + self._reach)

    def _quick(self) -> list[Event]:
        """All events up to the last boundary of the window in one go; none when they don't decode."""
        text = self._text
        cut = _last_boundary(text.buf, text.pos, self._looked_at())
        if cut == -1:
            return []
        try:
            events = decode_events(text.buf[text.pos : cut])
        except BAD_JSON:
            return []
        text.pos = cut
        return events

    def _careful(self) -> list[Event] | None:
        """The events that are whole in the window, or None when the first one needs more text."""
        text, events, step = self._text, list[Event](), 64
        stops = [match.start() + 1 for match in _BOUNDARY.finditer(text.buf, text.pos, self._looked_at())]
        i = 0
        while True:
            while i < len(stops) and stops[i] <= text.pos:
                i += 1
            if step > 1 and i < len(stops):
                stop = stops[min(i + step, len(stops)) - 1]
                try:
                    events += decode_events(text.buf[text.pos : stop])
                except BAD_JSON:
                    step //= 4
                    continue
                text.pos, step = stop, 2 * step
            else:
                before = text.pos
                event = self._one()
                if text.pos == before:
                    return events or None
                events += event
                step = 4
            text.pos = _between(text)
            if text.pos >= text.end or text.buf[text.pos] != ord("{"):
                return events

    def _one(self) -> list[Event]:
        """The event at the position, mended if need be; moves behind it, or stays when more text is needed."""
        text = self._text
        stop = object_end(text.buf, text.pos, text.end)
        if stop == -1:
            self._unfinished()
            return []
        event = decode_one(bytes(text.buf[text.pos : stop]), self._losses)
        if event is not None:
            text.pos = stop
            return [event]
        self._lose("unreadable_event")
        inside = self._next_whole_event(stop)  # where a bracket is missing, the end found is that of something larger
        if inside != -1:
            text.pos = inside
        elif _AFTER_EVENT.match(text.buf, stop, text.end):
            text.pos = stop
        else:
            self._resync()
        return []

    def _unfinished(self) -> None:
        """An event without an end in sight: broken, larger than the window, or the file ends in it."""
        text = self._text
        size = text.end - text.pos
        if size < _RESYNC_BYTES and not text.eof:
            return
        found = self._next_whole_event(text.end)
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
        """Move to the next event that is whole, or to the end of the window."""
        found = self._next_whole_event(self._text.end)
        self._text.pos = found if found != -1 else self._text.end

    def _next_whole_event(self, end: int) -> int:
        """Where the next event begins that is whole before `end`; -1 when none is found with a fair effort."""
        text, effort = self._text, _RESYNC_BYTES  # a hostile text has millions of places where an event might begin
        for match in _BOUNDARY.finditer(text.buf, text.pos, end):
            start = match.end()
            stop = object_end(text.buf, start, min(end, start + _TAIL_BYTES))
            try:
                if stop != -1 and _decode_event(text.buf[start:stop]).ph:
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
            self._losses.count("truncated", example=f"at byte {self._text.offset:,}, before the end of traceEvents")

    def _lose(self, name: str) -> None:
        text = self._text
        head = bytes(text.buf[text.pos : min(text.end, text.pos + 60)]).decode("utf-8", "replace")
        self._losses.count(name, example=f"byte {text.offset:,}: {head}")


def decode_one(text: bytes, losses: Losses) -> Event | None:
    """One event, repaired where that helps; None when it can't be read."""
    try:
        return _decode_event(text)
    except BAD_JSON:
        pass
    mended = repair(text, losses)
    try:
        return _decode_event(mended)
    except BAD_JSON:
        pass
    try:
        return _loose_event(_decode_fields(mended), losses)
    except BAD_JSON:
        return None


def _loose_event(fields: dict[str, Raw], losses: Losses) -> Event:
    """An event with fields of unexpected types: those that can't be taken for the type are left out and counted."""
    values: dict[str, Any] = {}
    for name in ("ph", "cat", "name", "pid", "tid"):
        if name not in fields:
            continue
        value = _loose_value(name, fields[name])
        if value is not None:
            values[name] = value
        elif fields[name] != b"null":
            losses.count("wrong_type", category=name, example=bytes(fields[name])[:60].decode("utf-8", "replace"))
    for name in ("ts", "dur", "args"):
        if name in fields:
            values[name] = fields[name]
    return Event(**values)


def _loose_value(name: str, text: Raw) -> int | str | None:
    try:
        value = msgspec.json.decode(text)
    except BAD_JSON:  # a number that is beyond floats, or has thousands of digits
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if name == "name":
        return str(value)
    whole = int(value) if name in ("pid", "tid") and value == value // 1 else None
    return whole if whole is not None and -(2**63) <= whole < 2**63 else None


def _last_boundary(buf: bytearray, pos: int, end: int) -> int:
    """Where the last event ends that another one seems to follow; -1 when there is none."""
    size = _TAIL_BYTES
    while True:
        start = max(pos, end - size)
        cuts = [match.start() + 1 for match in _BOUNDARY.finditer(buf, start, end)]
        if cuts:
            return cuts[-1]
        if start == pos:
            return -1
        size *= 8


def _between(text: Text) -> int:
    match = _BETWEEN.match(text.buf, text.pos, text.end)
    return match.end() if match else text.pos
