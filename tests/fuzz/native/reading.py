"""Damaged files, and each way in which the library reads: sections, launches of a text or a file, pages of a database.

Texts lie in memory of exactly their size, so that a byte read behind them is noticed. What was read is handed over as
to polars, and released.
"""

import ctypes
import gzip
import io
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from tests.fuzz import byte_damage
from tests.kineto_files import COMPACT, KINETO, call, event, kernel, write_file

from inferometer.formats.databases.native.table import NativeTable, Place, UnusualTable
from inferometer.formats.json_text.window import Window
from inferometer.formats.kineto.cut import Separator, go_to_events, learn_separator
from inferometer.formats.native.library import load

SAMPLES: Final = Path("samples")
WINDOW_BYTES: Final = 6_000
TABLES: Final = 5
_ARRAY, _SCHEMA = (80, 64), (72, 56)  # sizes of Arrow's structures, and where in them `release` is
_TOKENS: Final = (
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b"-",
    b"1e9",
    b"\x00",
    b"\x1f",
    b"\xed\xa0\x80",
    b"\xf4\x90",
)
_release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@dataclass(frozen=True)
class Sample:
    """Some events of a file, from the begin of one on, and what separates two."""

    events: bytes
    between: Separator


class Reader:
    """Reads texts with the library at `path`."""

    def __init__(self, path: Path, folder: Path) -> None:
        library = load(path)
        assert library, f"{path} doesn't load"
        self._library, self._file = library, folder / "trace.json"
        self._database, self._roots = make_database(folder / "made.sqlite")

    def sections(self, sample: Sample, text: bytes, draw: Random) -> bool:
        """Decode from the begin, or from where an event seems to begin; whether something was decoded."""
        is_guess = draw.random() < 0.5
        begin = draw.randrange(len(text) + 1) if is_guess else 0
        limit = draw.choice((len(text) + 1, len(text) // 2 + 1, 1))
        wanted, batch = draw.randrange(1 << TABLES), draw.choice((1, 3, 16_384))
        return self._take(self._library.kineto_decode(_place(text), len(text), begin, limit, is_guess, wanted, batch))

    def launches(self, sample: Sample, text: bytes, draw: Random) -> bool:
        """The launches of a text that ends with a separator."""
        (between,) = sample.between
        whole = text + between
        return self._take(self._library.kineto_launches(_place(whole), len(whole), between, len(between)))

    def file(self, sample: Sample, text: bytes, draw: Random) -> bool:
        """The launches of a file in ranges, with several threads."""
        self._file.write_bytes(text)
        begin = draw.randrange(len(text))
        end = draw.randrange(begin + 1, len(text) + 2)
        extent = (ctypes.c_size_t * 4)(begin, end, draw.choice((300, 2_000, len(text))), draw.choice((0, 500, 4_000)))
        (between,) = sample.between
        path = str(self._file).encode()
        scan = self._library.kineto_scan(path, extent, between, len(between), draw.choice((1, 3)))
        if scan is None:
            return False
        try:
            count = -1 if draw.random() < 0.1 else self._library.kineto_scan_wait(scan, ctypes.byref(ctypes.c_size_t()))
            return [self._take(self._library.kineto_scan_part(scan, n)) for n in range(count)] != []
        finally:
            self._library.kineto_scan_free(scan)

    def _take(self, handle: int | None) -> bool:
        if handle is None:
            return False
        for table in range(TABLES):
            for column in range(self._library.kineto_columns(handle, table)):
                self._look_at(self._library.kineto_export, (handle, table, column))
                if self._library.kineto_is_text(handle, table, column):
                    self._look_at(self._library.kineto_export_texts, (handle, table, column))
        self._library.kineto_free(handle)
        return True

    @staticmethod
    def _look_at(export: Callable[..., int], where: tuple[int, int, int]) -> None:
        array, schema = (ctypes.create_string_buffer(size) for size, _ in (_ARRAY, _SCHEMA))
        assert export(*where, array, schema) == 0
        for structure, (_, at) in ((array, _ARRAY), (schema, _SCHEMA)):
            _release(ctypes.c_void_p.from_buffer(structure, at).value or 0)(ctypes.addressof(structure))

    def database(self, sample: Sample, text: bytes, draw: Random) -> bool:
        """All tables of a database with a blow or none, from any page on that might be their first."""
        pages = bytearray(self._database)
        for _ in range(draw.choice((0, 1, 3, 20))):
            pages[draw.randrange(len(pages))] = draw.choice((0, 1, 5, 13, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        self._file.write_bytes(pages[: draw.choice((len(pages), len(pages), draw.randrange(len(pages))))])
        try:
            table = NativeTable(self._library, self._file, draw.choice(self._roots))
        except UnusualTable:
            return False
        decoded = False
        columns = {str(n): Place(n, draw.random() < 0.2) for n in draw.sample(range(12), draw.randrange(1, 6))}
        for block in table.blocks():
            with suppress(UnusualTable):
                decoded |= table.read(block, columns).columns.height > 0
        table.close()
        return decoded


def _place(text: bytes) -> ctypes.Array[ctypes.c_char]:
    """A copy of exactly that size."""
    return (ctypes.c_char * len(text)).from_buffer_copy(text)


def make_database(path: Path) -> tuple[bytes, Sequence[int]]:
    """Tables of several pages, of whole numbers of all lengths and of texts too long for a page; the first of each."""
    draw = Random(7)
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("PRAGMA page_size = 512")
        made.execute("CREATE TABLE numbers (id INTEGER PRIMARY KEY, " + ", ".join(f"n{i}" for i in range(9)) + ")")
        made.execute("CREATE TABLE texts (a, b, c)")
        for _ in range(300):
            numbers = [
                draw.choice((None, 0, 1, draw.randrange(-(2 ** draw.randrange(1, 63)), 2**15))) for _ in range(9)
            ]
            made.execute(f"INSERT INTO numbers VALUES (NULL, {', '.join('?' * 9)})", numbers)
            made.execute("INSERT INTO texts VALUES (?, ?, ?)", (draw.randrange(99), "x" * draw.randrange(2_000), 7))
        made.commit()
        roots = [root for (root,) in made.execute("SELECT rootpage FROM sqlite_master")]
    return path.read_bytes(), [1, *roots, *roots, *roots]


def find_samples(draw: Random) -> Sequence[Sample]:
    """Of PyTorch's files in this repository, and of every kind of event that the library knows."""
    ends = ("1.5", "2")
    kinds = [kernel(grid=[1, 2, 3]), call(), event("cpu_op", "aten::mm", *ends, Input_Dims=[[1]]), kernel("\\ \n")]
    kinds += [event("python_function", "nn.Module: A", *ends), event("gpu_memcpy", "m", *ends, device=0, bytes=64)]
    kinds += [event("user_annotation", "«s»", *ends), event("gpu_user_annotation", "a", *ends, stream=7)]
    kinds += [event("gpu_memset", "m", *ends), event("odd", "o", *ends)]
    texts = [write_file(kinds * 12, layout) for layout in (COMPACT, KINETO)]
    texts += [gzip.decompress(path.read_bytes()) for path in sorted(SAMPLES.rglob("*.json.gz"))]
    return [sample for text in texts for sample in _samples_of(text, draw)]


def _samples_of(data: bytes, draw: Random) -> Sequence[Sample]:
    if b'"traceEvents"' not in data:
        return []
    text = Window(io.BytesIO(data))
    go_to_events(text)
    between = learn_separator(text)
    (separator,), found = between, []
    for _ in range(6):
        at = data.find(separator, draw.randrange(text.offset, max(text.offset + 1, len(data) - WINDOW_BYTES)))
        begin = text.offset if at == -1 else at + between.opening
        found.append(Sample(data[begin : begin + WINDOW_BYTES], between))
    return found


def damage(draw: Random, text: bytes, other: bytes) -> bytes:
    """The text, mostly after one or several blows."""
    for _ in range(draw.choice((0, 1, 1, 2, 5))):
        if draw.random() < 0.4:
            at = draw.randrange(len(text) + 1)
            text = text[:at] + draw.choice(_TOKENS) * draw.choice((1, 1, 200)) + text[at + draw.randrange(2) :]
        else:
            text = draw.choice(byte_damage.DAMAGES)(draw, text, other)
    return text[: 4 * WINDOW_BYTES] or b"{"


def main() -> None:
    """Read until the time is over or enough was read, and say how often something was decoded."""
    path, seed, seconds, texts = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    draw, end, read, decoded = Random(seed), time.monotonic() + seconds, Counter[str](), Counter[str]()
    samples = find_samples(draw)
    with TemporaryDirectory(prefix="fuzz-native-") as folder:
        reader = Reader(path, Path(folder))
        ways = (reader.sections, reader.sections, reader.launches, reader.file, reader.database)
        while time.monotonic() < end and read.total() < texts:
            sample, way = draw.choice(samples), draw.choice(ways)
            read[way.__name__] += 1
            decoded[way.__name__] += way(sample, damage(draw, sample.events, draw.choice(samples).events), draw)
    for name, count in sorted(read.items()):
        print(f"{name}: {count:,} texts, of which {decoded[name]:,} were decoded")


if __name__ == "__main__":
    main()
