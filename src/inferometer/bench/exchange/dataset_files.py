"""The files of a flashinfer-bench dataset on disk: all of them, or none where one is in the way."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from inferometer.errors import InputError
from inferometer.new_files import FileKind, NewFile

_JSON = re.compile(rb'\s*\{\s*"(name|definition)"')  # of safetensors, a length comes before it
_KIND = FileKind("file of flashinfer-bench", lambda head: _JSON.match(head) is not None or head[8:].startswith(b'{"'))


def write_dataset(files: Mapping[str, bytes], folder: Path, *, force: bool, left_out: Iterable[str]) -> list[Path]:
    """Write `files`, by path in the dataset; their paths, in order. A file that is there and says the same stays.

    Args:
        files: What they hold. Without a trace there is no result to write.
        folder: The dataset's.
        force: Replace other files of flashinfer-bench; anything else that is in the way never is.
        left_out: Why results aren't among the files: the hint where there is no trace.

    Raises:
        InputError: There is no trace; or a file is in the way, or can't be written.
    """
    if not any(path.startswith("traces/") for path in files):
        reasons = "\n".join(left_out) or "It has no results."
        raise InputError(f"{folder}: nothing of this run can be written for flashinfer-bench", hint=reasons)
    found = {folder / path: data for path, data in sorted(files.items())}
    try:
        others = {path: data for path, data in found.items() if not _says(path, data)}
        for path in others:
            if os.path.lexists(path):
                if not force:
                    raise InputError(f"{path} is there already", hint="Give --force, or a new folder for each run.")
                NewFile(path, force=True, kind=_KIND)  # refuses before anything is written
        for path, data in others.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with NewFile(path, force=True, kind=_KIND) as place:
                place.write_bytes(data)
    except OSError as error:
        raise InputError(f"{error.filename or folder}: {error.strerror}") from error
    return list(found)


def pretty(part: msgspec.Struct) -> bytes:
    """A definition or solution as its file has it."""
    return msgspec.json.format(msgspec.json.encode(part), indent=2) + b"\n"


def _says(path: Path, data: bytes) -> bool:
    return path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data
