"""Where the bytes come from: a file, a gzip file, or standard input; plain or compressed is recognised by content.

Compression and damage are handled here so that formats see plain bytes: several gzip members follow each other,
a `.gz` name on plain text is plain text, a cut or damaged stream ends early and says so in `Stream.damage`.
"""

import io
import math
import re
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Protocol, Self

import msgspec

from inferometer.errors import FormatError, InputError, printable
from inferometer.new_files import set_aside

if TYPE_CHECKING:
    from inferometer.formats.native.threads import DecoderThreads

HEAD_BYTES = 1 << 16
URL = re.compile(r"[a-z][a-z0-9+.-]{1,20}://.")
"""How the name of something that must be fetched begins."""
_GZIP_MAGIC = b"\x1f\x8b"
_READ_BYTES = 1 << 18
_BLOCK_BYTES = 1 << 20

Progress = Callable[[int, int | None], None]


class Limits(msgspec.Struct, frozen=True):
    """What a reader refuses, so that a hostile file can't take the machine.

    `expansion`: a gzip stream that unpacks to more than this many times its size is refused (real traces reach 60),
    once `expansion_floor_bytes` have been unpacked. `event_bytes`: the largest single event. `held_bytes`: the largest
    file, unpacked, of a format that is held in memory while it is read. `lines`: the most of a text of which every line
    is held. None lifts a limit.
    """

    expansion: float | None = 300.0
    expansion_floor_bytes: int = 512 << 20
    event_bytes: int | None = 64 << 20
    held_bytes: int | None = 512 << 20
    lines: int | None = 5_000_000

    @classmethod
    def none(cls) -> Self:
        """Nothing is refused: for files that the user trusts."""
        return cls(expansion=None, event_bytes=None, held_bytes=None, lines=None)

    def is_too_much(self, unpacked: int, packed: int) -> bool:
        """Whether these bytes unpacked from so many are far more than of real files."""
        most = self.expansion or math.inf
        return unpacked > max(self.expansion_floor_bytes, most * max(1, packed))


class Closes(Protocol):
    """Work that goes on elsewhere."""

    def close(self) -> None:
        """End it."""


class Source:
    """One input: `name` for messages, `path` where it is a file, `head` (the first 64 KiB, unpacked) for sniffing.

    `open()` gives the plain bytes from the start. `rewindable` says whether it may be called more than once; standard
    input and pipes may not. `damage` says what was wrong with the compressed data of the head. `ahead` is work that a
    format began on it before it reads (`Format.start`); `at_once` is how many files are read at the same time, and
    `threads` those that decode all of them (`Format.decoders`).
    """

    def __init__(self, path: str | Path, *, limits: Limits | None = None, progress: Progress | None = None) -> None:
        self.path = None if str(path) == "-" else Path(path)
        self.name = "stdin" if self.path is None else printable(str(path))
        self.limits = limits or Limits()
        self.rewindable = self.path is not None and not _is_pipe(self.path)
        self.damage: str | None = None
        self.ahead: Closes | None = None
        self.at_once = 1
        self.threads: DecoderThreads | None = None
        self._progress = progress
        self._first: Stream | None = None
        self._head: bytes | None = None
        self._state = self._look()

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, which only a format that reads such can take."""
        try:
            return self.path is not None and self.path.is_dir()
        except (OSError, ValueError):  # opening it as a file says what is wrong
            return False

    @property
    def is_packed(self) -> bool:
        """Whether the file is compressed. False for what can be read only once, and for a file that is gone."""
        if self.path is None or not self.rewindable:
            return False
        try:
            with self.path.open("rb") as file:
                return file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        except OSError:  # whoever opens it says what is wrong
            return False

    @property
    def size(self) -> int | None:
        """Bytes of the file as it was found; None where it wasn't, and of what is no plain file."""
        return None if self._state is None else self._state[1]

    @property
    def head(self) -> bytes:
        """The first bytes, unpacked; empty for an empty file."""
        if self._head is None:
            with ExitStack() as opened:
                stream = opened.enter_context(self._stream())
                head = stream.read(HEAD_BYTES)
                if not self.rewindable:
                    opened.pop_all()
                    stream.unread(head)
                    self._first = stream
            self._head, self.damage = head, stream.damage
        return self._head

    def open(self) -> "Stream":
        """The plain bytes from the start.

        Raises:
            InputError: The file can't be opened, or standard input was read before.
        """
        if self.rewindable:
            return self._stream()
        _ = self.head
        if self._first is None:
            raise InputError(f"{self.name}: can be read only once", hint="Save it to a file first.")
        stream, self._first = self._first, None
        return stream

    def change(self) -> str | None:
        """What happened to the file since it was named here; None: nothing, or it is no plain file."""
        before, now = self._state, self._look()
        if before == now:
            return None
        if before is None or now is None:
            return "it is gone" if now is None else "it is new"
        if before[0] != now[0]:
            return "another file took its place"
        return f"{before[1]:,} bytes before, {now[1]:,} bytes now" if before[1] != now[1] else "written to"

    def drop(self) -> None:
        """Close what was opened for the head and will not be read."""
        if self._first is not None:
            self._first.close()
            self._first = None

    def report(self, done: int) -> None:
        """Tell the progress, plain bytes, of work that another process does."""
        if self._progress:
            self._progress(done, None if self.is_packed else self.size)

    def report_share(self, share: float) -> None:
        """Tell the progress of a reader that takes no plain bytes: the share of the rows that is done."""
        if self._progress and self.path and self.path.is_file():
            size = self.path.stat().st_size
            self._progress(round(share * size), size)

    def stop_ahead(self) -> None:
        """End the work that was begun, if any."""
        if self.ahead:
            self.ahead.close()
            self.ahead = None

    def _look(self) -> tuple[int, int, int] | None:
        """What changes with a plain file: which it is, its size, when it was written."""
        try:
            found = None if self.path is None else self.path.stat()
        except (OSError, ValueError):  # opening it says what is wrong
            return None
        if found is None or not stat.S_ISREG(found.st_mode):
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _stream(self) -> "Stream":
        if self.path is None:
            return Stream(sys.stdin.buffer, self.name, None, self.limits, self._progress)
        try:
            size = self.path.stat().st_size if self.rewindable else None
            with ExitStack() as opened:
                file = opened.enter_context(self.path.open("rb", buffering=0))
                stream = Stream(file, self.name, size, self.limits, self._progress)
                opened.pop_all()
                return stream
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            aside = set_aside(self.path) if isinstance(error, FileNotFoundError) else None
            hint = "Check the path and its permissions."
            if aside:
                hint = f"What a killed process was about to replace is in {aside}: rename it."
            elif URL.match(self.name):
                hint = "Download it first: only `inferometer mine` reads what is behind a URL."
            raise InputError(f"{self.name}: {why}", hint=hint) from error


def _is_pipe(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # opening it says what is wrong
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)


class Stream:
    """Plain bytes of one pass over a source, unpacked where it is gzip.

    `damage` is set to words for the user when the compressed data ended early or was broken. `tells_itself` False: the
    progress is told of what was read by `tell` alone, since another thread reads.
    """

    def __init__(
        self, file: BinaryIO | io.RawIOBase, name: str, size: int | None, limits: Limits, progress: Progress | None
    ) -> None:
        self._file = file
        self._size = size
        self._progress = progress
        self._taken = 0
        self.tells_itself = True
        self._unread = b""
        self.damage: str | None = None
        start = self._read_raw(2)
        self._raw_start = start
        self._unpacker = _Unpacker(self, name, limits) if start == _GZIP_MAGIC else None

    def readinto(self, target: memoryview) -> int:
        """Fill the front of `target`; returns the number of bytes, 0 at the end."""
        if self._unread:
            n = min(len(target), len(self._unread))
            target[:n] = self._unread[:n]
            self._unread = self._unread[n:]
            return n
        if self._unpacker:
            return self._unpacker.readinto(target)
        if self._raw_start:
            self._unread, self._raw_start = self._raw_start, b""
            return self.readinto(target)
        n = self._file.readinto(target) or 0  # type: ignore[union-attr]
        self._report(n)
        return n

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end."""
        buffer = bytearray(size)
        view, n = memoryview(buffer), 0
        while n < size and (got := self.readinto(view[n:])):
            n += got
        view.release()
        return bytes(buffer[:n])

    def unread(self, data: bytes) -> None:
        """Put `data` back in front."""
        self._unread = data + self._unread

    def seek(self, offset: int) -> None:
        """Go to a place in data that isn't packed; nothing was read before."""
        if self._unpacker:
            raise ValueError("packed data has no places")
        self._raw_start = b""
        self._file.seek(offset)

    def raw_block(self) -> bytes:
        """The next compressed bytes, for the unpacker."""
        if self._raw_start:
            start, self._raw_start = self._raw_start, b""
            return start
        return self._read_raw(_READ_BYTES)

    def close(self) -> None:
        """Close the file (never standard input)."""
        if self._file is not sys.stdin.buffer:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _read_raw(self, size: int) -> bytes:
        data = self._file.read(size) or b""
        self._report(len(data))
        return data

    def tell(self) -> None:
        """Tell the progress how many bytes of the file were read."""
        if self._progress:
            self._progress(self._taken, self._size)

    def _report(self, n: int) -> None:
        self._taken += n
        if self.tells_itself:
            self.tell()


class _Unpacker:
    """Unpacks gzip members one after another. isal takes 0.3 s for 500 MB: a thread of its own would save nothing."""

    def __init__(self, stream: Stream, name: str, limits: Limits) -> None:
        self._stream = stream
        self._name = name
        self._limits = limits
        self._packed = self._unpacked = 0
        self._blocks = self._unpack()
        self._block = memoryview(b"")

    def readinto(self, target: memoryview) -> int:
        while not self._block:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._check(len(block))
            self._block = memoryview(block)
        n = min(len(target), len(self._block))
        target[:n] = self._block[:n]
        self._block = self._block[n:]
        return n

    def _unpack(self) -> Iterator[bytes]:
        from isal import isal_zlib

        data = self._skip_padding(b"")
        try:
            while data:
                member = isal_zlib.decompressobj(wbits=31)
                yield member.decompress(data, _BLOCK_BYTES)
                while not member.eof:
                    data = member.unconsumed_tail or self._next_packed()
                    if not data:
                        yield member.flush()
                        self._stream.damage = "the compressed data ends in the middle"
                        return
                    yield member.decompress(data, _BLOCK_BYTES)
                data = self._skip_padding(member.unused_data)
                if len(data) == 1:
                    data += self._next_packed()
                if data and not data.startswith(_GZIP_MAGIC):
                    self._stream.damage = "what follows the compressed data is not compressed: it was not read"
                    return
        except isal_zlib.error as error:  # type: ignore[misc]
            is_sum = "checksum" in str(error).lower()  # the data before it was handed out, and may be the wrong part
            what = "its checksum doesn't match, so what was read may be wrong, too" if is_sum else error
            self._stream.damage = f"the compressed data is broken: {what}"

    def _skip_padding(self, data: bytes) -> bytes:
        """`data`, or what follows it, without the zeros that may stand between and behind members."""
        while not (data := data.lstrip(b"\0")):
            data = self._next_packed()
            if not data:
                break
        return data

    def _next_packed(self) -> bytes:
        data = self._stream.raw_block()
        self._packed += len(data)
        return data

    def _check(self, size: int) -> None:
        """Refuse a stream that unpacks to far more than real files do."""
        self._unpacked += size
        if self._limits.is_too_much(self._unpacked, self._packed):
            raise FormatError(
                f"{self._name}: unpacks to more than {self._limits.expansion:.0f} times its size "
                f"(limit; {self._unpacked >> 20} MiB out of {max(1, self._packed >> 20)} MiB so far)",
                hint="If you trust the file, read it with --no-limits, or unpack it and open the result.",
            )
