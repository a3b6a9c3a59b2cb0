"""Events out of the text of a profile. Names stand in it as they are: quotes and backslashes are escaped here first."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from inferometer.errors import FormatError
from inferometer.formats.json_text.records import BAD_JSON, Int64, RecordKind, RecordReader
from inferometer.formats.json_text.repair import repair
from inferometer.formats.json_text.window import Window
from inferometer.formats.source import Source
from inferometer.trace.losses import Losses

_BEGINS: Final = re.compile(rb'\}\s*,\s*(?=\{\s*"cat"\s*:)')
_NAME: Final = re.compile(rb'("name"\s*:\s*")(.*)("\s*,\s*"args"\s*:)', re.DOTALL)
_LOOSE: Final = re.compile(rb'\\(?!["\\/])|(?<!\\)"')
_HINT: Final = "Record it again; ONNX Runtime writes the file at end_profiling()."


class Args(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is read of an event's arguments. Numbers are text there."""

    op_name: str | None = None
    provider: str | None = None
    input_type_shape: msgspec.Raw = msgspec.Raw(b"")
    stream: str | int | None = None
    grid_x: str | int | None = None
    grid_y: str | int | None = None
    grid_z: str | int | None = None
    block_x: str | int | None = None
    block_y: str | int | None = None
    block_z: str | int | None = None


class Event(msgspec.Struct, frozen=True):
    """One event; `ts` and `dur` are µs."""

    cat: str
    name: str
    ts: Int64
    dur: Int64
    pid: Int64 | None = None
    tid: Int64 | None = None
    ph: str = "X"
    args: Args = Args()


_UNREADABLE: Final = "event"  # category of those whose own can't be read
_MANY: Final = msgspec.json.Decoder(list[Event])
_ONE: Final = msgspec.json.Decoder(Event)


def events_of(source: Source, losses: Losses) -> Iterator[list[Event]]:
    """Batches in the order of the file.

    Raises:
        FormatError: It is no list.
    """
    with source.open() as stream:
        text = Window(stream)
        if text.skip_mark() != ord("["):
            raise FormatError(f"{source.name}: expected a list of events, found something else", hint=_HINT)
        text.pos += 1
        kind = RecordKind(_MANY.decode, _ONE.decode, _mend, lambda _: True, _BEGINS, "the list of events")
        found = Losses()
        yield from RecordReader(text, found, kind, most_bytes=source.limits.event_bytes).batches()
        losses.see(_UNREADABLE, found.dropped())
        for loss in found:
            losses.count(
                loss.name, loss.count, category=_UNREADABLE if loss.dropped else loss.category, example=loss.example
            )
        if stream.damage:
            losses.count("broken_compression", example=stream.damage)


def _mend(text: bytes, losses: Losses) -> Event | None:
    """The event with its name escaped, and with what `repair` mends; None where a field is still not its type."""
    found = Losses()
    escaped = _NAME.sub(lambda match: match[1] + _LOOSE.sub(_escape, match[2]) + match[3], text)
    if escaped != text:
        found.count("bad_escape", example=text[:80].decode("utf-8", "replace"))
    try:
        event = _ONE.decode(repair(escaped, found))
    except BAD_JSON:
        return None
    losses.add(found)
    return event


def _escape(match: re.Match[bytes]) -> bytes:
    return b"\\" + match[0]


def shapes_of(raw: msgspec.Raw) -> tuple[str | None, str | None]:
    """Shapes and types of inputs, each a list as JSON: `[{"float":[1,64]}]` is `[[1,64]]` and `["float"]`."""
    return _shapes(bytes(raw))


@lru_cache(4096)
def _shapes(raw: bytes) -> tuple[str | None, str | None]:
    """Nodes have the same ones in each run."""
    try:
        inputs: list[dict[str, list[Any]]] = msgspec.json.decode(raw, type=list[dict[str, list[Any]]])
    except BAD_JSON:
        return None, None
    pairs = [pair for each in inputs for pair in each.items()]
    dims, dtypes = [shape for _, shape in pairs], [dtype for dtype, _ in pairs]
    return msgspec.json.encode(dims).decode(), msgspec.json.encode(dtypes).decode()
