"""Whether the headers in a Parquet file can be true: Polars takes them at their word.

A header of a page says how many bytes and values follow. One that says more than there can be makes Polars ask for any
amount of memory, which ends the process. So the footer and the headers of the pages are read here first, nothing else.
Format: https://parquet.apache.org/docs/file-format/, both in Thrift's compact protocol.
"""

import mmap
from collections.abc import Sequence
from pathlib import Path

from inferometer.trace.thrift import Fields, MalformedThrift, read_struct

_MAGIC = b"PAR1"
_FOOTER_END = len(_MAGIC) + 4  # the footer's length stands in front of the magic bytes
_MOST_ROWS = 1 << 48  # no machine holds more; a damaged count may be any number

# ids of fields
_FILE_ROWS, _ROW_GROUPS = 3, 4
_GROUP_COLUMNS, _GROUP_ROWS = 1, 3
_COLUMN_META = 3
_VALUES, _UNCOMPRESSED, _COMPRESSED = 5, 6, 7
_OFFSETS = frozenset((9, 11))  # of the first page of data, and of the dictionary
_PAGE_UNCOMPRESSED, _PAGE_COMPRESSED = 2, 3
_DATA_HEADER, _DICTIONARY_HEADER, _DATA_HEADER_2 = 5, 7, 8
_DATA_HEADERS = frozenset((_DATA_HEADER, _DATA_HEADER_2))
_HEADER_VALUES, _NULLS, _DEFINITION_BYTES, _REPETITION_BYTES = 1, 2, 5, 6


class ImpossibleParquet(Exception):
    """What a Parquet file says of its size can't be true, or can't be read. The message says where."""


def check_parquet(file: Path) -> None:
    """Read the footer of `file` and the header of each page.

    Raises:
        ImpossibleParquet: One of them says what can't be, or ends early.
        OSError: The file can't be read.
    """
    with file.open("rb") as stream:
        if not (size := file.stat().st_size):
            raise ImpossibleParquet("the file is empty")
        with mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_READ) as data:
            try:
                _check(data)
            except MalformedThrift as error:
                raise ImpossibleParquet(str(error)) from error


def _check(data: mmap.mmap) -> None:
    end = _footer_start(data)
    footer, _ = read_struct(data, end, len(data) - _FOOTER_END)
    _number(footer, _FILE_ROWS, "the footer's rows", most=_MOST_ROWS)
    for g, group in enumerate(_structs(footer, _ROW_GROUPS, "the footer's row groups")):
        where = f"row group {g}"
        _number(group, _GROUP_ROWS, f"{where}: rows", most=_MOST_ROWS)
        for c, chunk in enumerate(_structs(group, _GROUP_COLUMNS, f"{where}: columns")):
            _check_column(data, end, chunk, f"{where}, column {c}")


def _footer_start(data: mmap.mmap) -> int:
    if len(data) < len(_MAGIC) + _FOOTER_END or data[: len(_MAGIC)] != _MAGIC or data[-len(_MAGIC) :] != _MAGIC:
        raise ImpossibleParquet(
            f"expected {_MAGIC.decode()} at its beginning and its end: it was cut off, or is another kind"
        )
    length = int.from_bytes(data[-_FOOTER_END : -len(_MAGIC)], "little")
    start = len(data) - _FOOTER_END - length
    if start < len(_MAGIC):
        raise ImpossibleParquet(f"the footer claims {length:,} bytes of a file of {len(data):,}")
    return start


def _check_column(data: mmap.mmap, end: int, chunk: Fields, where: str) -> None:
    """The pages of one column of one row group, which end before byte `end`."""
    meta = _struct(chunk, _COLUMN_META, f"{where}: description")
    offsets = [_number(meta, name, f"{where}: offset", most=end) for name in _OFFSETS & meta.keys()]
    start = min(filter(None, offsets), default=end)  # 0 stands for none
    stop = start + _number(meta, _COMPRESSED, f"{where}: bytes", most=end - start)
    room = _number(meta, _UNCOMPRESSED, f"{where}: uncompressed bytes", most=_MOST_ROWS)
    values = _number(meta, _VALUES, f"{where}: values", most=_MOST_ROWS)
    at = start
    while at < stop:
        at = _check_page(data, at, stop, room, values, f"{where}, page at byte {at:,}")


def _check_page(data: mmap.mmap, at: int, stop: int, room: int, values: int, where: str) -> int:
    """Where the page ends. `room`: uncompressed bytes that it can have; `values` that its column has."""
    header, at = read_struct(data, at, stop)
    size = _number(header, _PAGE_UNCOMPRESSED, f"{where}: uncompressed bytes", most=room)
    compressed = _number(header, _PAGE_COMPRESSED, f"{where}: bytes", most=stop - at)
    if _DICTIONARY_HEADER in header:  # one may hold values that no row has, but not more than it has bits
        dictionary = _struct(header, _DICTIONARY_HEADER, f"{where}: header")
        _number(dictionary, _HEADER_VALUES, f"{where}: values", most=8 * size)
    for kind in _DATA_HEADERS & header.keys():
        page = _struct(header, kind, f"{where}: header")
        own = _number(page, _HEADER_VALUES, f"{where}: values", most=values)
        if kind == _DATA_HEADER_2:
            _number(page, _NULLS, f"{where}: nulls", most=own)
            levels = _number(page, _DEFINITION_BYTES, f"{where}: bytes of definition levels", most=compressed)
            _number(page, _REPETITION_BYTES, f"{where}: bytes of repetition levels", most=compressed - levels)
    return at + compressed


def _structs(fields: Fields, name: int, where: str) -> Sequence[Fields]:
    found = fields.get(name, ())
    if not isinstance(found, tuple) or not all(isinstance(each, dict) for each in found):
        raise ImpossibleParquet(f"{where}: not a list of structures")
    return found


def _struct(fields: Fields, name: int, where: str) -> Fields:
    found = fields.get(name)
    if not isinstance(found, dict):
        raise ImpossibleParquet(f"{where}: there is none")
    return found


def _number(fields: Fields, name: int, where: str, *, most: int) -> int:
    """A whole number from 0 to `most`."""
    found = fields.get(name)
    if type(found) is not int:
        raise ImpossibleParquet(
            f"{where}: expected a whole number, found {'none' if found is None else 'something else'}"
        )
    if not 0 <= found <= most:
        raise ImpossibleParquet(f"{where}: expected 0 to {most:,}, found {found:,}")
    return found
