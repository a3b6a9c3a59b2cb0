"""Lines of text out of bytes: UTF-8 or, with its mark, UTF-16 (what a redirect on Windows writes).

Lines end in LF or CR LF and keep that ending. Bytes that are no text are replaced and counted, and a line beyond the
limit for one event is left out and counted.
"""

import codecs
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from inferometer.errors import FormatError

if TYPE_CHECKING:
    from inferometer.formats.source import Stream
    from inferometer.trace.losses import Losses

Line = tuple[int, str]
_BLOCK_BYTES = 1 << 20
_MAGIC_BYTES = 16  # text has no zeros where SQLite and others say what they are
_UTF8_MARK = codecs.BOM_UTF8
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Lines:
    """Numbered lines, from 1. A line that turns out not to belong to what was being read can be put back."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._lines = iter(lines)
        self._returned: deque[Line] = deque()

    def __iter__(self) -> Iterator[Line]:
        return self

    def __next__(self) -> Line:
        return self._returned.popleft() if self._returned else next(self._lines)

    def put_back(self, lines: Iterable[Line]) -> None:
        """These come next again."""
        self._returned.extendleft(reversed(list(lines)))


class Ends:
    """Lines as they come, and whether the last one had no ending."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self.is_cut = False

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.is_cut = not line.endswith("\n")
            yield line


def read_lines(
    stream: "Stream", losses: "Losses", *, longest: int | None, most: int | None = None, name: str = ""
) -> Iterator[Line]:
    """The lines of `stream` with their numbers; `longest` is in bytes of UTF-8.

    Raises:
        FormatError: There are more than `most` lines in what is called `name`: each is kept, and takes 250 bytes.
    """
    number = 0
    for line in _split(_utf8_blocks(stream), longest):
        number += 1
        if most is not None and number > most:
            raise FormatError(
                f"{name}: expected at most {most:,} lines, since they are held in memory, found more (limit)",
                hint="Where the memory is there, read it with --no-limits.",
            )
        if line is None:
            losses.see("log")
            losses.count("event_too_large", category="log", example=f"line {number}")
            continue
        try:
            yield number, line.decode()
        except UnicodeDecodeError:
            losses.count("invalid_utf8", category="log", example=f"line {number}")
            yield number, line.decode(errors="replace")


def decode_head(head: bytes) -> str:
    """The first bytes of a file as text; empty when they are no text."""
    if head.startswith(_UTF16_MARKS):
        return head.decode("utf-16", "replace")
    if b"\0" in head[:_MAGIC_BYTES] or head.lstrip().startswith((b"{", b"[{")):
        return ""
    return head.removeprefix(_UTF8_MARK).decode(errors="replace")


def without_ending(text: str) -> str:
    """A line without its LF or CR LF."""
    return text.removesuffix("\n").removesuffix("\r")


def _utf8_blocks(stream: "Stream") -> Iterator[bytes]:
    block = stream.read(_BLOCK_BYTES)
    if not block.startswith(_UTF16_MARKS):
        block = block.removeprefix(_UTF8_MARK)
        while block:
            yield block
            block = stream.read(_BLOCK_BYTES)
        return
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    while block:
        yield decoder.decode(block).encode()
        block = stream.read(_BLOCK_BYTES)
    yield decoder.decode(b"", final=True).encode()


def _split(blocks: Iterable[bytes], longest: int | None) -> Iterator[bytes | None]:
    """Lines with their endings; None for one that is too long."""
    pieces: list[bytes] = []
    size = 0
    for block in blocks:
        *whole, rest = block.split(b"\n")
        for line in whole:
            pieces.append(line)
            size += len(line)
            yield None if longest and size > longest else b"".join(pieces) + b"\n"
            pieces, size = [], 0
        size += len(rest)
        pieces = [] if longest and size > longest else [*pieces, rest]
    if size:
        yield None if longest and size > longest else b"".join(pieces)
