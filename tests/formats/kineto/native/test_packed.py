"""The library's scan of a compressed file: what is particular about compressed data, and how much memory it takes."""

import gzip
import random
import threading
from functools import partial
from pathlib import Path
from typing import BinaryIO

import polars as pl
import pytest
from tests.formats.native.library_at_hand import needs_library
from tests.kineto_files import kernel, write_file
from tests.traces import counted

import inferometer
from inferometer.errors import FormatError
from inferometer.formats.kineto import ahead
from inferometer.formats.kineto.cut import CutFailed
from inferometer.formats.kineto.native import launches, packed
from inferometer.formats.kineto.native.packed import PackedLaunches
from inferometer.formats.native import library
from inferometer.formats.native.library import VARIABLE, find_library
from inferometer.formats.source import Limits, Source

pytestmark = needs_library

DATA = write_file([kernel(f"kernel {n}", ts=str(n), dur="1") for n in range(300)])


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a file goes that counts as large; pieces are small and read by two threads."""
    monkeypatch.setattr(ahead, "FROM_PACKED_NATIVE_BYTES", 1)
    monkeypatch.setattr(library, "own_cores", lambda: frozenset(range(2)))
    monkeypatch.setattr(launches, "REST_BYTES", 2_000)
    monkeypatch.setattr(packed, "PIECE_BYTES", 3_000)
    return tmp_path / "trace.json.gz"


def scan(path: Path) -> PackedLaunches:
    library = find_library()
    assert library
    return PackedLaunches(library, path, 2)


def kernels(path: Path) -> pl.DataFrame:
    return inferometer.open(path, {"launches"}).launches.sort("start_ns").collect()


def answer(path: Path) -> object:
    """What is read, as something to be compared: rows and losses, or the error."""
    try:
        found = inferometer.open(path, {"launches"})
    except FormatError as error:
        return str(error)
    return found.launches.collect().rows(), counted(found)


def events_at(data: bytes) -> int:
    return data.index(b"[", data.index(b'"traceEvents"')) + 1


def test_members_one_after_the_other_are_one_text(path: Path) -> None:
    path.write_bytes(b"".join(gzip.compress(DATA[at : at + 7_001]) for at in range(0, len(DATA), 7_001)) + b"\0" * 99)
    found = scan(path)
    parts = list(found.parts(events_at(DATA), lambda _: None))
    offset, rest = found.rest()
    assert len(parts) > 10
    assert DATA[offset:] == rest
    assert rest.startswith(b"{")
    for part in parts:
        found.library.kineto_free(part)
    found.close()
    assert kernels(path)["kernel"].to_list() == [f"kernel {n}" for n in range(300)]


def test_damage_anywhere_gives_what_python_gives(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, draw = gzip.compress(DATA), random.Random(7)
    for _ in range(12):
        at = draw.randrange(200, len(whole))
        path.write_bytes(whole[:at] + draw.choice([b"", bytes([whole[at] ^ 255]) + whole[at + 1 :]]))
        found = answer(path)
        with monkeypatch.context() as patch:
            patch.setenv(VARIABLE, "0")
            assert answer(path) == found


def test_an_event_larger_than_a_piece_ends_the_scan(path: Path) -> None:
    path.write_bytes(gzip.compress(write_file([kernel(), kernel(), kernel(note="x" * 9_000), *[kernel()] * 30])))
    found = scan(path)
    with pytest.raises(CutFailed):
        list(found.parts(events_at(DATA), lambda _: None))
    found.close()
    assert kernels(path).height == 33


def test_a_text_that_unpacks_to_far_more_than_its_size_ends_the_scan(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(gzip.compress(DATA[: events_at(DATA) + 2_000] + b" " * (9 << 20)))
    monkeypatch.setattr(packed, "Source", partial(Source, limits=Limits(expansion_floor_bytes=3 << 20)))
    found = scan(path)
    with pytest.raises(CutFailed):
        list(found.parts(events_at(DATA), lambda _: None))
    found.close()


def test_no_more_pieces_are_held_than_threads_read_and_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held, most, lock = [0], [0], threading.Lock()
    fill, read = PackedLaunches._fill, PackedLaunches._read

    def filling(self: PackedLaunches, piece: bytearray, left: bytes, text: BinaryIO) -> int:
        with lock:
            held[0] += 1
            most[0] = max(most[0], held[0])
        return fill(self, piece, left, text)

    def reading(self: PackedLaunches, piece: bytearray, size: int) -> int | None:
        with lock:
            held[0] -= 1
        return read(self, piece, size)

    monkeypatch.setattr(PackedLaunches, "_fill", filling)
    monkeypatch.setattr(PackedLaunches, "_read", reading)
    path.write_bytes(gzip.compress(DATA))
    assert kernels(path).height == 300
    assert 1 <= most[0] <= 3


def test_closing_early_ends_the_threads(path: Path) -> None:
    path.write_bytes(gzip.compress(DATA))
    before = threading.active_count()
    scan(path).close()
    assert threading.active_count() == before


def test_events_that_begin_elsewhere_are_not_taken(path: Path) -> None:
    path.write_bytes(gzip.compress(DATA))
    found = scan(path)
    with pytest.raises(CutFailed):
        list(found.parts(events_at(DATA) + 1, lambda _: None))
    found.close()


def test_a_file_without_events_leaves_nothing_open(path: Path) -> None:
    path.write_bytes(gzip.compress(b'{"traceEvents": 1}'))
    with pytest.raises(CutFailed):
        scan(path)
