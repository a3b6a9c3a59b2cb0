"""A moving window over JSON text: exact steps from value to value in bounded memory.

It is used around the events (header, metadata) and wherever quick decoding failed; msgspec decodes the bulk.
Whitespace, nesting and strings are followed exactly; nothing recurses, so deep nesting costs no stack.
"""

import re
from collections.abc import Iterator
from typing import Protocol

READ_BYTES = 1 << 18
_SPACE = re.compile(rb"[ \t\r\n]*")
_STRING_BODY = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_NOT_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_PLAIN_RUN = re.compile(rb'[^"{}\[\]]*+')
_SCALAR = re.compile(rb'[^,:"{}\[\] \t\r\n]*+')
_OPEN = b"{["
_BOM = b"\xef\xbb\xbf"
_KEY_BYTES = 1 << 12


class Truncated(Exception):
    """The text ends inside a value."""


class ReadsInto(Protocol):
    """A stream of bytes."""

    def readinto(self, target: memoryview, /) -> int:
        """Fill the front of `target`; the number of bytes, 0 at the end."""


class Window:
    """`buf[pos:end]` is what was read and not yet consumed. Positions move when it is filled."""

    def __init__(self, stream: ReadsInto, offset: int = 0) -> None:
        """`stream` stands `offset` bytes into the text."""
        self._stream = stream
        self.buf = bytearray(4 * READ_BYTES)
        self.pos = 0
        self.end = 0
        self.eof = False
        self._base = offset
        self._back = b""

    @property
    def offset(self) -> int:
        """Bytes of the text before `pos`."""
        return self._base + self.pos

    def more(self) -> bool:
        """Read one block onto the end; False at the end of the text."""
        if self.eof:
            return False
        if len(self.buf) - self.end < READ_BYTES:
            self._make_room()
        got = self._read_block()
        self.end += got
        self.eof = got == 0
        return not self.eof

    def start_over(self) -> None:
        """Make the window that of a text which begins here: what it holds later depends on nothing before."""
        self._back = bytes(self.buf[self.pos : self.end]) + self._back
        self._base += self.pos
        self.pos = self.end = 0
        self.eof = False

    def skip_to(self, offset: int) -> None:
        """Move on to `offset`, or to the end where the text has less."""
        while self._base + self.end < offset:
            self.pos = self.end
            if not self.more():
                return
        self.pos = max(self.pos, offset - self._base)

    def replace(self, rest: ReadsInto, offset: int) -> None:
        """Go on with `rest`, which begins `offset` bytes into the same text."""
        self._stream = rest
        self._base = offset
        self._back = b""
        self.pos = self.end = 0
        self.eof = False

    def rest(self) -> tuple[bytes, ReadsInto]:
        """What was read and not yet consumed, and the stream behind that: the window needs another one then."""
        return bytes(self.buf[self.pos : self.end]) + self._back, self._stream

    def go_on_as(self, other: "Window") -> None:
        """Stand where `other` stands in the same text; `other` must not be used any more."""
        self._stream, self._base, self._back = other._stream, other._base, other._back
        self.buf, self.pos, self.end, self.eof = other.buf, other.pos, other.end, other.eof

    def fill(self, size: int) -> None:
        """Read until the window holds `size` bytes, or the text ends."""
        while self.end - self.pos < size and self.more():
            pass

    def peek(self) -> int:
        """The next byte that is not white space, without consuming it; -1 at the end."""
        while True:
            match = _SPACE.match(self.buf, self.pos, self.end)
            self.pos = match.end() if match else self.pos
            if self.pos < self.end:
                return self.buf[self.pos]
            if not self.more():
                return -1

    def take(self, byte: int) -> bool:
        """Consume `byte` if it comes next after white space."""
        if self.peek() != byte:
            return False
        self.pos += 1
        return True

    def skip_mark(self) -> int:
        """Skip a byte-order mark; then as `peek`."""
        self.fill(len(_BOM))
        if self.buf.startswith(_BOM, self.pos):
            self.pos += len(_BOM)
        return self.peek()

    def fields(self) -> Iterator[str]:
        """Keys of the object that begins here; the consumer takes each value. Ends before the closing brace.

        Raises:
            Truncated: The text ends in a key.
        """
        self.pos += 1
        while self.peek() == ord('"'):
            key = self.take_value(keep=_KEY_BYTES) or b'""'
            self.take(ord(":"))
            yield key[1:-1].decode("utf-8", "replace")
            self.take(ord(","))

    def take_value(self, keep: int = 0) -> bytes | None:
        """Consume one value of any size; its text when that is at most `keep` bytes, else None.

        Raises:
            Truncated: The text ends before the value does.
        """
        kept: bytearray | None = bytearray()
        for piece in self._pieces():
            if kept is not None:
                kept += self.buf[self.pos : piece]
                if len(kept) > keep:
                    kept = None
            self.pos = piece
        return None if kept is None else bytes(kept)

    def _pieces(self) -> Iterator[int]:
        """Ends of consecutive pieces of the value that begins here; the consumer moves `pos` to each."""
        first = self.peek()
        if first == -1:
            raise Truncated
        if first == ord('"'):
            yield self.pos + 1
            yield from self._string_pieces()
        elif first in _OPEN:
            yield self.pos + 1
            yield from self._nested_pieces()
        else:
            yield from self._scalar_pieces()

    def _string_pieces(self) -> Iterator[int]:
        while True:
            match = _STRING_BODY.match(self.buf, self.pos, self.end)
            stop = match.end() if match else self.pos
            if stop < self.end and self.buf[stop] == ord('"'):
                yield stop + 1
                return
            yield stop  # a lone backslash stays until its partner was read
            if not self.more():
                raise Truncated

    def _nested_pieces(self) -> Iterator[int]:
        depth = 1
        while depth:
            match = _PLAIN_RUN.match(self.buf, self.pos, self.end)
            stop = match.end() if match else self.pos
            if stop == self.end:
                yield stop
                if not self.more():
                    raise Truncated
                continue
            byte = self.buf[stop]
            yield stop + 1
            if byte == ord('"'):
                yield from self._string_pieces()
            else:
                depth += 1 if byte in _OPEN else -1

    def _scalar_pieces(self) -> Iterator[int]:
        while True:
            match = _SCALAR.match(self.buf, self.pos, self.end)
            stop = match.end() if match else self.pos
            yield stop
            if stop < self.end or not self.more():
                return

    def _read_block(self) -> int:
        """Put a whole block behind the end, whatever pieces the stream gives; less only at the end of the text."""
        got = min(len(self._back), READ_BYTES)
        if got:
            self.buf[self.end : self.end + got] = self._back[:got]
            self._back = self._back[got:]
        with memoryview(self.buf) as view:
            while got < READ_BYTES:
                with view[self.end + got : self.end + READ_BYTES] as free:
                    n = self._stream.readinto(free)
                if n == 0:
                    break
                got += n
        return got

    def _make_room(self) -> None:
        size = self.end - self.pos
        if size + READ_BYTES <= len(self.buf) // 2 or self.pos >= READ_BYTES:
            with memoryview(self.buf) as view:
                view[:size] = view[self.pos : self.end]
        else:
            bigger = bytearray(2 * len(self.buf))
            bigger[:size] = self.buf[self.pos : self.end]
            self.buf = bigger
        self._base += self.pos
        self.pos, self.end = 0, size


def object_end(buf: bytearray, pos: int, end: int) -> int:
    """Where the object or array that begins at `pos` ends; -1 when it doesn't end before `end`."""
    depth = 0
    while True:
        match = _NOT_BRACKET.match(buf, pos, end)
        pos = match.end() if match else pos
        if pos >= end or buf[pos] == ord('"'):
            return -1
        depth += 1 if buf[pos] in _OPEN else -1
        pos += 1
        if depth <= 0:
            return pos
