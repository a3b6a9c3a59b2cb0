"""Bytes from files, gzip, standard input and pipes: the same whatever carries them."""

import gc
import gzip
import io
import os
import random
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.kineto_files import kernel, members, write_file
from tests.traces import rows

import inferometer
from inferometer.errors import FormatError, InputError, printable
from inferometer.formats import source as module
from inferometer.formats.source import HEAD_BYTES, Limits, Source

FILE = write_file([kernel(ts=str(i)) for i in range(700)])


class Stdin:
    """Standard input with these bytes."""

    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


@pytest.fixture(params=[bytes, gzip.compress], ids=["plain", "gzip"])
def packed(request: pytest.FixtureRequest) -> bytes:
    packed: bytes = request.param(FILE)
    return packed


@pytest.fixture(autouse=True)
def _no_thread_stays() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


def all_of(source: Source, size: int = 1 << 16) -> bytes:
    with source.open() as stream:
        return b"".join(iter(lambda: stream.read(size), b""))


def test_a_file_may_be_read_again_and_again(packed: bytes, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(packed)
    source = Source(path)
    assert source.rewindable
    assert source.head == FILE[:HEAD_BYTES]
    assert all_of(source) == all_of(source, 1000) == FILE


def test_standard_input_is_read_once_from_its_start(packed: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(packed))
    source = Source("-")
    assert (source.name, source.rewindable) == ("stdin", False)
    assert source.head == FILE[:HEAD_BYTES]
    assert all_of(source) == FILE
    with pytest.raises(InputError, match="stdin: can be read only once"):
        source.open()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_read_once_from_its_start(packed: bytes, tmp_path: Path) -> None:
    """As the shell's `inferometer kernels <(zcat trace.json.gz)` hands it over."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=[packed])
    writer.start()
    trace = inferometer.open(path, {"launches"})
    writer.join()
    assert len(rows(trace, "launches", "start_ns")) == 700


def test_progress_counts_the_bytes_of_the_file(packed: bytes, tmp_path: Path) -> None:
    path, told = tmp_path / "trace", list[tuple[int, int | None]]()
    path.write_bytes(packed)
    all_of(Source(path, progress=lambda done, size: told.append((done, size))))
    assert told[-1] == (len(packed), len(packed))
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_one_byte_and_two_are_files_too(tmp_path: Path) -> None:
    for data in (b"", b"{", b"\x1f", b"\x1f\x8b", b"{}"):
        path = tmp_path / "trace"
        path.write_bytes(data)
        assert all_of(Source(path)) == (b"" if data == b"\x1f\x8b" else data)


@given(
    data=st.binary(max_size=4000) | st.integers(0, 300_000).map(lambda n: b"ab" * n),
    cuts=st.lists(st.integers(0, 4000), max_size=5),
    padding=st.sampled_from([b"", b"\0", b"\0" * 600]),
    block=st.sampled_from([2, 3, 17, 512, 1 << 18]),
)
@examples(60)
def test_members_blocks_and_padding_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, cuts: list[int], padding: bytes, block: int
) -> None:
    path = tmp_path_factory.mktemp("gz") / "trace"
    path.write_bytes(members(data, cuts) + padding if data else gzip.compress(b"") + padding)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_READ_BYTES", block)
        patch.setattr(module, "_BLOCK_BYTES", 997)
        with Source(path).open() as stream:
            assert b"".join(iter(lambda: stream.read(1 << 16), b"")) == data
            assert stream.damage is None


def test_a_stream_may_be_left_before_its_end(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(gzip.compress(random.Random(1).randbytes(4 << 20), 1))
    with Source(path).open() as stream:
        assert len(stream.read(10)) == 10


def test_a_cut_stream_says_so_and_gives_what_it_has(tmp_path: Path) -> None:
    path, data = tmp_path / "trace", random.Random(2).randbytes(1 << 20)
    path.write_bytes(gzip.compress(data)[: 1 << 19])
    with Source(path).open() as stream:
        got = b"".join(iter(lambda: stream.read(1 << 16), b""))
        assert len(got) > 400_000
        assert data.startswith(got)
        assert stream.damage == "the compressed data ends in the middle"


def read_packed(path: Path, packed: bytes) -> tuple[bytes, str | None]:
    path.write_bytes(packed)
    with Source(path).open() as stream:
        return b"".join(iter(lambda: stream.read(1 << 16), b"")), stream.damage


@pytest.mark.parametrize("behind", [b"\n", b"\x1f", b"garbage", b"\0\0garbage", b"\x1fgarbage"])
def test_what_follows_the_compressed_data_is_no_cut(behind: bytes, tmp_path: Path) -> None:
    got, damage = read_packed(tmp_path / "trace", gzip.compress(FILE) + behind)
    assert (got, damage) == (FILE, "what follows the compressed data is not compressed: it was not read")


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_a_wrong_checksum_makes_all_that_was_read_doubtful(size: int, tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(random.Random(3).randbytes(size)))
    packed[-8] ^= 1  # of the CRC, which stands in front of the size: RFC 1952, 2.3.1
    _, damage = read_packed(tmp_path / "trace", bytes(packed))
    assert damage == "the compressed data is broken: its checksum doesn't match, so what was read may be wrong, too"


@pytest.mark.parametrize("expansion", [10, 100.5, 900])
def test_unpacking_stops_at_the_limit(expansion: float, tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(bytes(20 << 20)))
    limits = Limits(expansion=expansion, expansion_floor_bytes=1 << 20)
    with pytest.raises(FormatError, match=r"unpacks to more than .* times its size") as caught:
        all_of(Source(path, limits=limits))
    assert "If you trust the file" in str(caught.value)
    assert len(all_of(Source(path, limits=Limits(expansion=None)))) == 20 << 20
    assert len(all_of(Source(path))) == 20 << 20  # below the floor


def test_a_head_that_is_refused_leaves_no_file_open(tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(bytes(1 << 20)))
    source = Source(path, limits=Limits(expansion=2, expansion_floor_bytes=1 << 10))
    with pytest.raises(FormatError, match="unpacks to more than"):
        _ = source.head
    gc.collect()  # which says what is open


@pytest.mark.parametrize(
    ("name", "why"),
    [("missing", "No such file"), ("a" * 300, "too long"), ("nul\0byte", "null byte"), ("plain/x", "Not a dir")],
)
def test_what_cannot_be_opened_is_an_input_error_that_names_it(name: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    with pytest.raises(InputError, match=f"(?i){why}"):
        inferometer.open(tmp_path / name)


def test_names_that_are_not_text_can_be_printed(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json"))
    path.write_bytes(FILE)
    trace = inferometer.open(path)
    assert trace.facts.source == f"{tmp_path}/\\udcff.json"
    assert printable("μs") == "μs"
