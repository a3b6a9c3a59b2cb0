"""Small files that people write or hand on (a device, results, a kernel path): plain files, of bounded size.

A pipe would be waited for, a device never ends, so neither is read where a file is expected: only a path that somebody
gave on the command line may be a pipe, as a shell's `<(command)` is.
"""

import os
import stat
from os import PathLike
from typing import BinaryIO

from inferometer.errors import InputError, printable

SMALL = 16 << 20
"""Bytes. Results of one shape are about 1 kB, so a run of all 440 shapes is half a megabyte."""


def read_side_file(
    path: str | PathLike[str], *, most: int = SMALL, hint: str | None = None, pipe: bool = False
) -> bytes:
    """The whole content.

    Args:
        path: Of a plain file, or a link to one.
        most: Bytes that are read at most.
        hint: What to do where it can't be read.
        pipe: It was given on the command line, so it may be a pipe.

    Raises:
        InputError: It can't be read, is no plain file, or holds more.
    """
    hint = hint or "Check the path and its permissions."
    try:
        with open_plain(path, hint=hint, pipe=pipe) as file:
            data = file.read(most + 1)
    except (OSError, ValueError) as error:  # a null character in the path
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(f"{printable(str(path))}: {why}", hint=hint) from error
    if len(data or b"") > most:
        raise InputError(f"{printable(str(path))}: expected at most {most:,} bytes, found more", hint=hint)
    return data or b""


def open_plain(path: str | PathLike[str], *, hint: str | None = None, pipe: bool = False) -> BinaryIO:
    """A plain file, or a link to one, to be read; nothing is waited for.

    Raises:
        InputError: It is something else; see `read_side_file`.
        OSError, ValueError: It can't be opened.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    mode = os.fstat(handle).st_mode
    is_pipe = pipe and stat.S_ISFIFO(mode)
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or is_pipe):  # a folder says so itself
        os.close(handle)
        raise InputError(f"{printable(str(path))}: expected a file, found {_kind(mode)}", hint=hint)
    if is_pipe:
        os.set_blocking(handle, True)
    return os.fdopen(handle, "rb")


def _kind(mode: int) -> str:
    return "a pipe" if stat.S_ISFIFO(mode) else "a device"
