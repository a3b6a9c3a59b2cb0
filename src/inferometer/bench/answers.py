"""What a candidate's process wrote as its answer: tensors, read as such and never as code, and of bounded size.

It is a file of `torch.save`: a zip archive of one pickle and the bytes of each storage. A candidate could write
anything there. So sizes are checked first: packed bytes could grow without end, and a long pickle takes long.
"""

import stat
import zipfile
from pathlib import Path
from typing import Any

from inferometer.errors import clean

_LARGEST_PICKLE = 1 << 20  # bytes; that of three tensors has 500
_MOST_ENTRIES = 4_096


class UnreadableAnswer(Exception):
    """What is there is no answer; the message says why."""


def read_answer(path: Path, most_bytes: int | None) -> Any:
    """The tensors in a file of `torch.save`, however it nests them.

    Args:
        path: The file.
        most_bytes: Bytes that it may hold; None: any number.

    Raises:
        UnreadableAnswer: There is none, or something else.
    """
    import torch

    try:
        status = path.lstat()
    except OSError as error:
        raise UnreadableAnswer("it wrote no outputs") from error
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableAnswer("expected its outputs in a file, found something else")
    if most_bytes is not None and status.st_size > most_bytes:
        raise UnreadableAnswer(f"expected outputs of at most {most_bytes:,} bytes, found {status.st_size:,}")
    try:
        _check_archive(path, status.st_size)
        return torch.load(path, weights_only=True)
    except UnreadableAnswer:
        raise
    except Exception as error:  # what it wrote may be anything
        raise UnreadableAnswer(f"its outputs can't be read back: {clean(str(error))[:200]}") from error


def _check_archive(path: Path, size: int) -> None:
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
    if len(entries) > _MOST_ENTRIES or sum(entry.file_size for entry in entries) > size:
        raise UnreadableAnswer("its outputs can't be read back: the file claims to hold more than it does")
    if any(entry.filename.endswith(".pkl") and entry.file_size > _LARGEST_PICKLE for entry in entries):
        raise UnreadableAnswer("its outputs can't be read back: the list of them is too long")
