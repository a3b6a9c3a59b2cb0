"""Files that are read again and again."""

from pathlib import Path

import pytest
from tests.record.counters.pretended import write

from inferometer.record.counters.files import Files


@pytest.mark.parametrize("size", [0, 1, 2_047, 2_048, 65_535, 65_536, 200_000])
def test_a_file_is_read_whole_and_anew(tmp_path: Path, size: int) -> None:
    files = Files(tmp_path)
    for letter in "ab":
        write(tmp_path, {"/proc/x": letter * size})
        assert files.read("/proc/x") == letter * size
        assert files.read_once("/proc/x") == letter * size
    files.close()


def test_what_is_not_there_or_cannot_be_read_raises(tmp_path: Path) -> None:
    files = Files(tmp_path)
    with pytest.raises(FileNotFoundError):
        files.read("/proc/x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        files.read("/folder")
    assert files.names("/folder") == []


def test_bytes_that_are_no_text_are_marked(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"a\xffb")
    assert Files(tmp_path).read("x") == "a\ufffdb"
