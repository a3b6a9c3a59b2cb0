"""Files and folders appear whole or not at all, and nothing of the user's is ever lost."""

import os
from pathlib import Path

import pytest

from inferometer.errors import InputError
from inferometer.reports.new_files import NewFile, NewFolder, check_place


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def ours(name: str) -> bool:
    return name.endswith(".csv")


def make_folder(path: Path, *, force: bool = False) -> None:
    with NewFolder(path, ours=ours, force=force) as place:
        (place / "new.csv").write_text("new")


def write_half(new: NewFile, error: BaseException) -> None:
    with new as place:
        (place / "half.csv" if place.is_dir() else place).write_text("half")
        raise error


def test_a_file_is_there_when_the_block_ends_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with NewFile(path) as place:
        place.write_text("whole")
        assert not path.exists()
    assert (path.read_text(), names(tmp_path)) == ("whole", ["out"])


@pytest.mark.parametrize("error", [ValueError("a bug"), KeyboardInterrupt()])
def test_nothing_is_left_of_a_block_that_fails(error: BaseException, tmp_path: Path) -> None:
    for new in (NewFile(tmp_path / "out"), NewFolder(tmp_path / "out", ours=ours)):
        with pytest.raises(type(error)):
            write_half(new, error)
    assert names(tmp_path) == []


def test_a_full_disk_is_told_with_the_name_of_the_output(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("old")
    with pytest.raises(InputError, match="out: can't be written: No space left"), NewFile(tmp_path / "out", force=True):
        raise OSError(28, "No space left on device")
    assert (tmp_path / "out").read_text() == "old"


def test_what_exists_is_replaced_with_force_only(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    with pytest.raises(InputError, match="already exists"):
        NewFile(path)
    with NewFile(path, force=True) as place:
        place.write_text("new")
    assert path.read_text() == "new"


def test_a_folder_is_replaced_when_it_holds_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "out"
    make_folder(path)
    (path / "old.csv").write_text("old")
    make_folder(path, force=True)
    assert names(path) == ["new.csv"]
    (path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"holds 'thesis.tex', which no export wrote"):
        make_folder(path, force=True)
    assert names(path) == ["new.csv", "thesis.tex"]


@pytest.mark.parametrize("inside", ["link.csv", "folder.csv"])
def test_a_folder_with_links_or_folders_is_not_replaced(inside: str, tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.mkdir()
    (path / "folder.csv").mkdir() if inside == "folder.csv" else (path / "link.csv").symlink_to(tmp_path)
    with pytest.raises(InputError, match="which no export wrote"):
        make_folder(path, force=True)


def test_a_file_is_no_folder_and_a_folder_no_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="is a folder; expected the name of a file"):
        NewFile(tmp_path / "folder", force=True)
    with pytest.raises(InputError, match="is a file; expected the name of a folder"):
        NewFolder(tmp_path / "file", ours=ours, force=True)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("link", "is a link"),
        ("no/such/place", "no such folder"),
        ("a\0b", "can't be written"),
        (os.fsdecode(b"\xff"), "expected a name that is text"),
        ("x" * 300, "can't be written: File name too long"),
    ],
)
def test_a_place_where_nothing_can_be_made_is_refused(name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match=said):
        check_place(tmp_path / name, force=True)
