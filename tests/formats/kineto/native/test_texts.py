"""Packed files that threads decode while another one unpacks: tables, losses and facts are those that Python finds."""

import gzip
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.formats.kineto.native.test_sections import FOREIGN, LAYOUTS, REAL, USUAL, assert_as_python_reads_it
from tests.formats.native.library_at_hand import needs_library
from tests.kineto_files import Layout, event, members, write_file

import inferometer
from inferometer.errors import FormatError
from inferometer.formats.kineto import dispatch, sections
from inferometer.formats.kineto.native import rows as native_rows
from inferometer.formats.kineto.native import sections as native
from inferometer.formats.kineto.native import texts
from inferometer.formats.kineto.native.columns import Decoded
from inferometer.formats.kineto.native.texts import PackedText
from inferometer.formats.native import library
from inferometer.formats.source import Limits

pytestmark = needs_library
SECRET = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ01234567"


@pytest.fixture(autouse=True)
def threads_end() -> Iterator[None]:
    """None is left of those that were started."""
    before = threading.active_count()
    yield
    assert threading.active_count() == before


@pytest.fixture(params=[300, 2_001, 1 << 20])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Files of any size are read by three threads, in sections of so many bytes."""
    monkeypatch.setattr(sections, "SECTION_BYTES", request.param)
    monkeypatch.setattr(native, "FROM_PACKED_BYTES", 0)
    monkeypatch.setattr(library, "own_cores", lambda: frozenset(range(3)))
    return int(request.param)


@pytest.fixture
def guessed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each section that was taken from a packed text, whether the guess was right."""
    found: list[bool] = []
    ahead, add = PackedText.ahead, native_rows.SectionRows.add
    last: list[Decoded | None] = [None]

    def watched(self: PackedText) -> Iterator[Decoded | None]:
        for each in ahead(self):
            last[0] = each
            yield each

    def added(self: native_rows.SectionRows, section: Decoded) -> bool:
        found.append(section is last[0])
        return add(self, section)

    monkeypatch.setattr(PackedText, "ahead", watched)
    monkeypatch.setattr(native_rows.SectionRows, "add", added)
    return found


def pack(folder: Path, text: bytes) -> Path:
    path = folder / "trace.json.gz"
    path.write_bytes(gzip.compress(text))
    return path


@pytest.mark.parametrize("path", [each for each in REAL if each.suffix == ".gz"], ids=lambda path: path.name)
def test_real_files_are_read_as_by_python(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sections, "SECTION_BYTES", 1 << 20)
    monkeypatch.setattr(native, "FROM_PACKED_BYTES", 0)
    assert_as_python_reads_it(path)


@pytest.mark.parametrize("batch", [3, 16_384])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_sections_are_read_as_by_python(
    layout: Layout, batch: int, size: int, guessed: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "FLUSH_EVENTS", batch)
    assert_as_python_reads_it(pack(tmp_path, write_file(USUAL * 20, layout, after={"distributedInfo": {"rank": 3}})))
    assert all(guessed)
    assert len(guessed) > 10 or size == 1 << 20


@pytest.mark.parametrize("behind", [0, 200, 1 << 20])
def test_events_of_any_length_and_kind_are_read_as_by_python(
    behind: int, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "BEHIND_BYTES", behind)
    monkeypatch.setattr(native, "BEHIND_BYTES", behind)
    long = event("cpu_op", "x" * 30_000, "80", "50.5")  # over many pieces, more than there is room for
    secret = event("user_annotation", f"--token {SECRET}", "1", "2")
    events = [*USUAL, *FOREIGN, secret, *USUAL, long, *USUAL * 4, secret, long, *FOREIGN]
    assert_as_python_reads_it(pack(tmp_path, write_file(events, after={"after": "y" * 20_000, "traceName": "z"})))


@pytest.mark.parametrize("blanks", [300, 5_000])
def test_events_far_apart_are_read_as_by_python(blanks: int, size: int, tmp_path: Path) -> None:
    secret = event("user_annotation", f"--token {SECRET}", "1", "2")  # which Python reads
    text = write_file([*USUAL, secret, *FOREIGN, secret, *USUAL])
    for wide in (b" " * blanks + b",\n", b",\n" + b" " * blanks):
        assert_as_python_reads_it(pack(tmp_path, text.replace(b",\n", wide)))


def test_a_text_that_ends_anywhere_is_read_as_by_python(size: int, tmp_path: Path) -> None:
    text = write_file([*USUAL, *FOREIGN, *USUAL])
    for end in range(0, len(text), 97):
        assert_as_python_reads_it(pack(tmp_path, text[:end]))


def test_packed_data_that_is_damaged_is_read_as_by_python(size: int, tmp_path: Path) -> None:
    draw = random.Random(size)
    text = write_file([each for each in USUAL * 30 for _ in range(1 + draw.randrange(2))])
    whole = gzip.compress(text)
    path = tmp_path / "trace.json.gz"
    path.write_bytes(members(text, [500, 1_000, len(text) - 20]))
    assert_as_python_reads_it(path)
    for data in (whole[:-4], whole[:-6] + b"\1" + whole[-5:], whole + b"\0\0", whole + b"more", whole + whole):
        path.write_bytes(data)
        assert_as_python_reads_it(path)
    for _ in range(12):
        at = draw.randrange(20, len(whole))
        path.write_bytes(draw.choice([whole[:at], whole[:at] + b"\xff" + whole[at + 1 :]]))
        assert_as_python_reads_it(path)


def test_several_trace_objects_are_read_as_by_python(size: int, tmp_path: Path) -> None:
    objects = (write_file(USUAL * 3, before={"distributedInfo": {"rank": rank}}) for rank in range(3))
    assert_as_python_reads_it(pack(tmp_path, b"[" + b",".join(objects) + b"]"))


def test_what_unpacks_to_too_much_is_refused_as_by_python(size: int, tmp_path: Path) -> None:
    path = pack(tmp_path, write_file(USUAL * 400))
    limits = Limits(expansion=3.0, expansion_floor_bytes=50_000)
    with pytest.raises(FormatError, match="unpacks to more than 3 times its size"):
        inferometer.open(path, limits=limits)


def test_the_progress_is_told_by_who_reads(size: int, tmp_path: Path) -> None:
    told: list[tuple[int, int | None]] = []
    threads = set()

    def progress(done: int, total: int | None) -> None:
        threads.add(threading.current_thread())
        told.append((done, total))

    path = pack(tmp_path, write_file(USUAL * 40))
    inferometer.open(path, progress=progress)
    assert threads == {threading.current_thread()}
    assert told[-1] == (path.stat().st_size, path.stat().st_size)
    assert {total for _, total in told} == {path.stat().st_size}
