"""The fast scan for device work alone: find `"kernel"` and its like, cut out their events, decode only those.

A quoted category can't stand inside a JSON string, whose quotes would be escaped, so no launch is overlooked. The
literal text between two events is learned from the first two; whatever doesn't fit ends the scan with `ScanFailed`, and
the file is read in full instead. Layout, spacing and key order may be any, as long as the file keeps to its own.
"""

from inferometer.formats.kineto.events import BAD_JSON, Event, EventReader, decode_events
from inferometer.formats.kineto.header import Header
from inferometer.formats.kineto.sorting import LAUNCH_KINDS, Sorter
from inferometer.formats.kineto.text import Text, object_end
from inferometer.trace.losses import Losses

BLOCK_BYTES = 1 << 20
_NEEDLES = (b'"kernel"', b'"gpu_mem')
_WHITE = b" \t\r\n"


class ScanFailed(Exception):
    """The file is not as regular as the scan needs it."""


class LaunchScan:
    """Reads an array of events from the text's position just behind its `[`, launches only."""

    def __init__(self, text: Text, sorter: Sorter, reader: EventReader, losses: Losses, *, header: Header) -> None:
        self._text = text
        self._sorter = sorter
        self._reader = reader
        self._losses = losses
        self._header = header
        self._found = 0

    def run(self) -> None:
        """Raises `ScanFailed` where a full read is needed to be sure."""
        text = self._text
        if not self._header.is_kineto:
            raise ScanFailed
        text.peek()
        between = self._learn_separator()
        in_separator = False
        while True:
            text.fill(BLOCK_BYTES)
            if text.eof:
                break
            self._take_block(between)
            in_separator = True
        if in_separator:
            text.pos += between.index(b"{")
        for events in self._reader.batches():
            self._keep(events)
        if any(loss.dropped for loss in self._losses) or self._found == 0:
            raise ScanFailed

    def _learn_separator(self) -> bytes:
        """The text from the white space before an event's `}` to the next event's first quote."""
        text = self._text
        text.fill(BLOCK_BYTES)
        first = object_end(text.buf, text.pos, text.end)
        if first == -1 or text.buf[text.pos] != ord("{"):
            raise ScanFailed
        start = first - 1
        while text.buf[start - 1] in _WHITE:
            start -= 1
        stop = text.buf.find(b'"', first, text.end) + 1
        between = bytes(text.buf[start:stop])
        if between.translate(None, _WHITE) != b'},{"':
            raise ScanFailed
        return between

    def _take_block(self, between: bytes) -> None:
        """Launches of all events that end in the window; the last separator stays for the next block."""
        text, buf = self._text, self._text.buf
        close, opening = between.index(b"}") + 1, between.index(b"{")
        cut = buf.rfind(between, text.pos, text.end)
        if cut == -1:
            raise ScanFailed
        pieces: dict[int, bytes] = {}
        for needle in _NEEDLES:
            at = buf.find(needle, text.pos, cut)
            while at != -1:
                start = self._event_start(between, opening, at)
                stop = buf.find(between, at, cut + len(between)) + close
                pieces[start] = bytes(buf[start:stop])
                at = buf.find(needle, stop, cut)
        if pieces:
            try:
                self._keep(decode_events(b",".join(pieces.values())))
            except BAD_JSON as error:
                raise ScanFailed from error
        text.pos = cut

    def _event_start(self, between: bytes, opening: int, at: int) -> int:
        text, buf = self._text, self._text.buf
        brace = buf.rfind(b"{", text.pos, at)
        if brace >= opening and buf.startswith(between, brace - opening):
            return brace
        before = buf.rfind(between, text.pos, at)
        return text.pos if before == -1 else before + opening

    def _keep(self, events: list[Event]) -> None:
        launches = [event for event in events if event.cat in LAUNCH_KINDS]
        if any(event.ph != "X" for event in launches):
            raise ScanFailed
        self._found += len(launches)
        self._sorter.take(launches)
