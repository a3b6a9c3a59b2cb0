"""A failure in words, with its exit code: for the command line, the tools of `inferometer mcp`, and jobs of `serve`."""

import os
from pathlib import Path
from typing import NamedTuple

from inferometer.errors import InferometerError, InputError, clean, printable
from inferometer.new_files import NO_ROOM
from inferometer.privacy.secrets import blank_secrets

_BAD_INPUT = 3
_BUG = 70
_PACKAGE = Path(__file__).parent


class Failure(NamedTuple):
    """What a user reads, with the hint (if any) below it, and the exit code."""

    text: str
    exit_code: int


def describe_failure(error: BaseException) -> Failure:
    """Of anything that a command raises, but for wrong usage: an error of ours, a refusal of the system, or a bug."""
    if isinstance(error, InferometerError):
        return Failure(str(error), error.exit_code)
    if refused := _refusal_of_system(error):
        return Failure(str(refused), _BAD_INPUT)
    what = blank_secrets(clean(f"{type(error).__name__}: {error}".split("\n")[0][:300]))
    if _is_damaged_parquet(error):
        return Failure(f"a file of the store can't be read: {what}\n  Import the original file again.", _BAD_INPUT)
    return Failure(f"a bug in inferometer: {what}\n  Run it again with --debug and report what it prints.", _BUG)


def _refusal_of_system(error: BaseException) -> InputError | None:
    """Of a path that isn't ours (a name that is too long, no permission), or of room to write; None of all else."""
    if not isinstance(error, OSError) or error.errno is None:
        return None
    if error.filename is None:
        return InputError(f"standard output: {error.strerror}") if error.errno in NO_ROOM else None
    name = printable(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else ""
    if not name or Path(name).is_relative_to(_PACKAGE):
        return None
    return InputError(f"{name}: {error.strerror}", hint="Check the path and its permissions.")


def _is_damaged_parquet(error: BaseException) -> bool:
    """Whether Polars met damage in pages that a store's checksums, made to fit, don't show."""
    return type(error).__name__ == "ComputeError" and str(error).startswith("parquet: ")
