"""Trace events out of JSON text: what one is, and how a damaged one is read all the same."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from inferometer.formats.json_text.records import BAD_JSON, Int64, RecordKind, RecordReader
from inferometer.formats.json_text.repair import repair
from inferometer.formats.json_text.window import Window
from inferometer.trace.losses import Losses

_NONE = Raw(b"")


class Event(msgspec.Struct, gc=False, omit_defaults=True):
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


decode_events = msgspec.json.Decoder(list[Event]).decode
decode_event = msgspec.json.Decoder(Event).decode
_decode_fields = msgspec.json.Decoder(dict[str, Raw]).decode


class EventReader(RecordReader[Event]):
    """The events of one array, from the text's position just behind its `[`.

    `many` decodes whole arrays of them; it may give other classes, with the same attributes but `args`.
    """

    def __init__(
        self,
        text: Window,
        losses: Losses,
        *,
        event_bytes: int | None = None,
        bare: bool = False,
        until: int | None = None,
        many: Callable[[bytes], list[Any]] = decode_events,
    ) -> None:
        kind = replace(_EVENTS, many=many)
        super().__init__(text, losses, kind, most_bytes=event_bytes, bare=bare, until=until)


def _mend(text: bytes, losses: Losses) -> Event | None:
    """An event that doesn't decode, repaired; None when it can't be read."""
    mended = repair(text, losses)
    try:
        return decode_event(mended)
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


_EVENTS = RecordKind(decode_events, decode_event, _mend, lambda event: bool(event.ph), array="traceEvents")
