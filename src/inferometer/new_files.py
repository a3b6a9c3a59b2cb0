"""Files and folders that appear whole or not at all: written next to their place, and moved there at the end.

What is being written is called `.NAME.PID.part`. What is replaced is first set aside as `.NAME.PID.old`, so that the
old or the new one is there at every moment, whoever is killed. The next writer of the same name removes what dead
processes left, and puts back what was set aside where nothing came in its place.

Only what is of the same kind is replaced: a regular file that begins as the new one will, a folder that holds nothing
else. A device, a pipe, a socket and a link never are.
"""

import contextlib
import errno
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

import msgspec

from inferometer.errors import InputError, printable
from inferometer.processes import is_alive

_ANOTHER = "Give another name."
_HEAD_BYTES = 4096
_OS_ERROR = re.compile(r"\(os error ([0-9]{1,4})\)")
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
_LEFT = re.compile(r"\.(?P<pid>[0-9]{1,10})\.(?P<what>part|old)")


class FileKind(msgspec.Struct, frozen=True):
    """What a file is, and how files of the kind begin: `is_one` is given the first 4,096 bytes."""

    name: str
    is_one: Callable[[bytes], bool]


def begins_with(name: str, *beginnings: bytes) -> FileKind:
    """Files that begin with one of these, in letters of any case."""
    lower = tuple(map(bytes.lower, beginnings))
    return FileKind(name, lambda head: head.lower().startswith(lower))


ANY = FileKind("file", lambda _: True)


def check_place(path: Path, *, force: bool = False, kind: FileKind = ANY) -> None:
    """Raise `InputError` where no file or folder can be made, or what is there may not be replaced."""
    try:
        clear_left(path)
        _check_allowed(path, force=force, kind=kind)
    except (OSError, ValueError) as error:
        raise _refusal(path, error) from error


def _check_allowed(path: Path, *, force: bool, kind: FileKind) -> None:
    str(path).encode()
    if "\0" in str(path):
        raise ValueError("a name has no null character")
    _check_replaced(path, force=force, kind=kind)
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path.parent}: no such folder", hint="Make it first.")


def _check_replaced(path: Path, *, force: bool, kind: FileKind) -> None:
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISLNK(mode):
        raise InputError(f"{path}: is a link; it is not replaced", hint=_ANOTHER)
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise InputError(f"{path}: is {_special(mode)}; it is not replaced", hint=_ANOTHER)
    if not force:
        raise InputError(f"{path}: already exists", hint="Give another name, or --force to replace it.")
    if stat.S_ISREG(mode) and kind is not ANY:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        if head and not kind.is_one(head):
            raise InputError(f"{path}: is no {kind.name}; it is not replaced", hint=_ANOTHER)


def _special(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


class NewFile:
    """A file next to `path` that becomes `path` when the block ends without an error, and vanishes otherwise.

    An OSError in the block (a full disk) becomes an `InputError` that names `path`.

    Raises:
        InputError: `path` is a folder, exists while `force` is not set, is of another kind, or nothing can be made
            there.
    """

    def __init__(self, path: Path, *, force: bool = False, kind: FileKind = ANY) -> None:
        self._path, self._force, self._kind = path, force, kind
        place = path.absolute()
        self._work, self._aside = (place.parent / f".{place.name}.{os.getpid()}.{what}" for what in ("part", "old"))
        try:
            clear_left(path)
        except (OSError, ValueError) as error:
            raise self._refusal(error) from error
        self._check_place()

    def __enter__(self) -> Path:
        try:
            self._clear()
            self._begin()
        except (OSError, ValueError) as error:
            raise self._refusal(error) from error
        return self._work

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            if kind is None:
                self._check_place()  # it may have come meanwhile
                self._move()
            elif (failed := _of_system(error)) is not None and self._is_of_writing(failed):
                raise self._refusal(failed) from error
        except OSError as failure:
            raise self._refusal(failure) from failure
        finally:
            self._clear()

    def _check_place(self) -> None:
        try:
            _check_allowed(self._path, force=self._force, kind=self._kind)
            self._check()
        except (OSError, ValueError) as error:
            raise self._refusal(error) from error

    def _is_of_writing(self, error: OSError) -> bool:
        """Whether an error in the block is about this file."""
        return not isinstance(error, BrokenPipeError)

    def _check(self) -> None:
        if self._path.is_dir():
            raise InputError(f"{self._path}: is a folder; expected the name of a file", hint=_ANOTHER)

    def _begin(self) -> None:
        """Nothing: whoever writes makes the file."""

    def _move(self) -> None:
        self._work.replace(self._path)

    def _clear(self) -> None:
        self._work.unlink(missing_ok=True)

    def _refusal(self, error: OSError | ValueError) -> InputError:
        return _refusal(self._path, error)


class NewFolder(NewFile):
    """The same for a folder. With `force` it replaces one that holds nothing but plain files that `ours` knows."""

    def __init__(self, path: Path, *, ours: Callable[[str], bool], force: bool = False) -> None:
        self._ours = ours
        super().__init__(path, force=force)

    def _check(self) -> None:
        path = self._path
        if path.exists() and not path.is_dir():
            raise InputError(f"{path}: is a file; expected the name of a folder", hint=_ANOTHER)
        if path.exists():
            for inside in path.iterdir():
                if not self._ours(inside.name) or inside.is_symlink() or not inside.is_file():
                    raise InputError(
                        f"{path}: holds {inside.name!r}, which no export wrote; it is not replaced", hint=_ANOTHER
                    )

    def _begin(self) -> None:
        self._work.mkdir()

    def _move(self) -> None:
        if self._path.exists():
            self._path.rename(self._aside)
        try:
            self._work.rename(self._path)
        except OSError:
            if self._aside.exists() and not os.path.lexists(self._path):
                self._aside.rename(self._path)
            raise
        shutil.rmtree(self._aside, ignore_errors=True)

    def _clear(self) -> None:
        shutil.rmtree(self._work, ignore_errors=True)


def clear_left(path: Path) -> None:
    """Remove what dead writers of `path` left; what one had set aside is put back where nothing has come instead."""
    place = path.absolute()
    for left, what in _left_by_dead(place):
        if what == "old" and not os.path.lexists(place):
            left.rename(place)
        elif left.is_dir() and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def set_aside(path: Path) -> Path | None:
    """Where a dead writer of `path`, which isn't there, had set its old content aside; None where none did."""
    place = path.absolute()
    with contextlib.suppress(OSError):
        return next((left for left, what in _left_by_dead(place) if what == "old"), None)
    return None


def _left_by_dead(place: Path) -> Iterator[tuple[Path, str]]:
    if not place.parent.is_dir():
        return
    with os.scandir(place.parent) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(f".{place.name}.")]
    for name in sorted(names):
        match = _LEFT.fullmatch(name, len(place.name) + 1)
        if match and not is_alive(int(match["pid"])):
            yield place.parent / name, match["what"]


def _of_system(error: BaseException | None) -> OSError | None:
    """The system's error; of polars, which gives it in words, that there is no room."""
    if isinstance(error, OSError) and error.errno is not None:
        return error
    number = int(match[1]) if (match := _OS_ERROR.search(str(error))) else 0
    if number in NO_ROOM:
        return OSError(number, os.strerror(number))
    return error if isinstance(error, OSError) else None


def _refusal(path: Path, error: OSError | ValueError) -> InputError:
    name = printable(str(path))
    if isinstance(error, UnicodeEncodeError):
        return InputError(f"{name}: expected a name that is text in UTF-8", hint=_ANOTHER)
    why = error.strerror if isinstance(error, OSError) and error.strerror else error
    return InputError(f"{name}: can't be written: {why}", hint="Give another name, or make room.")
