"""Files and folders appear whole or not at all, and nothing of the user's is ever lost."""

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from inferometer.bench.results import RUN_FILE
from inferometer.errors import InputError
from inferometer.hardware.measure.measure import DEVICE_FILE
from inferometer.new_files import NewFile, NewFolder, begins_with, check_place, clear_left, set_aside
from inferometer.reports.export import kind_of
from inferometer.trace.store_writer import MANIFEST, StoreFolder


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


def make_special(path: Path, what: str) -> None:
    if what == "a pipe":
        os.mkfifo(path)
    elif what == "a socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    else:
        try:
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("a device needs root")


@pytest.mark.parametrize("what", ["a pipe", "a socket", "a device"])
def test_special_files_are_never_replaced(what: str, tmp_path: Path) -> None:
    path = tmp_path / "out"
    make_special(path, what)
    mode = path.lstat().st_mode
    for make in (NewFile, lambda path, *, force: NewFolder(path, ours=ours, force=force), StoreFolder):
        with pytest.raises(InputError, match=f"is {what}; it is not replaced"):
            make(path, force=True)
    assert path.lstat().st_mode == mode


def test_what_came_meanwhile_is_not_replaced_either(tmp_path: Path) -> None:
    path = tmp_path / "out"
    for force, what in ((False, "already exists"), (True, "is a link")):
        with pytest.raises(InputError, match=what), NewFile(path, force=force) as place:  # noqa: PT012
            place.write_text("new")
            path.symlink_to("/dev/null") if force else path.write_text("theirs")
        assert names(tmp_path) == ["out"]
        path.unlink()


KINDS = {
    "HTML page": (begins_with("HTML page", b"<!doctype html"), b"<!DOCTYPE html>\n<p>", b"#!/bin/sh\n"),
    "Chrome trace": (kind_of("chrome", Path("a.json")), b'{"schemaVersion": 1', b'{"name": "my-package"}'),
    "Parquet file": (kind_of("parquet", Path("a.parquet")), b"PAR1....", b"PK\x03\x04"),
    "table as CSV": (kind_of("csv", Path("a.csv")), b"kernel,grid_x,dur_ns\r\nk,1,2\r\n", b"name,salary\na,1\n"),
    "gzip file": (kind_of("csv", Path("a.csv.gz")), b"\x1f\x8b\x08", b"kernel\n"),
    "Perfetto trace": (kind_of("perfetto", Path("a.pftrace")), b"\x0a\x1f", b"\x7fELF"),
    "file of results": (RUN_FILE, b'{\n "date": "x",\n "inferometer": "0"', b'{"scripts": 1}'),
    "device file": (DEVICE_FILE, b'{"name": "A", "vendor": "B"', b'{"name": "A"}'),
}


@pytest.mark.parametrize("name", KINDS)
def test_only_a_file_of_the_same_kind_is_replaced(name: str, tmp_path: Path) -> None:
    kind, own, foreign = KINDS[name]
    path = tmp_path / "out"
    for content in (own, b""):
        path.write_bytes(content)
        with NewFile(path, force=True, kind=kind) as place:
            place.write_text("new")
        assert path.read_text() == "new"
    path.write_bytes(foreign)
    with pytest.raises(InputError, match=f"is no {name}; it is not replaced"):
        NewFile(path, force=True, kind=kind)
    assert path.read_bytes() == foreign


def test_what_dead_processes_left_is_removed_and_what_living_ones_write_is_not(tmp_path: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    kept = [".other.1.part", f".out.{os.getppid()}.part", ".out.x.part"]
    for name in (f".out.{dead.pid}.part", *kept):
        (tmp_path / name).mkdir()
    (tmp_path / f".out.{dead.pid}.old").write_text("old")
    with pytest.raises(InputError, match="already exists"):  # what was set aside came back: nothing was in its place
        NewFile(tmp_path / "out")
    assert (tmp_path / "out").read_text() == "old"
    assert names(tmp_path) == sorted([*kept, "out"])


BUILD = """
import itertools, os, sys
from pathlib import Path
from inferometer.new_files import NewFile, NewFolder
from inferometer.trace.store_writer import MANIFEST, StoreFolder

kind = sys.argv[2]
name = {"file": "", "folder": "x", "store": MANIFEST}[kind]
CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "open", "os.link")

def replace(path, last):
    seen = 0

    def die(event, args):
        nonlocal seen
        if event in CHANGES and str(path.parent) in str(args[0]):
            seen += 1
            if seen == last:
                os._exit(9)

    new = {
        "file": lambda: NewFile(path, force=True),
        "folder": lambda: NewFolder(path, ours=lambda name: name == "x", force=True),
        "store": lambda: StoreFolder(path, force=True),
    }[kind]()
    sys.addaudithook(die)
    with new as place:
        (place / name if name else place).write_text("new")

for change in itertools.count(1):  # each in a fork of its own: to load the package takes longer than all else
    path = Path(sys.argv[1], str(change), "out")
    inside = path / name if name else path
    inside.parent.mkdir(parents=True)
    inside.write_text("old")
    if not (process := os.fork()):
        replace(path, change)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    print(code)
    if code != 9:
        break
"""
INSIDE = {"file": "", "folder": "x", "store": MANIFEST}


@pytest.mark.parametrize("kind", INSIDE)
def test_a_kill_before_any_change_of_the_disk_loses_nothing(kind: str, tmp_path: Path) -> None:
    """The old or the new content is there, or comes back with the next writer: killed before each change in turn."""
    done = subprocess.run([sys.executable, "-c", BUILD, str(tmp_path), kind], check=True, stdout=subprocess.PIPE)
    *killed, whole = map(int, done.stdout.split())
    assert len(killed) > (1 if kind == "file" else 4)
    assert ({*killed}, whole) == ({9}, 0)
    for change, code in enumerate([*killed, whole], 1):
        path = tmp_path / str(change) / "out"
        clear_left(path)
        inside = path / INSIDE[kind] if INSIDE[kind] else path
        assert inside.read_text() in (("old", "new") if code else ("new",))
        assert names(path.parent) == ["out"]


def test_where_something_was_set_aside_is_known_while_nothing_is_in_its_place(tmp_path: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    assert set_aside(tmp_path / "a.ifm") is None
    (tmp_path / f".a.ifm.{dead.pid}.old").mkdir()
    assert set_aside(tmp_path / "a.ifm") == tmp_path / f".a.ifm.{dead.pid}.old"
    assert set_aside(tmp_path / "no" / "a.ifm") is None


def test_what_was_set_aside_comes_back_where_nothing_can_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out"
    make_folder(path)
    rename = Path.rename

    def fail_into_place(self: Path, target: Path) -> Path:
        if self.name.endswith(".part"):
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_into_place)
    with pytest.raises(InputError, match="No space left"):
        make_folder(path, force=True)
    assert names(tmp_path) == ["out"]
    assert names(path) == ["new.csv"]
