"""Files and folders that appear whole or not at all: written next to their place, and moved there at the end."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from inferometer.errors import InputError

_ANOTHER = "Give another name."


def check_place(path: Path, *, force: bool = False) -> None:
    """Raise `InputError` where no file or folder can be made, or one is there already and `force` is not set."""
    try:
        str(path).encode()
        if "\0" in str(path):
            raise ValueError("a name has no null character")
        if path.is_symlink():
            raise InputError(f"{path}: is a link; it is not replaced", hint=_ANOTHER)
        if path.exists() and not force:
            raise InputError(f"{path}: already exists", hint="Give another name, or --force to replace it.")
        if not path.absolute().parent.is_dir():
            raise InputError(f"{path.parent}: no such folder", hint="Make it first.")
    except (OSError, ValueError) as error:
        raise _refusal(path, error) from error


class NewFile:
    """A file next to `path` that becomes `path` when the block ends without an error, and vanishes otherwise.

    An OSError in the block (a full disk) becomes an `InputError` that names `path`.

    Raises:
        InputError: `path` is a folder, exists while `force` is not set, or nothing can be made there.
    """

    def __init__(self, path: Path, *, force: bool = False) -> None:
        self._path = path
        place = path.absolute()
        self._work = place.parent / f".{place.name}.{os.getpid()}.part"
        check_place(path, force=force)
        try:
            self._check()
        except OSError as error:
            raise _refusal(path, error) from error

    def __enter__(self) -> Path:
        try:
            self._clear()
            self._begin()
        except (OSError, ValueError) as error:
            raise _refusal(self._path, error) from error
        return self._work

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            if kind is None:
                self._move()
            elif isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
                raise _refusal(self._path, error) from error
        except OSError as failure:
            raise _refusal(self._path, failure) from failure
        finally:
            self._clear()

    def _check(self) -> None:
        if self._path.is_dir():
            raise InputError(f"{self._path}: is a folder; expected the name of a file", hint=_ANOTHER)

    def _begin(self) -> None:
        """Nothing: whoever writes makes the file."""

    def _move(self) -> None:
        self._work.replace(self._path)

    def _clear(self) -> None:
        self._work.unlink(missing_ok=True)


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
            shutil.rmtree(self._path)
        self._work.rename(self._path)

    def _clear(self) -> None:
        shutil.rmtree(self._work, ignore_errors=True)


def _refusal(path: Path, error: OSError | ValueError) -> InputError:
    name = str(path).encode(errors="backslashreplace").decode()
    if isinstance(error, UnicodeEncodeError):
        return InputError(f"{name}: expected a name that is text in UTF-8", hint=_ANOTHER)
    why = error.strerror if isinstance(error, OSError) and error.strerror else error
    return InputError(f"{name}: can't be written: {why}", hint="Give another name, or make room.")
