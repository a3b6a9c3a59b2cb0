"""Builds the library in C++, by the compiler that is there.

It runs without anything else of ours: `python src/inferometer/formats/native/build.py`.
"""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any, Final

FORMATS: Final = Path(__file__).parents[1]
LIBRARY: Final = Path(__file__).with_name("formats.decoder.so")  # the first dot has nobody take it for a Python module
_OPTIONS: Final = ("-std=c++17", "-O3", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread")
_ON_LINUX: Final = ("-static-libstdc++", "-static-libgcc", "-s")
_PATIENCE_S: Final = 600


class BuildError(Exception):
    """The library can't be built here; the message says why, in one line."""


def find_sources(formats: Path) -> list[Path]:
    """All that is compiled, of every format below this folder."""
    ends = (f"{where}/*.{end}" for where in ("native", "*/native") for end in ("h", "cpp"))
    return sorted(source for end in ends for source in formats.glob(end))


def sources_checksum(formats: Path = FORMATS) -> int:
    """Of these sources: a library knows from which it was built."""
    checksum = 0
    for source in find_sources(formats):
        checksum = zlib.crc32(source.read_bytes(), checksum)
    return checksum


def is_current(library: Path) -> bool:
    """Whether it is there, loads here, and was built from these sources."""
    try:
        return int(ctypes.CDLL(str(library)).library_sources()) & 0xFFFFFFFF == sources_checksum()
    except (OSError, AttributeError):
        return False


def build(options: tuple[str, ...] = (), library: Path = LIBRARY, formats: Path = FORMATS) -> Path:
    """Compile the sources of `formats`, and put the library in its place whole. With `options` it keeps its symbols.

    Raises:
        BuildError: The system isn't Linux or macOS, there is no compiler, it fails, or nothing can be written.
    """
    linking = _ON_LINUX if sys.platform == "linux" and not options else ()
    try:
        with tempfile.TemporaryDirectory(dir=library.parent, prefix=".build-") as scratch:
            made = Path(scratch) / library.name
            units = [str(source) for source in find_sources(formats) if source.suffix == ".cpp"]
            command = [_find_compiler(), *units, *_OPTIONS, *linking, *options]
            _run([*command, f"-DSOURCES={sources_checksum(formats)}u", "-o", str(made)])
            made.replace(library)
    except OSError as error:
        raise BuildError(f"{error.filename}: {error.strerror}") from error
    return library


def _find_compiler() -> str:
    if sys.platform not in ("linux", "darwin"):
        raise BuildError("it is for Linux and macOS")
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and (found := shutil.which(name)):
            return found
    raise BuildError("there is no C++ compiler (c++, g++, clang++, or the one that CXX names)")


def _run(command: list[str]) -> None:
    how: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace", "timeout": _PATIENCE_S}
    try:
        done = subprocess.run(command, check=False, **how)
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"{command[0]} took more than {_PATIENCE_S} s") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or [f"exit code {done.returncode}"]
        raise BuildError(f"{Path(command[0]).name}: {lines[0][:200]}")


if __name__ == "__main__":
    try:
        print(build())  # noqa: T201 - for who builds it by hand
    except BuildError as error:
        sys.exit(f"build: {error}")
