"""Cut the text of device work out of a Kineto file without decoding the rest.

A quoted category can't stand inside a JSON string, whose quotes would be escaped, so searching for `"kernel"`
overlooks no launch. What separates two events literally is learned from the first two. A file may be cut in ranges of
bytes: a range begins with the first separator in it, and ends where the next one begins.
"""

from collections.abc import Iterator
from typing import NamedTuple

from inferometer.formats.json_text.search import Search
from inferometer.formats.json_text.window import Window, object_end

BLOCK_BYTES = 1 << 20
_LARGEST_EVENT_BYTES = 64 << 20
_NEEDLES = (b'"kernel"', b'"gpu_mem', b'"mtia_ccp_events"')
_WHITE = b" \t\r\n"


class CutFailed(Exception):
    """The file is not as regular as cutting needs it."""


class Separator(NamedTuple):
    """The literal text from the white space before an event's `}` to the next event's first quote."""

    text: bytes

    @property
    def close(self) -> int:
        """Where in it the first event ends."""
        return self.text.index(b"}") + 1

    @property
    def opening(self) -> int:
        """Where in it the second event begins."""
        return self.text.index(b"{")


def go_to_events(text: Window) -> None:
    """Move from the text's begin to behind the `[` of its events.

    Raises:
        CutFailed: There are none.
        Truncated: The text ends before.
    """
    if text.skip_mark() != ord("{"):
        raise CutFailed
    for key in text.fields():
        if key == "traceEvents" and text.take(ord("[")):
            return
        text.take_value()
    raise CutFailed


def learn_separator(text: Window) -> Separator:
    """What stands between events; `text` stands before the first one.

    Raises:
        CutFailed: There are no two events, or more than white space and a comma stands between them.
    """
    text.peek()
    text.fill(BLOCK_BYTES)
    first = object_end(text.buf, text.pos, text.end)
    if first == -1 or text.buf[text.pos] != ord("{"):
        raise CutFailed
    start = first - 1
    while text.buf[start - 1] in _WHITE:
        start -= 1
    stop = text.buf.find(b'"', first, text.end) + 1
    between = bytes(text.buf[start:stop])
    if between.translate(None, _WHITE) != b'},{"':
        raise CutFailed
    return Separator(between)


def find_separator(text: Window, between: Separator) -> bool:
    """Move `text` to the first separator from there on; to the end of the text where there is none, which is False."""
    (separator,) = between
    while True:
        found = text.buf.find(separator, text.pos, text.end)
        if found != -1:
            text.pos = found
            return True
        text.pos = max(text.pos, text.end - len(separator) + 1)
        if not text.more():
            text.pos = text.end
            return False


def cut_launches(text: Window, between: Separator, until: int | None = None) -> Iterator[bytes]:
    """Text of the launches of each block, joined by commas.

    Afterwards `text` stands at a separator: at the first one from the offset `until` on, or at one less than a block
    from the end of the text, which `text.eof` tells. Where nothing was cut, it hasn't moved.
    Other events that hold the same words come along: the decoder sorts them out.
    """
    need = BLOCK_BYTES
    while until is None or text.offset < until:
        text.fill(need)
        if text.eof:
            break
        before = text.offset
        yield _cut_block(text, between, until)
        need = BLOCK_BYTES if text.offset > before else 2 * need  # one event fills the window
        if need > _LARGEST_EVENT_BYTES:
            raise CutFailed


def pass_separator(text: Window, between: Separator) -> None:
    """Move from a separator to the event behind it; elsewhere, not at all."""
    if text.buf.startswith(between.text, text.pos):
        text.pos += between.opening


def _cut_block(text: Window, between: Separator, until: int | None) -> bytes:
    """Launches of all events that end in the window and before `until`; the separator behind them stays."""
    buf, pos, (separator,) = text.buf, text.pos, between
    close, opening = between.close, between.opening
    cut = _last_cut(text, separator, until)
    if cut == -1:
        raise CutFailed
    search, end = Search(buf), cut + len(separator)
    pieces: dict[int, bytearray] = {}
    for needle in _NEEDLES:
        at = search.find(needle, pos, cut)
        while at != -1:
            before = buf.rfind(separator, pos, at)
            start = pos if before == -1 else before + opening
            stop = buf.find(separator, at, end) + close
            pieces[start] = buf[start:stop]
            at = search.find(needle, stop, cut) if stop < cut else -1
    text.pos = cut
    return b",".join(pieces.values())


def _last_cut(text: Window, separator: bytes, until: int | None) -> int:
    """Where to end in the window: at the first separator from `until` on, else at the last one; -1: at none."""
    if until is not None and until < text.offset + text.end - text.pos:
        first = text.buf.find(separator, text.pos + max(0, until - text.offset), text.end)
        if first != -1:
            return first
    return text.buf.rfind(separator, text.pos, text.end)
